//! The targets that an application sees: granted by resource and id, so that a tray is not the
//! printer with the same id.

use crate::process::{Shop, call, json_of, says};
use serde_json::{Value, json};

#[tokio::test]
async fn a_grant_of_a_tray_shows_no_printer_of_the_same_name() {
    let shop = Shop::start().await;
    let feeder = shop.application("feeder", &["print", "service"]).await;
    says(&shop.operator.data, "tray assign feeder p-1", 0, "").await;
    let ask = async |tool, arguments| call(shop.address, &feeder, tool, arguments).await;
    let code = |answer: Result<Value, Value>| answer.expect_err("it is refused")["code"].clone();

    assert_eq!(ask("list_machines", json!({})).await, Ok(json!({"printers": [], "trays": ["p-1"]})));
    ask("get_tray", json!({"tray_id": "p-1"})).await.expect("its tray");
    for (tool, arguments) in
        [("get_printer", json!({})), ("clean_rollers", json!({})), ("print_page", json!({"mode": "draft"}))]
    {
        let on = |id: &str| [arguments.clone(), json!({"printer_id": id})].into_iter().fold(json!({}), merge);
        let [there, nowhere] = [ask(tool, on("p-1")).await, ask(tool, on("p-9")).await];
        assert_eq!(there, nowhere, "{tool}: it cannot be told from one that does not exist");
        assert_eq!(code(there), "not_found", "{tool}");
    }
    assert_eq!(code(ask("get_tray", json!({"tray_id": "p-2"})).await), "not_found");

    // Of the tasks of another application, it sees only the one on its own tray.
    let page = shop.call("print_page", json!({"printer_id": "p-1", "mode": "draft"})).await.expect("a job");
    let paper = shop.call("fill_tray", json!({"tray_id": "p-1", "sheets": 5})).await.expect("a job");
    let read = async |job: &Value| ask("get_job", json!({"task_id": job["task_id"], "wait_seconds": 0})).await;
    assert_eq!(code(read(&page).await), "not_found");
    assert_eq!(read(&paper).await.expect("a job")["tray_id"], "p-1");

    let seen_by = async |resource: &str| {
        json_of(&shop.operator.data, &format!("{resource} list --limit 1")).await[0]["applications"].clone()
    };
    assert_eq!([seen_by("printer").await, seen_by("tray").await], [json!(["demo"]), json!(["demo", "feeder"])]);
}

#[tokio::test]
async fn unassigning_an_id_of_one_resource_leaves_the_other_resource_assigned() {
    let shop = Shop::start().await;
    let feeder = shop.application("feeder", &["look"]).await;
    for line in ["tray assign feeder p-1 p-3", "printer assign feeder p-1", "tray unassign feeder p-1"] {
        says(&shop.operator.data, line, 0, "").await;
    }
    let floor = call(shop.address, &feeder, "list_machines", json!({})).await;
    assert_eq!(floor, Ok(json!({"printers": ["p-1"], "trays": ["p-3"]})));
}

/// Each id begins with `p-` and has at least three characters, so `p-` and `p` are no ids.
#[tokio::test]
async fn a_grant_by_a_beginning_that_is_no_id_itself_shows_the_ids_that_begin_so() {
    let shop = Shop::start().await;
    let feeder = shop.application("feeder", &["look"]).await;
    for line in ["printer set feeder p-*", "printer set feeder p*", "printer assign feeder --prefix p-"] {
        says(&shop.operator.data, line, 0, "").await;
        let floor = call(shop.address, &feeder, "list_machines", json!({})).await.expect("a floor");
        assert_eq!(floor["printers"][0], "p-1", "{line}");
    }
    for prefix in ["q", "p-A", "p-12345678"] {
        says(&shop.operator.data, &format!("printer set feeder {prefix}*"), 1, "can begin with").await;
    }
    says(&shop.operator.data, "printer list --prefix p- --limit 1", 0, "p-1").await;
}

fn merge(mut whole: Value, part: Value) -> Value {
    if let (Value::Object(whole), Value::Object(part)) = (&mut whole, part) {
        whole.extend(part);
    }
    whole
}
