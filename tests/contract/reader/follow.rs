//! The next call of an agent that follows the last answer and has no other knowledge.
//!
//! A small interpreter of `next_step` and `message`. It reads only these texts, and the members of
//! the requests and answers so far. Start at [`follow`].

use super::transcript::{Exchange, Transcript};
use cloudphone::phones::contract::CATALOGUE;
use serde_json::{Map, Value};

/// The call that an answer advises.
pub(super) struct Advice {
    /// The seconds to wait before the call.
    pub(super) after: u64,
    pub(super) tool: String,
    pub(super) arguments: Value,
}

/// Derives the call that the last answer advises:
/// * the first tool that its text names; otherwise
/// * after a retryable failure, the same call once `retry_after_seconds` have passed; otherwise
/// * the same tool, if the text contains "call again".
///
/// # Errors
/// The reason why no call can be derived.
pub(super) fn follow(told: &Transcript) -> Result<Advice, String> {
    let last = told.exchanges().next_back().ok_or("nothing was answered")?;
    let (words, members) = (last.answer.words(), last.answer.members());
    let named = words_of(words).find(|word| CATALOGUE.tool(word).is_some());
    if let Some((tool, (_, rest))) = named.and_then(|tool| Some((tool, words.split_once(tool)?))) {
        return derive(told, last, tool, rest);
    }
    if members["retryable"] == true {
        let after = members["retry_after_seconds"].as_u64().unwrap_or(0);
        return Ok(Advice { after, tool: last.tool.clone(), arguments: last.arguments.clone() });
    }
    if words.contains("call again") {
        return derive(told, last, &last.tool, words);
    }
    Err("it names no call".to_owned())
}

/// Derives a call of `tool`. Its arguments come from `words`, or from the requests and answers so
/// far.
fn derive(told: &Transcript, last: &Exchange, tool: &str, words: &str) -> Result<Advice, String> {
    let Some(shown) = told.tools.iter().find(|shown| shown["name"] == tool) else {
        return Ok(Advice { after: 0, tool: tool.to_owned(), arguments: Map::new().into() });
    };
    let schema = &shown["inputSchema"];
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let mut arguments = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let said = numbers_after(words, name).next().map(Value::from).or_else(|| {
            let values = property["enum"].as_array()?.iter();
            values.filter_map(Value::as_str).find(|value| words.contains(&format!("`{value}`"))).map(Value::from)
        });
        let wanted = required(name) || words_of(words).any(|word| word == name);
        let value = said
            .or_else(|| {
                wanted
                    .then(|| latest_value(told, name).or_else(|| latest_value(told, &format!("next_{name}"))))
                    .flatten()
            })
            .or_else(|| if last.tool == tool { last.arguments.get(name).cloned() } else { None });
        match value {
            Some(value) => drop(arguments.insert(name.clone(), value)),
            None if required(name) => return Err(format!("nothing says which `{name}` {tool} is to be given")),
            None => {}
        }
    }
    let polls = schema["properties"].get("wait_seconds").is_some() && !arguments.contains_key("wait_seconds");
    let after = last.answer.members()["poll_after_seconds"].as_u64().filter(|_| polls).unwrap_or(0);
    Ok(Advice { after, tool: tool.to_owned(), arguments: arguments.into() })
}

/// Returns the latest value of a member of an answer, or of an argument.
pub(super) fn latest_value(told: &Transcript, name: &str) -> Option<Value> {
    let value = |exchange: &Exchange| {
        let of = |members: &Value| members.get(name).filter(|value| !value.is_null()).cloned();
        of(exchange.answer.members()).or_else(|| of(&exchange.arguments))
    };
    told.exchanges().rev().find_map(value)
}

/// Splits a text into words: letters, digits and `_`.
pub(super) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns the numbers that follow a name: `wait_seconds 25`, `wait_seconds=25`. A number after a
/// colon quotes what the agent sent, and is not advice.
pub(super) fn numbers_after(text: &str, name: &str) -> impl Iterator<Item = u64> {
    text.split(name).skip(1).filter_map(|rest| {
        let rest = rest.trim_start_matches(['`', ' ', '=']);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::super::transcript::{Answer, Event, Origin};
    use super::*;
    use crate::harness::open_phones;
    use serde_json::json;
    use toolwarrant_testing::START;

    #[tokio::test]
    async fn the_words_of_an_answer_become_a_call() {
        let (server, key) = open_phones().await;
        let tools = server.list(&key).await;
        let power = json!({"device_id": "phone-2", "action": "restart"});
        let said = |words: &str| json!({"task_id": "T", "poll_after_seconds": 15, "next_step": words});
        let busy = |words: &str| json!({"message": words, "retryable": true, "retry_after_seconds": 9, "task_id": "T"});
        let refused = |words: &str| json!({"message": words, "retryable": false});
        let page = json!({"next_cursor": "70", "next_step": "More are left: call again with this cursor."});
        let cases = [
            (
                "set_power",
                &power,
                said("Call get_task with this task_id and wait_seconds 25."),
                r#"+0s get_task {"task_id":"T","wait_seconds":25}"#,
            ),
            ("set_power", &power, said("Call get_task with `wait_seconds`."), r#"+15s get_task {"task_id":"T"}"#),
            (
                "get_task",
                &json!({"wait_seconds": 25}),
                said("Call get_task again."),
                r#"+0s get_task {"task_id":"T","wait_seconds":25}"#,
            ),
            (
                "list_devices",
                &json!({"state": "restarting"}),
                page,
                r#"+0s list_devices {"cursor":"70","state":"restarting"}"#,
            ),
            (
                "set_power",
                &power,
                busy("Wait 9 s, then repeat."),
                r#"+9s set_power {"device_id":"phone-2","action":"restart"}"#,
            ),
            (
                "set_power",
                &power,
                busy("Call get_task with this `task_id`, then repeat this call."),
                r#"+0s get_task {"task_id":"T"}"#,
            ),
            (
                "set_power",
                &power,
                refused("It is stopped. set_power `boot` would change that."),
                r#"+0s set_power {"device_id":"phone-2","action":"boot"}"#,
            ),
            (
                "get_task",
                &power,
                refused("If it is lost, read the device with get_device."),
                r#"+0s get_device {"device_id":"phone-2"}"#,
            ),
            (
                "set_power",
                &power,
                refused("Choose a device (list_devices with `capability` `proxy`)."),
                r#"+0s list_devices {"capability":"proxy"}"#,
            ),
            ("set_power", &power, refused("Call get_task."), "nothing says which `task_id` get_task is to be given"),
            ("set_power", &power, refused("Ask the operator."), "it names no call"),
        ];
        for (tool, arguments, members, expected) in cases {
            let words = members.to_string();
            let answer = if members["message"].is_null() { Answer::Result(members) } else { Answer::Failure(members) };
            let (tool, arguments) = (tool.to_owned(), arguments.clone());
            let exchange = Exchange { origin: Origin::Scripted, tool, arguments, at: [START; 2], answer };
            let events = vec![Event::Called(exchange)];
            let advice = follow(&Transcript { tools: tools.clone(), instructions: String::new(), events });
            let shown = |Advice { after, tool, arguments }| format!("+{after}s {tool} {arguments}");
            assert_eq!(advice.map_or_else(|why| why, shown), expected, "{words}");
        }
    }
}
