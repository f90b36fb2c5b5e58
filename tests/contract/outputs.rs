//! Each result of each tool fits the output schema that its revision lists, and a spoiled result
//! does not.

use crate::harness::revisions::ask;
use crate::harness::writes::{phone, power, proxy};
use crate::harness::{Key, Server, Tenant, base_tools, cast, outcome, serve};
use cloudphone::phones::contract::CATALOGUE as PHONES;
use cloudphone::platforms::simulator::CAST;
use print_shop::Shop;
use print_shop::contract::{CATALOGUE as SHOP, Contract};
use print_shop::machines::{Machines, PRINTERS, TRAYS};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_core::catalogue::{Catalogue, PermissionSet, ToolDef};
use toolwarrant_core::revision::Revision;
use toolwarrant_reader::load;

/// Each revision answers a read the same; a write changes later answers.
struct OutputWorld {
    server: Server,
    key: Key,
    reading: &'static str,
    reads: Vec<(&'static str, Value)>,
    /// The writes in one row are all on different targets.
    writes: Vec<Vec<(&'static str, Value)>>,
}

impl OutputWorld {
    fn with_examples(mut self, catalogue: &'static Catalogue, spec: &str) -> Self {
        let contract = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(spec)).expect("a contract");
        for (tool, ToolDef { name, .. }) in contract.tools_with(None).zip(base_tools(catalogue)) {
            let mut called = self.reads.iter().chain(self.writes.iter().flatten()).map(|(name, _)| *name);
            if *name == self.reading || called.any(|called| called == *name) {
                continue;
            }
            let examples: Vec<_> =
                tool.examples.iter().map(|example| (*name, example.arguments.clone().into())).collect();
            if tool.task().is_some() { self.writes.push(examples) } else { self.reads.extend(examples) }
        }
        self
    }
}

async fn phones() -> OutputWorld {
    let (server, key, _) = cast().await;
    let all = || 1..=CAST.len() as u32;
    let on = |tool| all().map(move |number| (tool, json!({"device_id": phone(number)})));
    let pages =
        [json!({}), json!({"limit": 3}), json!({"state": "stopping"})].map(|arguments| ("list_devices", arguments));
    OutputWorld {
        server,
        key,
        reading: "get_task",
        reads: pages.into_iter().chain(on("get_device")).chain(on("create_session")).collect(),
        writes: vec![
            all().map(|number| ("set_power", power(number, "restart"))).collect(),
            all().map(|number| ("set_proxy", proxy(number, &format!("key-{number}")))).collect(),
            on("clear_proxy").collect(),
        ],
    }
    .with_examples(&PHONES, "../../spec")
}

async fn shop() -> OutputWorld {
    let parts = |_: &toolwarrant::Clock| {
        let shop = Arc::new(Shop::new(Machines::default()));
        (Contract(shop.clone()), shop as Arc<dyn toolwarrant::tasks::Executor>)
    };
    let (server, keys) = serve(parts, vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    let printers = |tool, more: Value| {
        PRINTERS.iter().map(move |printer| {
            let mut arguments = more.clone();
            arguments["printer_id"] = printer.id.into();
            (tool, arguments)
        })
    };
    let trays = |tool, more: Value| {
        TRAYS.iter().map(move |tray| {
            let mut arguments = more.clone();
            arguments["tray_id"] = tray.id.into();
            (tool, arguments)
        })
    };
    let rest = [("list_machines", json!({})), ("list_jobs", json!({})), ("open_panel", json!({"copies": 3}))];
    let reads = printers("get_printer", json!({})).chain(printers("clean_rollers", json!({})));
    OutputWorld {
        server,
        key: keys[0][0].clone(),
        reading: "get_job",
        reads: reads.chain(trays("get_tray", json!({}))).chain(rest).collect(),
        writes: vec![
            printers("print_page", json!({"mode": "fine"})).collect(),
            trays("fill_tray", json!({"sheets": 5})).collect(),
        ],
    }
    .with_examples(&SHOP, "../../tests/services/print_shop/spec")
}

struct Results {
    schemas: BTreeMap<String, Value>,
    results: Vec<(&'static str, Value)>,
}

impl Results {
    async fn of(OutputWorld { server, key, reading, reads, writes }: &OutputWorld) -> Self {
        let mut all = Self { schemas: list_schemas(server, key).await, results: Vec::new() };
        for (tool, arguments) in reads {
            all.read(server, key, tool, arguments).await;
        }
        for row in writes {
            let mut tasks = Vec::new();
            for ((tool, arguments), revision) in row.iter().zip(Revision::ALL.iter().cycle()) {
                if let Ok(accepted) = all.call(server, key, *revision, tool, arguments).await {
                    let _ = all.call(server, key, *revision, tool, arguments).await;
                    tasks.push(json!({"task_id": accepted["task_id"], "wait_seconds": 0}));
                }
            }
            for task in &tasks {
                all.read(server, key, reading, task).await;
            }
            let ended =
                async |task: &Value| server.call(key, reading, task.clone()).await.expect("a task")["terminal"] == true;
            for task in &tasks {
                while !ended(task).await {
                    server.clock.advance(Duration::from_secs(1));
                }
                all.read(server, key, reading, task).await;
            }
            server.clock.advance(Duration::from_secs(120));
        }
        for (tool, arguments) in reads {
            all.read(server, key, tool, arguments).await;
        }
        all
    }

    /// Allows only a new token to differ between revisions.
    async fn read(&mut self, server: &Server, key: &Key, tool: &'static str, arguments: &Value) {
        let mut first = None;
        for revision in Revision::ALL {
            let mut answer = self.call(server, key, revision, tool, arguments).await;
            if let Some(token) = answer.as_mut().ok().and_then(|session| session.get_mut("token")) {
                *token = "new".into();
            }
            let first = first.get_or_insert_with(|| answer.clone());
            assert_eq!(*first, answer, "{tool} {arguments} in {revision:?}");
        }
    }

    /// Expects structured content of a success if the revision supports it; it equals the text and
    /// fits the schema.
    async fn call(
        &mut self,
        server: &Server,
        key: &Key,
        revision: Revision,
        tool: &'static str,
        arguments: &Value,
    ) -> Result<Value, Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let (status, answer) = ask(server, key, revision, "tools/call", params).await;
        assert_eq!(status, 200, "{answer}");
        let said = outcome(&answer);
        let expected = said.as_ref().ok().filter(|_| revision.features().structured);
        assert_eq!(answer["result"].get("structuredContent"), expected, "{tool} in {revision:?}");
        if let Ok(result) = &said {
            let wrong: Vec<_> =
                validator(&self.schemas[tool]).iter_errors(result).map(|error| error.to_string()).collect();
            assert!(wrong.is_empty(), "{tool} in {revision:?}: {wrong:?} in {result}");
            self.results.push((tool, result.clone()));
        }
        said
    }
}

/// Expects the same in each revision that has output schemas.
async fn list_schemas(server: &Server, key: &Key) -> BTreeMap<String, Value> {
    let mut all = Vec::new();
    for revision in Revision::ALL.into_iter().filter(|revision| revision.features().structured) {
        let (_, answer) = ask(server, key, revision, "tools/list", json!({})).await;
        let tools = answer["result"]["tools"].as_array().expect("tools").iter();
        let schema = |tool: &Value| (tool["name"].as_str().expect("a name").to_owned(), tool["outputSchema"].clone());
        all.push(tools.map(schema).collect::<BTreeMap<_, _>>());
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    all.remove(0)
}

fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::options().should_validate_formats(true).build(schema).expect("a schema")
}

struct Mutant {
    kind: &'static str,
    place: String,
    value: Value,
}

/// Removes, adds or replaces something, at every depth.
fn mutants(schema: &Value, value: &Value, place: &str) -> Vec<Mutant> {
    let mutant = |kind, value| Mutant { kind, place: place.to_owned(), value };
    let types = schema["type"].as_array().map_or(vec![&schema["type"]], |types| types.iter().collect());
    let others = [
        ("null", Value::Null),
        ("boolean", json!(true)),
        ("integer", json!(7)),
        ("number", json!(7.5)),
        ("string", json!("2026-07-28T12:00:00Z")),
        ("array", json!([])),
        ("object", json!({})),
    ];
    let others = others.into_iter().filter(|(name, _)| !types.contains(&&json!(name)));
    let mut all: Vec<_> = others.map(|(_, other)| mutant("another type", other)).collect();
    if schema.get("enum").is_some() {
        all.push(mutant("unknown value", json!("no_such_value")));
    }
    let spoiled = |inner: Vec<Mutant>, put: &dyn Fn(&mut Value, Value)| {
        inner
            .into_iter()
            .map(|mutant| {
                let mut whole = value.clone();
                put(&mut whole, mutant.value);
                Mutant { value: whole, ..mutant }
            })
            .collect::<Vec<_>>()
    };
    for (name, field) in value.as_object().into_iter().flatten() {
        let mut without = value.clone();
        without.as_object_mut().expect("an object").shift_remove(name);
        all.push(mutant("field dropped", without));
        let inner = mutants(&schema["properties"][name], field, &format!("{place}.{name}"));
        all.extend(spoiled(inner, &|whole, spoiled| whole[name] = spoiled));
    }
    if value.is_object() {
        let mut with = value.clone();
        with["no_such_field"] = json!(1);
        all.push(mutant("field added", with));
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        let inner = mutants(&schema["items"], item, &format!("{place}[]"));
        all.extend(spoiled(inner, &|whole, spoiled| whole[n] = spoiled));
    }
    all
}

fn places(schema: &Value, place: &str) -> BTreeSet<String> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields = fields.flat_map(|(name, field)| places(field, &format!("{place}.{name}")));
    let items = schema.get("items").map(|items| places(items, &format!("{place}[]")));
    fields.chain(items.into_iter().flatten()).chain([place.to_owned()]).collect()
}

#[tokio::test]
async fn every_result_fits_the_schema_that_is_listed_and_no_spoiled_one_does() {
    for world in [phones().await, shop().await] {
        let Results { schemas, results } = Results::of(&world).await;
        let mut counted: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        let (mut passed, mut reached) = (Vec::new(), BTreeSet::new());
        for (tool, schema) in &schemas {
            let validator = validator(schema);
            let distinct: BTreeSet<String> =
                results.iter().filter(|(of, _)| of == tool).map(|(_, result)| result.to_string()).collect();
            assert!(!distinct.is_empty(), "{tool} has no result");
            for result in distinct {
                let result = serde_json::from_str(&result).expect("JSON");
                for Mutant { kind, place, value } in mutants(schema, &result, tool) {
                    let [all, rejected] = counted.entry(kind).or_default();
                    *all += 1;
                    match validator.is_valid(&value) {
                        true => passed.push(format!("{kind} at {place}: {value}")),
                        false => *rejected += 1,
                    }
                    reached.insert(place);
                }
            }
        }
        println!("{counted:?}");
        assert_eq!(passed, Vec::<String>::new(), "of {counted:?}");
        let all: BTreeSet<_> = schemas.iter().flat_map(|(tool, schema)| places(schema, tool)).collect();
        assert_eq!(all.difference(&reached).collect::<Vec<_>>(), Vec::<&String>::new(), "no result has it");
        assert!(counted.len() == 4 && counted.values().all(|[all, _]| *all > 20), "{counted:?}");
    }
}
