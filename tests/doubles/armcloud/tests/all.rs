//! The three interfaces of the double work together. The suites of the adapters use the rest of it.

use kit::{Process, get, send};
use serde_json::json;
use tokio::process::Command;

#[tokio::test]
async fn an_act_of_the_host_shows_in_the_state_and_the_journal_and_a_wrong_switch_is_refused() {
    let command = || Command::new(env!("CARGO_BIN_EXE_armcloud-double"));
    let mut serving = command();
    serving.args(["--pads", "1", "--set", "power_ms=0"]);
    let mut double = Process::start(serving).expect("it starts");
    let greeting = double.greeting().await.expect("a greeting");
    let [control, pad] = [&greeting["control"], &greeting["pads"][0]].map(|text| text.as_str().expect("a text"));
    let stopped = command().args(["act", "--control", control, "stop", pad]).status().await;
    assert!(stopped.expect("the act runs").success());

    let read = async |path: &str| get(&format!("{control}/{path}")).await.and_then(|answer| answer.json());
    let state = read("state").await.expect("a state");
    assert_eq!((&state["pads"][0]["pad_status"], &state["pads"][0]["online"]), (&json!(18), &json!(false)));
    let journal = read("journal").await.expect("lines");
    let did: Vec<_> = journal["entries"].as_array().expect("lines").iter().map(|line| &line["operation"]).collect();
    assert_eq!(did, [&json!(null), &json!("power_off")]);

    for (value, status, said) in [("never", 200, ""), ("sometimes", 400, "expected one of `never`, `always`, `show`")] {
        let set = send("PUT", &format!("{control}/pads/{pad}/switches"), &json!({"effect": value}).to_string()).await;
        let answer = set.expect("an answer");
        assert!(answer.status == status && answer.body.contains(said), "{answer:?}");
    }
}
