//! Operations in the platform's usual way, and their effect on lists.

use crate::harness::{ARMCLOUD, Double};
use serde_json::{Value, json};

#[tokio::test]
async fn a_restart_goes_through_11_and_is_done_before_the_pad_is_online_again() {
    let double = Double::start(&["--set", "restart_ms=200", "--set", "online_ms=200"]).await;
    let pad = &double.pads[0];
    let before = double.truth(pad).await;
    let task = double.submit("restart", pad, json!({})).await;
    let infos = json!({"page": 1, "rows": 10, "padCodes": [pad]});
    double.until("infos", &infos, |answer| answer["data"]["pageData"][0]["padStatus"] == 11).await;
    let ended = double.wait_for_end(task).await;
    assert_eq!((&ended["taskStatus"], &ended["padCode"]), (&json!(3), &json!(pad)));
    let after = double.truth(pad).await;
    assert_eq!(
        (&after["pad_status"], &after["online"], &after["cvm_status"]),
        (&json!(10), &json!(false), &json!(102))
    );
    assert!(after["started"].as_u64() > before["started"].as_u64());
    assert_eq!(after["boot_id"], before["boot_id"]);
    double.until("userPadList", &json!({"padCode": pad}), |answer| answer["data"][0]["cvmStatus"] == 100).await;
    assert_eq!(double.truth(pad).await["online"], true);
    assert_eq!(double.did(pad).await, ["restart"]);
}

#[tokio::test]
async fn a_pad_that_starts_again_is_not_online_before_its_last_start_is() {
    let double = Double::start(&["--set", "restart_ms=0", "--set", "online_ms=200"]).await;
    let (pad, other) = (&double.pads[0], &double.pads[1]);
    let restart = |pad| {
        let double = &double;
        async move { double.wait_for_end(double.submit("restart", pad, json!({})).await).await }
    };
    restart(pad).await;
    double.set(pad, json!({"online_ms": 600_000})).await;
    restart(pad).await;
    // The other pad comes online later than the first start of this pad would.
    restart(other).await;
    double.until("userPadList", &json!({"padCode": other}), |answer| answer["data"][0]["cvmStatus"] == 100).await;
    assert_eq!(double.truth(pad).await["online"], false);
}

#[tokio::test]
async fn a_proxy_is_set_at_the_end_of_its_task_and_cleared_again_and_the_journal_has_no_password() {
    let double = Double::start(&["--set", "task_ms=200"]).await;
    let pad = &double.pads[1];
    let proxy = json!({"enable": true, "ip": "203.0.113.7", "port": 1080, "account": "user", "password": "hunter2", "proxyName": "socks5"});
    let task = double.submit("setProxy", pad, proxy).await;
    assert_eq!(double.truth(pad).await["proxy"], Value::Null);
    double.wait_for_end(task).await;
    let set = double.truth(pad).await["proxy"].clone();
    // SHA-256 of `user:hunter2`.
    let login = "277880dd89cb42d055c35348fba850f5a1688dae2a42df036fb883d431b3465a";
    assert_eq!((&set["host"], &set["login"]), (&json!("203.0.113.7"), &json!(login)));
    let journal = double.get("journal").await.to_string();
    assert!(journal.contains("203.0.113.7") && !journal.contains("hunter2"), "{journal}");
    let wrong_names = json!({"enable": true, "proxyIp": "203.0.113.8", "proxyPort": 1080});
    let nothing = double.submit("setProxy", pad, wrong_names).await;
    assert_eq!(double.wait_for_end(nothing).await["taskStatus"], 3);
    assert_eq!(double.truth(pad).await["proxy"], set, "fields of other names are ignored");
    let cleared = double.submit("setProxy", pad, json!({"enable": false})).await;
    double.wait_for_end(cleared).await;
    assert_eq!(double.truth(pad).await["proxy"], Value::Null);
}

#[tokio::test]
async fn pads_of_each_kind_are_turned_off_and_on_by_their_own_calls() {
    let double = Double::start(&[]).await;
    let (ordinary, timing, storage) = (&double.pads[0], &double.pads[6], &double.pads[7]);
    assert!(storage.starts_with("ACN"));
    let refused = double.call("timingPadOff", &json!({"padCodes": [ordinary]})).await;
    assert_eq!(refused["code"], 500);
    let off = double.call("timingPadOff", &json!({"padCodes": [timing]})).await;
    assert_eq!((&off["code"], &off["data"]), (&json!(200), &Value::Null));
    let infos = json!({"page": 1, "rows": 10, "padCodes": [timing]});
    double.until("infos", &infos, |answer| answer["data"]["pageData"][0]["padStatus"] == 18).await;
    assert_eq!(double.call("restart", &json!({"padCodes": [timing]})).await["code"], 110_031);
    double.call("timingPadOn", &json!({"padCodes": [timing]})).await;
    double.until("infos", &infos, |answer| answer["data"]["pageData"][0]["padStatus"] == 10).await;

    let call = |what: &str| format!("{ARMCLOUD}/pad/v2/net/storage/batch/{what}");
    let both = json!({"padCodes": [storage, ordinary], "timeout": 300});
    let off = double.call_at(&call("off"), &both).await["data"].clone();
    assert_eq!(off["successList"][0]["padCode"], *storage);
    assert_eq!(off["failList"][0]["errCode"], 110_071);
    double.wait_for_end(off["successList"][0]["taskId"].as_u64().unwrap()).await;
    let again = double.call_at(&call("off"), &json!({"padCodes": [storage]})).await;
    assert_eq!(again["data"]["failList"][0]["errCode"], 111_078);
    let on = double.call_at(&call("boot/on"), &json!({"padCodes": [storage]})).await;
    double.wait_for_end(on["data"]["successList"][0]["taskId"].as_u64().unwrap()).await;
    assert_eq!(double.did(storage).await, ["power_off", "power_on"]);
}

#[tokio::test]
async fn commands_answer_through_their_task_or_at_once() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[2];
    assert_eq!(double.shell(pad, "echo out; echo err >&2; exit 3").await, "out\nerr\n");
    let at_once =
        double.call("syncCmd", &json!({"padCode": pad, "scriptContent": "echo out"})).await["data"][0].clone();
    assert_eq!((&at_once["taskResult"], &at_once["errorMsg"]), (&json!("Success"), &json!("out\n")));
    double.set(pad, json!({"sync_limit_ms": 300})).await;
    let late = double.call("syncCmd", &json!({"padCode": pad, "scriptContent": "sleep 20"})).await;
    assert_eq!(late["code"], 110_012);
    let cut = double.shell(pad, "i=0; while [ $i -lt 900 ]; do echo 12345678; i=$((i+1)); done").await;
    assert_eq!(cut.len(), 2_000);
}

#[tokio::test]
async fn screens_have_tokens_of_their_pad_which_end_one_by_one_or_together() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[3];
    let token = || async { double.call("stsTokenByPadCode", &json!({"padCode": pad})).await["data"]["token"].clone() };
    let (first, second) = (token().await, token().await);
    assert_ne!(first, second);
    assert_eq!(double.call("clearStsToken", &json!({"token": first})).await["code"], 200);
    assert_eq!(double.call("clearStsToken", &json!({"token": first})).await["code"], 120_008);
    let dissolve = json!({"padCodes": [pad, double.pads[4]]});
    let dissolved = double.call("dissolveRoom", &dissolve).await["data"].clone();
    assert_eq!(dissolved["successList"][0]["padCode"], *pad);
    assert_eq!(dissolved["failList"][0]["errorCode"], 120_004);
    assert_eq!(double.call("clearStsToken", &json!({"token": second})).await["code"], 120_008);
    assert!(!double.get("journal").await.to_string().contains(second.as_str().unwrap()));
}

#[tokio::test]
async fn a_seat_keeps_its_number_when_its_pad_is_replaced_and_the_change_is_listed() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[5];
    let seat = double.call("userPadList", &json!({"padCode": pad})).await["data"][0]["equipmentId"].clone();
    let replaced = double.post(&format!("pads/{pad}/replace")).await;
    let new = replaced["new"].as_str().unwrap();
    let listed = double.call("userPadList", &json!({"equipmentIds": [seat]})).await;
    assert_eq!(listed["data"][0]["padCode"], new);
    assert_eq!(double.call("padInfo", &json!({"padCode": pad})).await["code"], 2020);
    let changes = double.call("queryPadIdChangeRecords", &json!({})).await["data"][0].clone();
    assert_eq!((&changes["oldPadCode"], &changes["newPadCode"]), (&json!(pad), &json!(new)));
    assert_eq!(double.did(pad).await, ["replace"]);
}

#[tokio::test]
async fn a_fleet_of_ten_thousand_is_listed_in_pages_and_as_a_whole() {
    let double = Double::start(&["--pads", "10000"]).await;
    let first = double.call("infos", &json!({"page": 1, "rows": 1000})).await["data"].clone();
    assert_eq!((&first["total"], &first["totalPage"], &first["size"]), (&json!(10_000), &json!(10), &json!(1_000)));
    let last = double.call_at(&format!("{ARMCLOUD}/pad/padDetails"), &json!({"page": 10, "rows": 1000})).await;
    assert_eq!(last["data"]["pageData"].as_array().unwrap().len(), 1_000);
    assert_eq!(last["data"]["pageData"][999]["online"], 1);
    assert_eq!(double.call("infos", &json!({"page": 1, "rows": 1001})).await["code"], 100_000);
    let seats = double.call("userPadList", &json!({})).await;
    assert_eq!(seats["data"].as_array().unwrap().len(), 10_000);
    let some = double.call("modelInfo", &json!({"padCodes": [double.pads[0]]})).await;
    assert_eq!(some["data"][0]["width"], 1_080);
}
