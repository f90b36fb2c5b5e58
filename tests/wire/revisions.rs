//! The revisions of the protocol on one endpoint: the beginning, lists, answers and refusals of
//! each.

use crate::harness::revisions::{ask, body, headers, send};
use crate::harness::{Key, Server, Tenant, open_phones, outcome, phones};
use serde_json::{Value, json};
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_core::revision::Revision;
use toolwarrant_reader::{FALLBACK, REVISIONS};

const NEWEST: Revision = Revision::V2026_07_28;

fn with_handshake() -> impl Iterator<Item = Revision> {
    Revision::ALL.into_iter().filter(|revision| revision.features().handshake)
}

/// Shows only one tool: `catalogue` compares all with the contract.
async fn show(server: &Server, key: &Key, revision: Revision) -> String {
    let (method, params) = match revision.features().handshake {
        true => ("initialize", json!({"protocolVersion": revision.features().name, "capabilities": {}})),
        false => ("server/discover", json!({})),
    };
    let (_, mut begun) = ask(server, key, revision, method, params).await;
    let instructions = &mut begun["result"]["instructions"];
    *instructions = format!("{} characters", instructions.as_str().expect("text").chars().count()).into();
    let digest = &mut begun["result"]["_meta"]["toolwarrant/contract"]["digest"];
    *digest = format!("{} digits", digest.as_str().expect("text").len()).into();
    let (_, mut listed) = ask(server, key, revision, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array_mut().expect("tools");
    tools.truncate(1);
    for tool in tools {
        let description = &mut tool["description"];
        *description = format!("{} characters", description.as_str().expect("text").chars().count()).into();
        for member in ["inputSchema", "outputSchema"] {
            if let Some(schema) = tool.get_mut(member) {
                *schema = schema["properties"].as_object().expect("an object").keys().cloned().collect();
            }
        }
    }
    format!("{method}\n{begun:#}\n\ntools/list\n{listed:#}\n")
}

#[tokio::test]
async fn each_revision_begins_and_lists_as_shown() {
    let (server, key) = open_phones().await;
    for revision in Revision::ALL {
        let name = format!("phones_{}", revision.features().name);
        let shown = show(&server, &key, revision).await;
        insta::with_settings!({ snapshot_path => "../snapshots/revisions", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, shown);
        });
    }
}

/// A contract names revisions; the framework knows the features of each.
#[test]
fn the_compiler_and_the_server_know_the_same_revisions() {
    assert_eq!(Revision::ALL.map(|revision| revision.features().name), REVISIONS);
    assert_eq!(Revision::FALLBACK.features().name, FALLBACK);
}

#[tokio::test]
async fn the_version_is_2025_03_26_unless_another_that_is_served_is_asked_for() {
    let (server, key) = open_phones().await;
    let versions =
        |named: &[&str]| -> Vec<_> { named.iter().map(|name| ("mcp-protocol-version", (*name).to_owned())).collect() };
    let offers = [
        (json!("2025-11-25"), "2025-11-25"),
        (json!("2025-06-18"), "2025-06-18"),
        (json!("2025-03-26"), "2025-03-26"),
        (json!("2024-11-05"), "2025-03-26"),
        (json!("2026-07-28"), "2025-11-25"),
        (json!("2099-01-01"), "2025-03-26"),
        (json!(""), "2025-03-26"),
        (json!(7), "2025-03-26"),
        (Value::Null, "2025-03-26"),
    ];
    for (offered, agreed) in offers {
        let params = json!({"protocolVersion": offered, "capabilities": {}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        // The server ignores the version header of this request, because the request negotiates the
        // version.
        for named in [&[][..], &["2025-06-18"], &["2026-07-28"], &["2099-01-01"]] {
            let (status, answer) = send(server.post(&key), &versions(named), &body).await;
            let version = &answer["result"]["protocolVersion"];
            assert_eq!((status, version), (200, &json!(agreed)), "{offered} {named:?}: {answer}");
        }
    }
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let plain = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let (_, answer) = send(server.post(&key), &headers(NEWEST, &plain), &plain).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_devices"}});
    let rows: [(&[&str], bool); 7] = [
        (&[], false),
        (&["2024-11-05"], false),
        (&["2025-03-26"], false),
        (&["2025-06-18"], true),
        (&["2025-11-25"], true),
        (&["2025-03-26", "2025-03-26"], false),
        (&["2025-11-25", "2025-11-25"], true),
    ];
    for (named, structured) in rows {
        let (status, answer) = send(server.post(&key), &versions(named), &call).await;
        assert_eq!(status, 200, "{named:?}: {answer}");
        assert_eq!(answer["result"].get("structuredContent").is_some(), structured, "{named:?}: {answer}");
    }
    let (_, answer) = ask(&server, &key, NEWEST, "server/discover", json!({})).await;
    assert_eq!(answer["result"]["supportedVersions"], json!(REVISIONS), "{answer}");
}

#[tokio::test]
async fn an_unknown_revision_is_refused_with_those_that_are_served() {
    let (server, key) = open_phones().await;
    for (named, requested) in [
        (&["2099-01-01"][..], "2099-01-01"),
        (&[""], ""),
        (&["2025-03-26", "2025-11-25"], "2025-03-26, 2025-11-25"),
        (&["2025-03-26, 2025-03-26"], "2025-03-26, 2025-03-26"),
        (&["V2025-03-26"], "V2025-03-26"),
    ] {
        let headers: Vec<_> = named.iter().map(|name| ("mcp-protocol-version", (*name).to_owned())).collect();
        for method in ["tools/list", "ping", "server/discover", "no/such"] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method});
            let (status, answer) = send(server.post(&key), &headers, &body).await;
            let error = &answer["error"];
            assert_eq!(
                (status, &answer["id"], &error["code"]),
                (400, &json!(1), &json!(-32022)),
                "{named:?}: {answer}"
            );
            let data = &error["data"];
            assert_eq!((&data["supported"], &data["requested"]), (&json!(REVISIONS), &json!(requested)), "{answer}");
            assert_eq!(data["code"], "unsupported_protocol_version");
        }
    }
}

#[tokio::test]
async fn a_batch_is_refused_where_the_revision_has_none() {
    let (server, key) = open_phones().await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for revision in Revision::ALL {
        for batch in [json!([ping]), json!([]), json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}])] {
            let (status, answer) = send(server.post(&key), &headers(revision, &ping), &batch).await;
            if revision == Revision::FALLBACK {
                let served = if batch == json!([]) { 400 } else { 200 };
                assert!(status == served || status == 202, "{answer}");
                continue;
            }
            let (error, name) = (&answer["error"], revision.features().name);
            assert_eq!(
                (status, &answer["id"], &error["code"]),
                (400, &Value::Null, &json!(-32600)),
                "{name}: {answer}"
            );
            let why = format!("revision {name} has no batches; 2025-03-26 has");
            assert!(error["message"].as_str().is_some_and(|text| text.starts_with(&why)), "{answer}");
        }
    }
}

#[tokio::test]
async fn each_revision_has_its_own_methods() {
    let (server, key) = open_phones().await;
    let rows = [("tools/list", true, true), ("initialize", true, false), ("ping", true, false)];
    let rows = rows.into_iter().chain([("server/discover", false, true), ("prompts/list", false, false)]);
    for (method, with, without) in rows.chain([("tools/List", false, false), ("subscriptions/listen", false, false)]) {
        for revision in Revision::ALL {
            let (status, answer) = ask(&server, &key, revision, method, json!({})).await;
            let (served, unknown) = if revision.features().handshake { (with, 200) } else { (without, 404) };
            let expected = if served { 200 } else { unknown };
            assert_eq!((status, answer["result"].is_object()), (expected, served), "{method} {revision:?}: {answer}");
            if !served {
                assert_eq!(
                    (&answer["id"], &answer["error"]["code"]),
                    (&json!(1), &json!(-32601)),
                    "{method}: {answer}"
                );
            }
        }
        let (status, answer) = send(server.post(&key), &[], &body(Revision::FALLBACK, method, json!({}))).await;
        assert_eq!((status, answer["result"].is_object()), (200, with), "without a header, {method}: {answer}");
    }
}

#[tokio::test]
async fn a_result_without_a_handshake_states_its_type_its_server_and_its_lifetime() {
    let (server, key) = open_phones().await;
    let rows = [
        ("server/discover", json!({}), true),
        ("tools/list", json!({}), true),
        ("tools/call", json!({"name": "list_devices"}), false),
        ("tools/call", json!({"name": "get_device"}), false),
    ];
    for (method, params, kept) in rows {
        let (status, answer) = ask(&server, &key, NEWEST, method, params.clone()).await;
        let result = &answer["result"];
        assert_eq!((status, &result["resultType"]), (200, &json!("complete")), "{answer}");
        let made_by = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(
            (&made_by["name"], made_by["version"].is_string()),
            (&json!("service-cloudphone"), true),
            "{answer}"
        );
        let hints = (result["ttlMs"].as_u64(), result["cacheScope"].as_str());
        assert_eq!(hints, if kept { (Some(60_000), Some("private")) } else { (None, None) }, "{method}: {answer}");
        for revision in with_handshake() {
            let (_, answer) = ask(&server, &key, revision, method, params.clone()).await;
            for member in ["resultType", "_meta", "ttlMs", "cacheScope"] {
                assert!(answer["result"].get(member).is_none(), "{revision:?} {method}: {answer}");
            }
        }
    }
}

/// All lines of a header, or a part of the body, which `null` removes.
enum RequestEdit {
    Header(&'static str, &'static [&'static str]),
    Body(&'static str, Value),
}
use RequestEdit::{Body, Header};

async fn call_with(server: &Server, key: &Key, edits: &[RequestEdit]) -> (u16, Value) {
    let arguments = json!({"device_id": "phone-0000001"});
    let mut body = body(NEWEST, "tools/call", json!({"name": "get_device", "arguments": arguments}));
    let mut headers = headers(NEWEST, &body);
    for edit in edits {
        match edit {
            Header(name, values) => {
                headers.retain(|(known, _)| known != name);
                headers.extend(values.iter().map(|value| (*name, (*value).to_owned())));
            }
            Body(at, value) => {
                let (parent, member) = at.rsplit_once('/').expect("a pointer");
                let parent = body.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
                match value {
                    Value::Null => drop(parent.shift_remove(&member.replace('~', "/"))),
                    value => drop(parent.insert(member.replace('~', "/"), value.clone())),
                }
            }
        }
    }
    send(server.post(key), &headers, &body).await
}

#[tokio::test]
async fn headers_that_differ_from_the_body_are_refused_and_so_is_a_body_that_does_not_say_what_it_must() {
    const META: &str = "/params/_meta/io.modelcontextprotocol";
    const VERSION: &str = "/params/_meta/io.modelcontextprotocol~protocolVersion";
    const ABLE: &str = "/params/_meta/io.modelcontextprotocol~clientCapabilities";
    let (server, key) = open_phones().await;
    let mismatch = |edits: Vec<RequestEdit>, words: &'static str| (edits, 400, -32020, words);
    let malformed = |edits: Vec<RequestEdit>, words: &'static str| (edits, 400, -32602, words);
    let served = |edits: Vec<RequestEdit>| (edits, 200, 0, "");
    let rows = [
        served(vec![]),
        mismatch(vec![Header("mcp-method", &[])], "Mcp-Method is missing, and the body says `tools/call`"),
        mismatch(vec![Header("mcp-method", &["tools/list"])], "Mcp-Method is `tools/list`, and the body says"),
        mismatch(vec![Header("mcp-method", &["Tools/Call"])], "Mcp-Method is `Tools/Call`"),
        mismatch(vec![Header("mcp-method", &["tools/call", "tools/call"])], "Mcp-Method is given more than once"),
        mismatch(vec![Header("mcp-method", &["=?base64?dG9vbHMvY2FsbA==?="])], "Mcp-Method is `=?base64?"),
        served(vec![Header("mcp-method", &[" tools/call  "])]),
        mismatch(vec![Header("mcp-name", &[])], "Mcp-Name is missing, and the body says `get_device`"),
        mismatch(vec![Header("mcp-name", &["set_power"])], "Mcp-Name is `set_power`, and the body says `get_device`"),
        mismatch(vec![Header("mcp-name", &["get_device", "set_power"])], "Mcp-Name is given more than once"),
        mismatch(vec![Header("mcp-name", &["GET_DEVICE"])], "Mcp-Name is `GET_DEVICE`"),
        mismatch(vec![Header("mcp-name", &["g\u{e9}t_device"])], "Mcp-Name cannot be read"),
        served(vec![Header("mcp-name", &["\t get_device "])]),
        served(vec![Header("mcp-name", &["=?base64?Z2V0X2RldmljZQ==?="])]),
        mismatch(vec![Header("mcp-name", &["=?base64?Z2V0X2RldmljZQ?="])], "Mcp-Name cannot be read"),
        mismatch(vec![Header("mcp-name", &["=?base64?Z2V0!2Rldmlj?="])], "Mcp-Name cannot be read"),
        mismatch(vec![Header("mcp-name", &["=?base64?/w==?="])], "Mcp-Name cannot be read"),
        mismatch(vec![Header("mcp-name", &["=?BASE64?Z2V0X2RldmljZQ==?="])], "Mcp-Name is `=?BASE64?"),
        mismatch(vec![Header("mcp-name", &["=?base64?Z2V0X2RldmljZQ=="])], "Mcp-Name is `=?base64?"),
        mismatch(vec![Header("mcp-name", &["=?base64?="])], "Mcp-Name is `=?base64?="),
        mismatch(vec![Body("/params/name", json!("set_power"))], "and the body says `set_power`"),
        mismatch(vec![Body("/params/name", json!("g\u{e9}t"))], "Mcp-Name is `get_device`"),
        mismatch(vec![Body(VERSION, json!("2025-11-25"))], "MCP-Protocol-Version is `2026-07-28`, and the body says"),
        mismatch(vec![Body(VERSION, json!("v999"))], "and the body says `v999`"),
        malformed(vec![Body(VERSION, Value::Null)], "`_meta` lacks `io.modelcontextprotocol/protocolVersion`"),
        malformed(vec![Body(VERSION, json!(20_260_728))], "protocolVersion`, a string"),
        malformed(vec![Body(ABLE, Value::Null)], "`_meta` lacks `io.modelcontextprotocol/clientCapabilities`"),
        malformed(vec![Body(ABLE, json!([]))], "clientCapabilities`, an object"),
        malformed(vec![Body("/params/_meta", Value::Null)], "`params` lacks `_meta`"),
        malformed(vec![Body("/params/_meta", json!("2026-07-28"))], "`params` lacks `_meta`, an object"),
        malformed(vec![Body("/params", Value::Null)], "`params` lacks `_meta`"),
        malformed(vec![Body("/params", json!([1]))], "`params` is no object"),
        malformed(
            vec![Body("/params", json!(["get_device", {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}]))],
            "`params` is no object",
        ),
        malformed(vec![Body("/params/_meta", json!(["2026-07-28", {}]))], "`params` lacks `_meta`, an object"),
        served(vec![Body("/params/_meta/io.modelcontextprotocol~clientInfo", Value::Null)]),
        served(vec![Body(META, json!({"any": "thing"})), Body("/params/_meta/progressToken", json!(1))]),
        served(vec![Body("/params/requestState", json!("forged")), Body("/params/inputResponses", json!({"a": 1}))]),
    ];
    for (edits, status, code, words) in rows {
        let (got, answer) = call_with(&server, &key, &edits).await;
        let error = &answer["error"];
        assert_eq!((got, error["code"].as_i64().unwrap_or_default()), (status, code), "{words}: {answer}");
        assert_eq!(answer["id"], 1, "{answer}");
        assert!(
            status == 200 || error["message"].as_str().is_some_and(|text| text.contains(words)),
            "{words}: {answer}"
        );
    }
    let anonymous = [Body("/params/name", Value::Null), Header("mcp-name", &[])];
    let (status, answer) = call_with(&server, &key, &anonymous).await;
    assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32602)), "as in every revision: {answer}");
}

#[tokio::test]
async fn a_notification_is_taken_in_every_revision_without_a_word() {
    let (server, key) = open_phones().await;
    for revision in Revision::ALL {
        for method in ["notifications/initialized", "notifications/cancelled", "no/such"] {
            let note = json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}});
            let version = [("mcp-protocol-version", revision.features().name.to_owned())];
            assert_eq!(send(server.post(&key), &version, &note).await, (202, Value::Null), "{revision:?} {method}");
        }
    }
}

#[tokio::test]
async fn a_spent_budget_is_reported_in_every_revision_in_the_form_of_the_method() {
    for revision in Revision::ALL {
        let (server, keys) =
            phones(vec![Tenant { requests_per_minute: 1, ..Tenant::with(PermissionSet(u64::MAX)) }]).await;
        let list = async || ask(&server, &keys[0][0], revision, "tools/list", json!({})).await;
        assert!(list().await.1["result"].is_object());
        let (status, answer) = list().await;
        assert_eq!((status, &answer["error"]["data"]["code"]), (200, &json!("rate_limited")), "{answer}");
        let (status, answer) = ask(&server, &keys[0][0], revision, "tools/call", json!({"name": "list_devices"})).await;
        assert_eq!((status, &outcome(&answer).expect_err("refused")["code"]), (200, &json!("rate_limited")));
        let complete = answer["result"].get("resultType").is_some();
        assert_eq!(complete, !revision.features().handshake, "{answer}");
    }
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_may_send_the_headers_of_every_revision() {
    let (server, _) = open_phones().await;
    let preflight = server.http.request("OPTIONS".parse().expect("a method"), &server.url);
    let preflight = preflight.header("origin", "http://localhost:1").header("access-control-request-method", "POST");
    let response = preflight.send().await.expect("an answer");
    let allowed = response.headers()["access-control-allow-headers"].to_str().expect("text").to_ascii_lowercase();
    let allowed: Vec<_> = allowed.split(", ").collect();
    let call = body(NEWEST, "tools/call", json!({"name": "get_device"}));
    for (name, _) in headers(NEWEST, &call) {
        assert!(allowed.contains(&name), "{name} is not among {allowed:?}");
    }
}
