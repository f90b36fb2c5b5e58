//! Checks on every answer in every transcript. Start at [`complaints`].

use super::follow::{numbers_after, words_of};
use super::transcript::{Event, Exchange, Origin, Transcript};
use cloudphone::phones::contract::CATALOGUE;
use serde_json::Value;

/// The words that advise an agent to send the same call again.
const AGAIN: [&str; 6] = ["retry", "retries", "retrying", "repeat", "repeats", "repeating"];

/// The only phrases that may use those words without advising a repeat. The list is strict, so that
/// the check misses no advice.
const WARNINGS: [&str; 7] = [
    "a retry does not help",
    "no retry helps",
    "no repeat helps",
    "do not retry",
    "do not repeat",
    "never retry",
    "never repeat",
];

/// The error codes that a followed call must not meet.
const MISLED: [&str; 3] = ["invalid_argument", "unknown_tool", "forbidden"];

/// Returns the faults in the answers of a transcript, one per line, with the number of the check:
/// 1. The instructions and the answers name only tools that the key is shown, or the tool that was
///    called.
/// 2. A retryable failure states a delay in seconds; the text of any other failure does not advise
///    a repeat of the call.
/// 3. Every value that a text names for `wait_seconds` fits the schema.
/// 4. An answer that the scenario follows names a call, and the server does not reject that call as
///    invalid.
pub(super) fn complaints(told: &Transcript) -> Vec<String> {
    let mut found = Vec::new();
    let shown = |name: &str| told.names().any(|known| known == name);
    for tool in tools_in(&told.instructions).filter(|tool| !shown(tool)) {
        found.push(format!("1: the instructions name {tool}, which the key is not shown"));
    }
    found.extend(bad_waits(told, &told.instructions).map(|wait| format!("3: the instructions: {wait}")));
    let mut number = 0;
    for event in &told.events {
        let exchange = match event {
            Event::Called(exchange) => exchange,
            Event::Lost(why) => {
                found.push(format!("4: the answer to call {number} is to be followed, but {why}"));
                continue;
            }
            Event::Passed(_) | Event::Changed(_) => continue,
        };
        number += 1;
        let Exchange { origin, tool, arguments: _, at: _, answer } = exchange;
        let mut say = |check: u8, what: &str| found.push(format!("{check}: call {number}, {tool}: {what}"));
        for words in texts(answer.members()) {
            for named in tools_in(words).filter(|named| !shown(named) && named != tool) {
                say(1, &format!("names {named}, which the key is not shown: {words}"));
            }
            for wait in bad_waits(told, words) {
                say(3, &wait);
            }
        }
        let Some(failure) = answer.failure() else { continue };
        let (message, after) = (answer.words(), failure["retry_after_seconds"].as_u64());
        match failure["retryable"].as_bool() {
            Some(true) if after.is_none_or(|seconds| seconds == 0) => {
                say(2, &format!("is retryable and does not say after how many seconds: {message}"));
            }
            Some(false) if advises_a_repeat(message) => {
                say(2, &format!("is not retryable and advises a repeat: {message}"))
            }
            Some(_) => {}
            None => say(2, "does not say whether it is retryable"),
        }
        if *origin == Origin::Followed && MISLED.iter().any(|code| failure["code"] == *code) {
            say(4, &format!("an answer asks for this call, and it is refused: {message}"));
        }
    }
    found
}

/// Returns the texts of an answer that advise the agent or explain.
fn texts(members: &Value) -> impl Iterator<Item = &str> {
    let said = ["message", "next_step"].into_iter().map(|name| &members[name]);
    said.chain(members["notes"].as_array().into_iter().flatten()).filter_map(Value::as_str)
}

/// Returns the tools of the contract that a text names.
fn tools_in(text: &str) -> impl Iterator<Item = &str> {
    words_of(text).filter(|word| CATALOGUE.tool(word).is_some())
}

/// Returns the values for `wait_seconds` that a text names and that no shown tool admits.
fn bad_waits(told: &Transcript, text: &str) -> impl Iterator<Item = String> {
    const NAME: &str = "wait_seconds";
    let schemas = told.tools.iter().filter_map(|tool| tool["inputSchema"]["properties"].get(NAME));
    let schemas: Vec<_> = schemas.map(|schema| jsonschema::validator_for(schema).expect("a schema")).collect();
    let admitted = move |value: &u64| schemas.iter().any(|schema| schema.is_valid(&Value::from(*value)));
    numbers_after(text, NAME)
        .filter(move |value| !admitted(value))
        .map(|value| format!("names {NAME} {value}, which is refused"))
}

fn advises_a_repeat(message: &str) -> bool {
    let message = WARNINGS.iter().fold(message.to_lowercase(), |text, warning| text.replace(warning, ""));
    message.contains("try again") || words_of(&message).any(|word| AGAIN.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::super::transcript::Answer;
    use super::*;
    use serde_json::json;
    use toolwarrant_testing::START;

    /// Returns the checks that fail for one answer, for a key that is shown get_device and
    /// get_task.
    fn checks(origin: Origin, answer: Answer) -> Vec<String> {
        let waits = json!({"properties": {"wait_seconds": {"type": "integer", "minimum": 0, "maximum": 50}}});
        let tools = vec![json!({"name": "get_device"}), json!({"name": "get_task", "inputSchema": waits})];
        let exchange = Exchange { origin, tool: "set_power".to_owned(), arguments: json!({}), at: [START; 2], answer };
        let told = Transcript { tools, instructions: String::new(), events: vec![Event::Called(exchange)] };
        complaints(&told).iter().map(|complaint| complaint[..1].to_owned()).collect()
    }

    fn failure(message: &str, more: Value) -> Answer {
        let mut failure = json!({"code": "x", "message": message, "retryable": false});
        failure.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        Answer::Failure(failure)
    }

    #[test]
    fn each_check_finds_only_its_own_fault() {
        let next = |words: &str| Answer::Result(json!({"next_step": words}));
        let cases = [
            ("1", next("See list_devices.")),
            ("1", Answer::Result(json!({"notes": ["set_proxy clears it"]}))),
            ("", next("See get_device or `get_task`.")),
            ("", failure("`set_power` needs a permission.", json!({}))),
            ("2", failure("Wait.", json!({"retryable": true}))),
            ("2", failure("Wait.", json!({"retryable": true, "retry_after_seconds": 0}))),
            ("2", failure("Wait.", json!({"retryable": true, "retry_after_seconds": "3"}))),
            ("2", failure("Wait.", json!({"retryable": null}))),
            ("", failure("Wait, then repeat.", json!({"retryable": true, "retry_after_seconds": 3}))),
            ("2", failure("Boot it, then repeat this call.", json!({}))),
            ("2", failure("No luck; Retry later.", json!({}))),
            ("2", failure("Do not give up, try again.", json!({}))),
            ("", failure("It is not retryable: another device or a retry does not help.", json!({}))),
            ("3", next("Call get_task with `wait_seconds` 60.")),
            ("3", next("Call get_task with wait_seconds 25, then with wait_seconds=51.")),
            ("", next("Call get_task with wait_seconds 50.")),
            ("", failure("`wait_seconds`: 60 is not an integer from 0 to 50.", json!({}))),
        ];
        for (expected, answer) in cases {
            let words = answer.members().to_string();
            assert_eq!(checks(Origin::Scripted, answer).concat(), expected, "{words}");
        }
        for code in MISLED {
            assert_eq!(checks(Origin::Followed, failure("No.", json!({"code": code}))), ["4"]);
        }
        assert!(checks(Origin::Followed, failure("No.", json!({"code": "not_supported"}))).is_empty());
    }
}
