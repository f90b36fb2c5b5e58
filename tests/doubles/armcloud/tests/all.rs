//! The three interfaces of the double work together. The suites of the adapters use the rest of it.

use kit::DoubleProcess;
use serde_json::json;
use std::path::Path;
use tokio::process::Command;

#[tokio::test]
async fn an_act_of_the_host_shows_in_the_state_and_the_journal_and_a_wrong_switch_is_refused() {
    let program = Path::new(env!("CARGO_BIN_EXE_armcloud-double"));
    let double = DoubleProcess::start(program, &["--pads", "8", "--set", "power_ms=0"]).await.expect("it starts");
    let pad = &double.codes().await.expect("codes")[0];
    let control = double.greeting["control"].as_str().expect("a URL");
    let stopped = Command::new(program).args(["act", "--control", control, "stop", pad]).status().await;
    assert!(stopped.expect("the act runs").success());

    let state = double.get(&format!("pads/{pad}")).await.expect("a state");
    assert_eq!((&state["pad_status"], &state["online"]), (&json!(18), &json!(false)));
    let journal = double.journal().await.expect("lines");
    let did: Vec<_> = journal.iter().filter(|line| line["kind"] == "did").map(|line| &line["operation"]).collect();
    assert_eq!(did, [&json!("power_off")]);

    double.switch(Some(pad), &json!({"effect": "never"})).await.expect("a switch");
    let refused = double.switch(Some(pad), &json!({"effect": "sometimes"})).await.expect_err("no value of it");
    assert!(
        format!("{refused}").contains("unknown variant `sometimes`, expected one of `never`, `always`, `show`"),
        "{refused}"
    );
}
