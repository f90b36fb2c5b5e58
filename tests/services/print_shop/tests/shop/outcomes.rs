//! Every state in which a task can end, each with a machine that leads to it.

use crate::process::{Shop, json_of};
use print_shop::machines::{PRINTERS, TRAYS};
use serde_json::{Value, json};
use std::fmt::Write;

/// Writes to each machine, all at the same time, and lists the ends by machine.
#[tokio::test]
async fn each_machine_ends_its_task_as_its_habit_says() {
    let shop = Shop::start().await;
    let mut jobs = Vec::new();
    for printer in PRINTERS {
        let write = json!({"printer_id": printer.id, "mode": "fine"});
        jobs.push(("printer", printer.id, shop.call("print_page", write).await));
    }
    for tray in TRAYS {
        let write = json!({"tray_id": tray.id, "sheets": 100});
        jobs.push(("tray", tray.id, shop.call("fill_tray", write).await));
    }
    let mut told = String::new();
    for (kind, id, accepted) in jobs {
        match accepted {
            Ok(accepted) => {
                assert_eq!((&accepted["status"], &accepted["terminal"]), (&json!("dispatched"), &json!(false)));
                let job = shop.end(&accepted).await;
                let other = if kind == "tray" { "printer" } else { "tray" };
                let target = [kind, other].map(|kind| job[format!("{kind}_id")].clone());
                assert_eq!(target, [json!(id), Value::Null], "a job is on one machine");
                writeln!(told, "{kind} {id}: {}", outcome(&job)).expect("text");
            }
            Err(failure) => writeln!(told, "{kind} {id}: ({})", text(&failure["code"])).expect("text"),
        }
    }
    insta::assert_snapshot!(told, @r#"
    printer p-1: success; page_counter: expected more than 0 pages, observed 0 -> 1; reported success
    printer p-2: (not_supported)
    printer p-3: failed_silent, refunded; page_counter: expected more than 0 pages, observed 0 -> 0; reported success
    printer p-4: success; page_counter: expected more than 0 pages, observed 0 -> 1; reported no_answer
    printer p-5: timeout; page_counter: expected more than 0 pages, observed 0 -> 0; reported no_answer
    printer p-6: failed; page_counter: expected more than 0 pages, observed 0 -> 0; reported failure
    printer p-7: timeout; page_counter: expected a page more, observed the counter cannot be read; reported success
    printer p-gone: (upstream_unavailable)
    tray p-1: success_unverified; upstream_answer: expected the platform's answer, observed it says that it is done; reported success
    tray p-2: (not_supported)
    tray p-3: failed; upstream_answer: expected the platform's answer, observed it says that it failed; reported failure
    tray p-4: timeout; upstream_answer: expected the platform's answer, observed none that could be understood; reported no_answer
    tray p-gone: (upstream_unavailable)
    "#);
    let refunds = json_of(&shop.data, "refunds").await;
    let silent = json_of(&shop.data, "task list").await["tasks"].take();
    let silent: Vec<_> =
        silent.as_array().expect("tasks").iter().filter(|task| task["status"] == "failed_silent").collect();
    assert_eq!(
        (silent.len(), refunds.as_array().map(Vec::len)),
        (1, Some(1)),
        "the one refund is for the swallowed page"
    );
    assert_eq!(refunds[0]["task_id"], silent[0]["task_id"]);
}

/// Returns the end of a job with its evidence.
fn outcome(job: &Value) -> String {
    let Value::Object(evidence) = &job["evidence"] else { panic!("no evidence: {job}") };
    let [checked, expected, observed, reported] =
        ["checked", "expected", "observed", "reported"].map(|member| text(&evidence[member]));
    let refunded = if job["refund"].is_null() { "" } else { ", refunded" };
    format!(
        "{}{refunded}; {checked}: expected {expected}, observed {observed}; reported {reported}",
        text(&job["status"])
    )
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}
