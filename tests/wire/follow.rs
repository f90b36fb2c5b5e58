//! The tasks extension of the protocol: a host follows a task by itself, and reads what `get_task`
//! says of it.

use crate::harness::revisions::{ask, body, headers, send};
use crate::harness::writes::{power, proxy};
use crate::harness::{Key, Server, Tenant, cast, mute_phones, phones};
use crate::phones::outcomes::ends;
use crate::wire::authority::take;
use cloudphone::phones::contract::CATALOGUE;
use rmcp::model::DetailedTask;
use serde_json::{Value, json};
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::access::{Granted, Grants};
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_core::revision::Revision;

const NEWEST: Revision = Revision::V2026_07_28;
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

async fn declare(server: &Server, key: &Key, method: &str, params: Value) -> Value {
    let mut body = body(NEWEST, method, params);
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": {EXTENSION: {}}});
    send(server.post(key), &headers(NEWEST, &body), &body).await.1
}

/// Reads a task as the official client does.
async fn follow(server: &Server, key: &Key, method: &str, params: Value) -> Value {
    let answer = declare(server, key, method, params).await;
    let Some(result) = answer.get("result") else { return answer };
    let is_task = result.get("taskId").is_some();
    assert_eq!(result["resultType"], if is_task && method == "tools/call" { "task" } else { "complete" }, "{answer}");
    if is_task {
        serde_json::from_value::<DetailedTask>(result.clone()).unwrap_or_else(|why| panic!("{why}: {answer}"));
        for time in ["createdAt", "lastUpdatedAt"] {
            serde_json::from_value::<Timestamp>(result[time].clone()).unwrap_or_else(|why| panic!("{why}: {answer}"));
        }
        assert!(result.get("ttlMs").is_some(), "{answer}");
    }
    answer
}

async fn begin(server: &Server, key: &Key, tool: &str, arguments: &Value) -> Value {
    follow(server, key, "tools/call", json!({"name": tool, "arguments": arguments})).await["result"].take()
}

async fn get(server: &Server, key: &Key, task_id: &Value) -> Value {
    follow(server, key, "tasks/get", json!({"taskId": task_id})).await
}

fn everything() -> Tenant {
    Tenant::with(PermissionSet(u64::MAX))
}

#[tokio::test]
async fn each_end_is_completed_with_the_result_of_the_tool_that_reads_tasks() {
    let (server, key, _) = cast().await;
    let mut shown = String::new();
    for (status, tool, arguments) in ends() {
        let task = begin(&server, &key, tool, &arguments).await;
        let (id, poll) = (&task["taskId"], &task["pollIntervalMs"]);
        assert_eq!((&task["resultType"], &task["status"], poll), (&json!("task"), &json!("working"), &json!(15_000)));
        let told = &task["_meta"]["toolwarrant/task"];
        let facts = [&told["task_id"], &told["status"], &told["terminal"], &told["idempotent_hit"]];
        assert_eq!(facts, [id, &json!("dispatched"), &json!(false), &json!(false)]);
        let first = get(&server, &key, id).await;
        assert_eq!(first["result"]["status"], "working", "{first}");
        server.end(&key, id).await;
        let end = get(&server, &key, id).await["result"].take();
        let read = json!({"name": "get_task", "arguments": {"task_id": id}});
        let (_, mut read) = ask(&server, &key, NEWEST, "tools/call", read).await;
        assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &read["result"].take()), "{tool}");
        let ended = &end["result"]["structuredContent"];
        assert_eq!((&ended["status"], &ended["finished_at"]), (&json!(status), &end["lastUpdatedAt"]));
        shown += &format!("{status}\n  {}\n  {}\n", first["result"]["statusMessage"], end["statusMessage"]);
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn who_does_not_declare_it_gets_what_it_got_before() {
    let (server, key, _) = cast().await;
    let mut phone = 0;
    for revision in Revision::ALL {
        for declared in [json!({}), json!({EXTENSION: true}), json!({EXTENSION: {}})] {
            phone += 1;
            let is_newest = revision == NEWEST;
            if is_newest && declared[EXTENSION].is_object() {
                continue;
            }
            let ask = async |method: &str, params: Value| {
                let mut body = body(revision, method, params);
                body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": declared});
                send(server.post(&key), &headers(revision, &body), &body).await
            };
            let call = json!({"name": "set_proxy", "arguments": proxy(phone, "k"), "task": {"ttl": 60_000}});
            let (_, answer) = ask("tools/call", call).await;
            let result = &answer["result"];
            assert_eq!(result.get("resultType"), is_newest.then(|| json!("complete")).as_ref(), "{answer}");
            let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().expect("text")).expect("JSON");
            assert_eq!((&text["status"], text.get("taskId")), (&json!("dispatched"), None));
            for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
                let (status, answer) = ask(method, json!({"taskId": text["task_id"]})).await;
                let expected = if is_newest { (400, -32021) } else { (200, -32601) };
                assert_eq!((status, answer["error"]["code"].as_i64()), (expected.0, Some(expected.1)), "{answer}");
                if is_newest {
                    let required = &answer["error"]["data"]["requiredCapabilities"];
                    assert_eq!(*required, json!({"extensions": {EXTENSION: {}}}));
                }
            }
        }
    }
}

#[tokio::test]
async fn it_is_declared_to_keys_that_can_use_it_and_their_hosts_are_told() {
    for (permission, is_offered) in [("device", true), ("device_read", false), ("stream", false)] {
        let granted = CATALOGUE.permissions.iter().find(|known| known.name == permission).expect("a permission").grants;
        let (server, keys) = phones(vec![Tenant::with(granted)]).await;
        let key = &keys[0][0];
        let plain = ask(&server, key, NEWEST, "server/discover", json!({})).await.1["result"].take();
        let told = declare(&server, key, "server/discover", json!({})).await["result"].take();
        assert_eq!(plain["capabilities"], told["capabilities"]);
        assert_eq!(plain["capabilities"]["extensions"].get(EXTENSION), is_offered.then(|| json!({})).as_ref());
        let [plain, told] = [plain, told].map(|it| it["instructions"].as_str().expect("text").to_owned());
        let also = told.strip_prefix(&plain).expect("the same and more");
        assert_eq!(also.contains("get_task") && also.starts_with("\nYour host may follow"), is_offered, "{also}");
        assert_eq!(also.is_empty(), !is_offered, "{also}");

        let (_, mut plain) = ask(&server, key, NEWEST, "tools/list", json!({})).await;
        for tool in plain["result"]["tools"].as_array_mut().expect("tools") {
            let makes_task = CATALOGUE.tool(tool["name"].as_str().expect("a name")).is_some_and(|it| it.task.is_some());
            if is_offered && makes_task {
                // The end of a task is no answer that this schema describes.
                tool.as_object_mut().and_then(|tool| tool.shift_remove("outputSchema")).expect("a schema");
            }
        }
        assert_eq!(declare(&server, key, "tools/list", json!({})).await, plain);
    }
}

#[tokio::test]
async fn a_repetition_has_the_same_task_and_another_write_of_its_key_none() {
    let (server, keys) = mute_phones(vec![everything()]).await;
    let key = &keys[0][0];
    let first = begin(&server, key, "set_proxy", &proxy(1, "k")).await;
    let again = begin(&server, key, "set_proxy", &proxy(1, "k")).await;
    assert_eq!((&again["taskId"], &again["createdAt"]), (&first["taskId"], &first["createdAt"]));
    assert_eq!(again["_meta"]["toolwarrant/task"]["idempotent_hit"], true);
    let other = begin(&server, key, "set_proxy", &proxy(2, "k")).await;
    let told = &other["structuredContent"];
    assert_eq!((&other["resultType"], &told["request_matches"]), (&json!("complete"), &json!(false)), "{other}");
    assert_eq!(told["task_id"], first["taskId"]);
}

#[tokio::test]
async fn a_wish_to_cancel_or_update_changes_nothing_and_polls_cost_a_request_each() {
    let tenant = Tenant { requests_per_minute: 8, ..everything() };
    let (server, keys) = mute_phones(vec![tenant]).await;
    let key = &keys[0][0];
    let task = begin(&server, key, "set_power", &power(1, "boot")).await;
    for method in ["tasks/cancel", "tasks/update"] {
        let told = follow(&server, key, method, json!({"taskId": task["taskId"], "inputResponses": {"a": {}}})).await;
        let members: Vec<_> = told["result"].as_object().expect("a result").keys().collect();
        assert_eq!(members, ["resultType", "_meta"], "{told}");
    }
    for _ in 0..5 {
        let state = get(&server, key, &task["taskId"]).await["result"].take();
        assert_eq!(state["status"], "working");
        assert!(state["statusMessage"].as_str().is_some_and(|text| text.contains("cannot be taken back")), "{state}");
        server.clock.advance(Duration::from_secs(1));
    }
    let spent = get(&server, key, &task["taskId"]).await;
    assert_eq!(spent["error"]["data"]["code"], "rate_limited", "{spent}");
    let audit = server.audit().await;
    let polls = audit.lines().filter(|line| line.contains("\"get_task\"") && line.contains("\"ok\"")).count();
    assert_eq!(polls, 7, "each has its line: {audit}");
}

#[tokio::test]
async fn a_task_is_read_by_those_whom_the_tool_answers_and_an_id_tells_nothing() {
    let sees = |phone: &str| Grants::nothing().with("device", Granted::some([phone]));
    let stream = Tenant { permissions: PermissionSet(0), ..everything() };
    let other = Tenant { grants: sees("phone-0000002"), ..everything() };
    let owner = Tenant { grants: sees("phone-0000001"), ..everything() };
    let (server, keys) = mute_phones(vec![owner, other, stream]).await;
    let [owner, other, nobody] = [0, 1, 2].map(|tenant| keys[tenant][0].clone());
    let task = begin(&server, &owner, "set_power", &power(1, "boot")).await;
    let id = &task["taskId"];

    let mut unseen = get(&server, &other, id).await;
    assert_eq!(unseen["error"]["code"], -32602, "{unseen}");
    for unknown in [json!(format!("task_{:032x}", 1)), json!("x"), json!(""), json!("x".repeat(900))] {
        assert_eq!(get(&server, &other, &unknown).await, unseen, "{unknown}");
    }
    for method in ["tasks/cancel", "tasks/update"] {
        assert_eq!(follow(&server, &other, method, json!({"taskId": id})).await, unseen, "{method}");
    }
    for malformed in [json!({}), json!({"taskId": 7}), json!({"taskId": null})] {
        unseen = follow(&server, &other, "tasks/get", malformed).await;
        assert_eq!(unseen["error"]["code"], -32602, "{unseen}");
    }
    let forbidden = get(&server, &nobody, id).await;
    assert_eq!(forbidden["error"]["data"]["code"], "forbidden", "{forbidden}");
    assert_eq!(get(&server, &nobody, &json!("x")).await, forbidden);

    take(&server, &owner, "the phone").await;
    assert_eq!(get(&server, &owner, id).await["result"]["status"], "working", "who made a task reads it");
    take(&server, &owner, "the key").await;
    let ended = get(&server, &owner, id).await;
    assert_eq!(ended["error"]["data"]["code"], "unauthenticated", "{ended}");
}

#[tokio::test]
async fn the_name_in_the_header_is_the_id_of_the_task_or_is_left_out() {
    let (server, key, _) = cast().await;
    let id = begin(&server, &key, "set_proxy", &proxy(1, "k")).await["taskId"].take();
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        let mut body = body(NEWEST, method, json!({"taskId": id}));
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": {EXTENSION: {}}});
        let named = headers(NEWEST, &body);
        let unnamed: Vec<_> = named.iter().filter(|(name, _)| *name != "mcp-name").cloned().collect();
        let other = |value: &str| [unnamed.clone(), vec![("mcp-name", value.to_owned())]].concat();
        let twice = [named.clone(), named.clone()].concat();
        for headers in [other("another"), other(""), other("=?base64?/w==?="), twice] {
            let (status, answer) = send(server.post(&key), &headers, &body).await;
            assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32020)), "{answer}");
            let message = answer["error"]["message"].as_str().expect("text");
            assert!(message.contains(method) && !message.contains("tools/call"), "{message}");
        }
        let answer = send(server.post(&key), &named, &body).await;
        assert_eq!((&answer, answer.0), (&send(server.post(&key), &unnamed, &body).await, 200), "{method}");
    }
}
