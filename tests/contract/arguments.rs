//! The server accepts exactly the arguments that the schema describes, for every tool of all
//! contracts.

use super::framework_types::jobs;
use crate::harness::shop;
use cloudphone::phones::contract as phones;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

#[test]
fn arguments_are_taken_exactly_if_the_schema_admits_them() {
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    for catalogue in [&phones::CATALOGUE, &shop::CATALOGUE, &jobs::CATALOGUE] {
        for tool in catalogue.tools {
            let schema: Value = serde_json::from_str(tool.input_schema).expect("JSON");
            // Another tool's argument is left out. A name like one of this tool's is a mistake.
            let own = properties(tool.input_schema);
            let is_like =
                |name: &str| name.split('_').any(|word| own.iter().any(|own| own.split('_').any(|part| part == word)));
            let all = catalogue.tools.iter().flat_map(|tool| properties(tool.input_schema));
            // A name of one letter is like each of two or three.
            let others: Vec<_> = all.filter(|name| name.len() > 1 && !is_like(name)).collect();
            let mistaken = own.iter().map(|name| format!("{name}s"));
            let mistaken: Vec<_> = mistaken.filter(|name| !own.contains(name)).collect();
            let mut closed = schema.clone();
            for name in &mistaken {
                closed["properties"][name] = json!(false);
            }
            let validator = jsonschema::validator_for(&closed).expect("a schema");
            let strangers = [others, mistaken, vec!["toolCallId".into(), "1234".into()]].concat();
            let objects = objects(&schema, strangers);
            let mut seen = [0; 2];
            for _ in 0..800 {
                let given = objects.new_tree(&mut runner).expect("arguments").current();
                let valid = validator.is_valid(&Value::Object(without_absent(&given, &schema)));
                let json = Value::Object(given.clone()).to_string();
                let taken = (tool.judge)(&json).is_ok();
                assert_eq!(taken, valid, "{}: {json}", tool.name);
                let known = given.into_iter().filter(|(name, _)| schema["properties"].get(name).is_some());
                let stored = catalogue.judge_stored(tool.name, &Value::Object(known.collect()).to_string());
                assert!(!taken || tool.task.is_none() || stored.is_ok(), "{}: {json}: {stored:?}", tool.name);
                seen[usize::from(taken)] += 1;
            }
            // A tool without arguments refuses none.
            let refused = seen[0] >= 20 || own.is_empty();
            assert!(refused && seen[1] >= 20, "{}: too one-sided to prove anything: {seen:?}", tool.name);
        }
    }
}

fn without_absent(given: &Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let known = |name: &str| schema["properties"].get(name).is_some();
    let absent = |name: &String, value: &Value| {
        known(name) && !required.contains(&json!(name)) && (value.is_null() || value == "")
    };
    given
        .iter()
        .filter(|(name, value)| !absent(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn properties(schema: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    schema["properties"].as_object().expect("properties").keys().cloned().collect()
}

/// Generates objects that mostly fit `schema` and often just miss it. Some have one of `strangers`.
pub(super) fn objects(schema: &Value, strangers: Vec<String>) -> BoxedStrategy<Map<String, Value>> {
    let properties = schema["properties"].as_object().expect("properties");
    let mut members = Just(Map::new()).boxed();
    for (name, property) in properties {
        let name = name.clone();
        let value = prop_oneof![1 => Just(None), 12 => values_that_fit(property).prop_map(Some), 1 => anything().prop_map(Some)];
        members = (members, value)
            .prop_map(move |(mut members, value)| {
                members.extend(value.map(|value| (name.clone(), value)));
                members
            })
            .boxed();
    }
    (members, prop::option::weighted(0.1, prop::sample::select(strangers)))
        .prop_map(|(mut members, stranger)| {
            members.extend(stranger.map(|name| (name, json!(1))));
            members
        })
        .boxed()
}

fn values_that_fit(schema: &Value) -> BoxedStrategy<Value> {
    let number = |key: &str, or: i64| schema.get(key).and_then(Value::as_i64).unwrap_or(or);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return prop::sample::select(values.clone()).boxed();
    }
    match schema["type"].as_str() {
        Some("integer") => {
            let (min, max) = (number("minimum", i64::MIN / 2), number("maximum", i64::MAX / 2));
            let edges = [min, max, min - 1, max + 1].map(|edge| json!(edge));
            #[expect(clippy::cast_precision_loss, reason = "a small integer written as a float is the point")]
            let floats = (-3_i64..300).prop_map(|n| json!(n as f64));
            prop_oneof![3 => (min..=max).prop_map(|n| json!(n)), 1 => prop::sample::select(edges.to_vec()), 1 => floats]
                .boxed()
        }
        Some("boolean") => any::<bool>().prop_map(|flag| json!(flag)).boxed(),
        Some("array") => prop::collection::vec(values_that_fit(&schema["items"]), 0..4).prop_map(Value::from).boxed(),
        Some("string") => {
            let pattern = schema["pattern"].as_str();
            let (min, max) = pattern.map_or_else(|| (number("minLength", 0), number("maxLength", 12)), lengths);
            let (min, max) = (usize::try_from(min).expect("a length"), usize::try_from(max).expect("a length"));
            let lengths = min.saturating_sub(1)..=max + 1;
            let any = prop::collection::vec(any::<char>(), lengths.clone()).prop_map(String::from_iter);
            let plain = prop::collection::vec(prop::sample::select(b"abcdef0123456789-p".as_slice()), lengths);
            let plain = plain.prop_map(|bytes| bytes.into_iter().map(char::from).collect::<String>());
            let fitting = match pattern {
                Some(pattern) => text_matching(pattern),
                None => any.clone().boxed(),
            };
            prop_oneof![1 => any, 1 => plain, 10 => fitting, 1 => "[0-9a-f]{1,9}"].prop_map(Value::from).boxed()
        }
        other => panic!("no such type in arguments: {other:?}"),
    }
}

fn text_matching(pattern: &str) -> BoxedStrategy<String> {
    let inner = pattern.trim_start_matches('^').trim_end_matches('$');
    prop::string::string_regex(inner).expect("a pattern").boxed()
}

fn lengths(pattern: &str) -> (i64, i64) {
    let prefix = pattern.find('[').expect("a set of characters") - 1;
    let (_, count) = pattern.trim_end_matches("}$").rsplit_once('{').expect("a count");
    let (min, max) = count.split_once(',').unwrap_or((count, count));
    let whole = |count: &str| prefix as i64 + count.parse::<i64>().expect("a number");
    (whole(min), whole(max))
}

fn anything() -> BoxedStrategy<Value> {
    let odd = [
        json!(null),
        json!(""),
        json!([]),
        json!({}),
        json!(1.5),
        json!(-0.0),
        json!(1e300),
        json!(true),
        json!(" "),
        json!([null]),
    ];
    prop::sample::select(odd.to_vec()).boxed()
}
