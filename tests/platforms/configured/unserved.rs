//! A platform that answers 404 to a call, once or for long: the reports about it, and the way back.

use super::{end, id, lab};
use crate::harness::program::{WATCHED, get};
use serde_json::{Value, json};

#[tokio::test]
async fn one_404_to_a_call_that_never_worked_makes_a_capability_false_with_the_reason_and_a_check_brings_it_back() {
    let (site, double, program) = lab(2, "", WATCHED).await;
    let phone = json!({"device_id": id("lab", &double.codes().await[0])});
    let missing = json!({"http_status": {"value": 404, "endpoint": "setProxy", "calls": 1}});
    double.switch(None, &missing).await;
    let failed = end(&program, "clear_proxy", phone.clone()).await;
    assert_eq!((&failed["status"], &failed["evidence"]["reported"]), (&json!("failed"), &json!("failure")), "{failed}");
    let observed = failed["evidence"]["observed"].as_str().expect("text");
    assert!(observed.starts_with("refused by the platform with 404"), "{observed}");
    assert_eq!(site.ledger().get("reversal"), None, "it may have acted before it refused");

    let shown = program.call("get_device", phone.clone()).await.expect("a phone");
    assert_eq!((&shown["capabilities"]["proxy"], &shown["capabilities"]["power"]), (&json!(false), &json!(true)));
    assert!(shown["notes"].to_string().contains("does not serve this operation at present"), "{shown}");
    let refused = program.call("clear_proxy", phone.clone()).await.expect_err("it is not offered");
    assert_eq!(refused["code"], "not_supported", "{refused}");
    assert_eq!(double.requests("setProxy").await.len(), 1, "nothing is sent during the pause");
    let (code, list) = site.operate("platform list --json").await;
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let unserved = list[0]["unserved"][0].as_str().unwrap_or_default();
    assert!(code == 0 && unserved.starts_with("setProxy (404, tried again in "), "{list}");
    let (status, _, ready) = get(&format!("{}/readyz", program.monitor())).await;
    assert!(status == 200 && ready.contains("the upstream lab (armcloud) does not serve setProxy"), "{ready}");
    let (_, _, metrics) = get(&format!("{}/metrics", program.monitor())).await;
    assert!(metrics.contains("cloudphone_upstream_unserved_calls{upstream=\"lab\"} 1"), "{metrics}");
    let log = program.log();
    assert!(log.contains("this call is tried again after the pause; check base-url"), "{log}");

    let (_, told) = site.operate("platform check lab").await;
    assert!(told.contains("the platform has answered 404 to setProxy; the next such call tries again"), "{told}");
    let cleared = end(&program, "clear_proxy", phone.clone()).await;
    assert_eq!(cleared["status"], "success_unverified", "{cleared}");
    let (_, _, ready) = get(&format!("{}/readyz", program.monitor())).await;
    assert!(!ready.contains("does not serve"), "{ready}");
    // The call has worked by now, so one such answer takes nothing away.
    double.switch(None, &missing).await;
    assert_eq!(end(&program, "clear_proxy", phone.clone()).await["status"], "failed");
    let (_, _, ready) = get(&format!("{}/readyz", program.monitor())).await;
    assert!(ready.contains("does not serve setProxy, which is tried again with the next such call"), "{ready}");
    let shown = program.call("get_device", phone).await.expect("a phone");
    assert_eq!(shown["capabilities"]["proxy"], true, "{shown}");
}
