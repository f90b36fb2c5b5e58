//! The effect of each switch of a call on a request and its answer.

use crate::harness::{ARMCLOUD, Double, VMOS, json_of};
use reqwest::Response;
use serde_json::{Value, json};
use std::time::Duration;

/// The client's view of a restart; `did` is true if the restart happened.
struct Case {
    switches: Value,
    seen: &'static str,
    did: bool,
}

fn case(switches: Value, seen: &'static str, did: bool) -> Case {
    Case { switches, seen, did }
}

#[tokio::test]
async fn each_switch_of_a_call_shows_in_the_answer_and_acts_or_does_not() {
    let double = Double::start(&["--pads", "200", "--set", "online_ms=0"]).await;
    let state = double.get("state").await;
    let pads = state["pads"].as_array().unwrap().iter().filter(|pad| pad["kind"] == "ordinary");
    let mut pads = pads.map(|pad| pad["pad_code"].as_str().unwrap().to_owned());
    let cases = [
        case(json!({}), "200 code 200 task", true),
        case(json!({"drop_before_acting": true}), "no answer", false),
        case(json!({"drop_after_acting": true}), "no answer", true),
        case(json!({"reset_before_answer": true}), "no answer", true),
        case(json!({"reset_after_first_byte": true}), "no answer", true),
        case(json!({"half_body": true}), "200 half", true),
        case(json!({"stall_ms": 600_000}), "late", false),
        case(json!({"stall_answer_ms": 600_000}), "late", true),
        case(json!({"code": 500}), "200 code 500", false),
        case(json!({"code": 503}), "200 code 503", false),
        case(json!({"code": 100_010}), "200 code 100010", false),
        case(json!({"code": 110_012}), "200 code 110012", false),
        case(json!({"code": 429}), "429 code 429", false),
        case(json!({"code": 2019}), "401 code 2019", false),
        case(json!({"code": 2031}), "401 code 2031", false),
        case(json!({"code": 1116}), "401 code 1116", false),
        case(json!({"code_after_acting": 100_011}), "200 code 100011", true),
        case(json!({"status_after_acting": 502}), "502 html", true),
        case(json!({"http_status": 404}), "404 html", false),
        case(json!({"http_status": 502}), "502 html", false),
        case(json!({"redirect": "http://192.0.2.1/"}), "302 html", false),
        case(json!({"shape": "object_instead_of_array"}), "200 code 200 object", true),
        case(json!({"shape": "records"}), "200 code 200 object", true),
        case(json!({"shape": "string_code"}), "200 code \"200\" task", true),
        case(json!({"shape": "code_zero"}), "200 code 0 task", true),
        case(json!({"shape": "string_numbers"}), "200 code 200 text", true),
        case(json!({"shape": "null_data"}), "200 code 200 null", true),
        case(json!({"shape": "no_data"}), "200 code 200 nothing", true),
        case(json!({"shape": "html"}), "200 html", true),
        case(json!({"shape": "not_json"}), "200 no JSON", true),
        case(json!({"shape": "no_body"}), "200 empty", true),
        case(json!({"shape": "deep"}), "200 no JSON", true),
        case(json!({"body_bytes": 3_000_000}), "200 code 200 task of 3 MB", true),
        case(json!({"echo_pad_code": "AC999"}), "200 code 200 task of AC999", true),
        case(json!({"missing_row": true}), "200 code 200 no row", true),
        case(json!({"unknown_pad": true}), "200 code 110028", false),
        case(json!({"unknown_pad": true, "unknown_pad_answer": "2020"}), "200 code 2020", false),
        case(json!({"unknown_pad": true, "unknown_pad_answer": "110042"}), "200 code 110042", false),
        case(json!({"unknown_pad": true, "unknown_pad_answer": "missing_row"}), "200 code 200 no row", false),
        case(json!({"rate_per_second": 0}), "429 code 429", false),
        case(json!({"only_scheme": "v4"}), "401 code 2032", false),
        case(json!({"drop_after_acting": {"value": true, "endpoint": "setProxy"}}), "200 code 200 task", true),
        case(json!({"drop_before_acting": {"value": true, "endpoint": "restart", "calls": 1}}), "no answer", false),
    ];
    for Case { switches, seen, did } in cases {
        let pad = pads.next().unwrap();
        double.set(&pad, switches.clone()).await;
        let body = json!({"padCodes": [pad]});
        let restart = double.send("restart", &body);
        let limit = Duration::from_secs(if seen == "late" { 1 } else { 60 });
        let answer = match tokio::time::timeout(limit, restart).await {
            Ok(answer) => describe(answer, &pad).await,
            Err(_) => "late".to_owned(),
        };
        assert_eq!(answer, seen, "{switches}");
        // A second restart ends after everything that came before it.
        double.set(&pad, json!({})).await;
        let task = double.submit("restart", &pad, json!({})).await;
        double.wait_for_end(task).await;
        assert_eq!(double.did(&pad).await.len(), 1 + usize::from(did), "{switches}");
    }
}

async fn describe(answer: reqwest::Result<Response>, pad: &str) -> String {
    let Ok(answer) = answer else { return "no answer".to_owned() };
    let status = answer.status().as_u16();
    let length = answer.content_length().unwrap_or_default();
    let is_html = answer.headers()["content-type"] == "text/html";
    let Ok(text) = answer.text().await else { return format!("{status} half") };
    if is_html {
        return format!("{status} html");
    }
    if text.is_empty() {
        return format!("{status} empty");
    }
    let Ok(envelope) = serde_json::from_str::<Value>(&text) else { return format!("{status} no JSON") };
    let data = match envelope.get("data") {
        _ if !["200", "0", "\"200\""].contains(&envelope["code"].to_string().as_str()) => String::new(),
        None => " nothing".to_owned(),
        Some(Value::Null) => " null".to_owned(),
        Some(Value::Object(_)) => " object".to_owned(),
        Some(Value::Array(rows)) => match rows.as_slice() {
            [] => " no row".to_owned(),
            [row] if row["taskId"].is_string() => " text".to_owned(),
            [row] if row["padCode"] != pad => format!(" task of {}", row["padCode"].as_str().unwrap_or_default()),
            _ if length > 1_000_000 => format!(" task of {} MB", length / 1_000_000),
            _ => " task".to_owned(),
        },
        Some(other) => format!(" {other}"),
    };
    format!("{status} code {}{data}", envelope["code"])
}

#[tokio::test]
async fn too_many_calls_are_answered_with_a_time_to_wait() {
    let double = Double::start(&["--set", "rate_per_second=1", "--set", "rate_reset_s=7"]).await;
    let body = json!({"page": 1, "rows": 10});
    let refused = loop {
        let answer = double.send("infos", &body).await.unwrap();
        if answer.status() == 429 {
            break answer;
        }
    };
    let header = |name: &str| refused.headers()[name].to_str().unwrap().to_owned();
    let (reset, kind) = (header("x-ratelimit-reset"), header("x-ratelimit-type"));
    let envelope = json_of(refused).await;
    assert_eq!(envelope["ts"].as_i64().unwrap() / 1_000 + 7, reset.parse::<i64>().unwrap());
    assert_eq!((kind.as_str(), &envelope["data"]), ("qps", &Value::Null));
}

#[tokio::test]
async fn signatures_are_verified_by_the_platforms_clock_and_rules() {
    let double = Double::start(&[]).await;
    let (pad, path) = (double.pads[0].clone(), format!("{VMOS}/asyncCmd"));
    let command = json!({"padCodes": [pad], "scriptContent": "echo"});
    let code = |late| {
        let (double, path, command) = (&double, &path, &command);
        async move { json_of(double.send_to(path, command, late).await.unwrap()).await["code"].clone() }
    };
    assert_eq!((code(0).await, code(290).await, code(320).await), (json!(200), json!(200), json!(2033)));
    double.set_all(json!({"clock_skew_s": -320})).await;
    assert_eq!((code(0).await, code(320).await), (json!(2033), json!(200)));
    double.set_all(json!({"command_signature": "empty"})).await;
    assert_eq!(code(0).await, 2019);
    double.set_all(json!({"command_signature": "body"})).await;
    assert_eq!(code(0).await, 200);
    double.set_all(json!({"command_signature": "empty", "bad_signature_code": 100_004})).await;
    assert_eq!(code(0).await, 100_004);
    double.set_all(json!({"only_scheme": "v4"})).await;
    let refused = double.call("infos", &json!({})).await;
    assert_eq!(
        (&refused["code"], &refused["msg"]),
        (&json!(2032), &json!("required header is missing: Authorization"))
    );
}

#[tokio::test]
async fn unknown_pads_and_invalid_parameters_are_refused() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    let cases = [
        ("restart", json!({}), 100_000),
        ("restart", json!({"padCodes": [pad, pad]}), 110_027),
        ("restart", json!({"padCodes": ["AC1"]}), 110_028),
        ("padInfo", json!({"padCode": "AC1"}), 2020),
        ("padTaskDetail", json!({}), 100_000),
        ("setProxy", json!({"padCodes": [pad]}), 100_000),
        ("setProxy", json!({"padCodes": [pad], "enable": true, "ip": "x", "port": "1080"}), 100_000),
        ("setProxy", json!({"padCodes": [pad], "enable": true, "ip": "x", "port": 1, "account": "a|b"}), 100_000),
        ("asyncCmd", json!({"padCodes": [pad], "cmd": "id"}), 100_000),
        ("infos", json!({"rows": 10}), 100_000),
        ("syncCmd", json!([]), 100_000),
    ];
    for (endpoint, body, code) in cases {
        assert_eq!(double.call(endpoint, &body).await["code"], code, "{endpoint} {body}");
    }
    let vsphone = double.call_at("/vsphone/api/padApi/infos", &json!({"page": 1, "rows": 10})).await;
    assert_eq!(vsphone["data"]["size"], 10);
    for path in
        ["/vcpcloud/api/padApi/padDetails", "/vcpcloud/open/network/proxy/info", "/openapi/open/pad/userPadList", "/"]
    {
        assert_eq!(double.send_to(path, &json!({}), 0).await.unwrap().status(), 404, "{path}");
    }
    assert_eq!(double.call("padTaskDetail", &json!({"taskIds": [1]})).await["data"], json!([]));
}

#[tokio::test]
async fn an_exit_is_read_by_a_task_where_that_call_is_there() {
    let double = Double::start(&["--set", "proxy_info=true"]).await;
    let pad = &double.pads[0];
    for path in ["/vcpcloud/open/network/proxy/info".to_owned(), format!("{ARMCLOUD}/network/proxy/info")] {
        let answer = double.call_at(&path, &json!({"padCodes": [pad]})).await;
        let ended = double.wait_for_end(answer["data"][0]["taskId"].as_u64().unwrap()).await;
        assert_eq!(ended["taskResult"], armcloud_double::addresses::of_pad(0).to_string());
    }
}
