//! What an agent reads of a tool before it calls it: the descriptions in `tools/list`.

use crate::harness::open_phones;
use cloudphone::phones::contract::CATALOGUE as PHONES;
use toolwarrant_core::catalogue::ToolDef;

/// The description of each tool, as it is listed.
async fn descriptions() -> Vec<(&'static ToolDef, String)> {
    let (server, key) = open_phones().await;
    let text = |tool: &serde_json::Value| tool["description"].as_str().expect("a description").to_owned();
    let listed = server.list(&key).await;
    let told: Vec<_> = listed
        .iter()
        .map(|tool| (PHONES.tool(tool["name"].as_str().expect("a name")).expect("a tool"), text(tool)))
        .collect();
    assert_eq!(told.len(), PHONES.tools.len());
    told
}

fn assert_says(tool: &ToolDef, description: &str, words: &str) {
    assert!(description.contains(words), "{} does not say: {words}", tool.name);
}

#[tokio::test]
async fn every_description_has_the_arguments_preconditions_and_failures_of_its_tool() {
    for (tool, description) in descriptions().await {
        let says = |words: &str| assert_says(tool, &description, words);
        says("Use it when");
        says("Do not use it when");
        for arg in tool.args {
            says(&format!("\n- {} (", arg.name));
        }
        says(&format!("\nBefore you call: the key's application holds the permission `{}`", tool.permission.name));
        for error in tool.errors {
            says(&format!("\n- {} ({}retryable)", error.code, if error.retryable { "" } else { "not " }));
        }
    }
    assert!(PHONES.service.instructions.chars().count() <= 2048);
}

#[tokio::test]
async fn each_tool_that_needs_a_flag_names_it_and_says_to_decide_by_it_and_never_by_the_state() {
    let needs =
        [("set_proxy", "proxy"), ("clear_proxy", "proxy"), ("set_power", "power"), ("create_session", "session")];
    for (tool, description) in descriptions().await {
        let flag = needs.iter().find(|(name, _)| *name == tool.name).map(|(_, flag)| *flag);
        assert_eq!(description.contains("the device's `capabilities."), flag.is_some(), "{}", tool.name);
        if let Some(flag) = flag {
            assert_says(tool, &description, &format!("and the device's `capabilities.{flag}` is true"));
            assert_says(tool, &description, "Decide by `capabilities`, never by `state`");
        }
    }
}

#[tokio::test]
async fn every_description_says_to_repeat_with_backoff_what_is_retryable_and_nothing_else() {
    for (tool, description) in descriptions().await {
        assert_says(tool, &description, "Repeat a failed call only when its `retryable` is true, with backoff");
        assert_says(tool, &description, "otherwise change the call, choose another device, or report it");
    }
}

#[tokio::test]
async fn each_tool_that_needs_a_flag_tells_forbidden_from_not_supported() {
    for (tool, description) in descriptions().await {
        if tool.target.as_ref().is_some_and(|target| target.requires.is_some()) {
            assert_says(
                tool,
                &description,
                "`forbidden` concerns the key's permissions, `not_supported` the device's abilities",
            );
        }
    }
}

#[tokio::test]
async fn writes_and_get_task_say_to_poll_every_15_seconds_at_most_until_terminal_is_true() {
    for (tool, description) in descriptions().await {
        if ["set_proxy", "clear_proxy", "set_power", "get_task"].contains(&tool.name) {
            assert_says(tool, &description, "poll get_task no faster than every 15 s until `terminal` is true");
        }
    }
}

#[tokio::test]
async fn writes_and_get_task_say_what_each_state_means_and_does_not_mean() {
    for (tool, description) in descriptions().await {
        if ["set_proxy", "clear_proxy", "set_power", "get_task"].contains(&tool.name) {
            for words in [
                "\n- dispatched: The write was accepted and is on its way; it does not mean that it took effect.",
                "\n- success: The effect was measured on the device.",
                "\n- success_unverified: The platform reports success and nothing can be measured for this operation; it is not success.",
                "\n- failed: It definitely failed",
                "\n- failed_silent: The platform reported success, and the effect is measurably absent; it was refunded.",
                "\n- timeout: By the deadline nobody could tell whether it took effect; it is not a failure and is not refunded.",
                "only `failed_silent` is refunded",
            ] {
                assert_says(tool, &description, words);
            }
        }
    }
}

#[tokio::test]
async fn create_session_says_that_null_is_not_long_lived_and_to_issue_a_new_token() {
    for (tool, description) in descriptions().await {
        if tool.name == "create_session" {
            let words = "null means that the platform gave no expiry, not that it is long-lived: issue a new one when it stops working";
            assert_says(tool, &description, words);
        }
    }
}
