//! The same calls over every transport: each revision of `/mcp`, `/v1` and the bridge. Each
//! transport has a server of its own. All must give the same answers, audit lines and charges.

use crate::harness::bridge::Bridge;
use crate::harness::revisions;
use crate::harness::{Key, Server, Tenant, mute_phones, outcome};
use cloudphone::phones::contract::CATALOGUE;
use serde_json::{Map, Value, json};
use std::time::Duration;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_core::revision::Revision;
use toolwarrant_tasks::store::TaskStore;

/// A tool with its arguments. Arguments of the path come first, as in `/v1`.
#[derive(Clone, Debug)]
struct Wanted {
    tool: &'static str,
    arguments: Map<String, Value>,
    idempotency_key: Option<String>,
}

/// Ids of phones: some that exist, one that does not, and texts that are not ids.
const IDS: [&str; 9] = [
    "phone-0000001",
    "phone-0000010",
    "phone-0000002",
    "phone-0000001",
    "phone-0000011",
    "phone-9999999",
    "Phone 1",
    "a/b?c",
    "%",
];

/// Generates calls, some of them valid and others with a mistake.
fn make_calls(seed: u64) -> Vec<Wanted> {
    let mut random = SplitMix(seed);
    let mut made = Vec::new();
    for _ in 0..CALLS {
        let tool = &CATALOGUE.tools[random.below(CATALOGUE.tools.len() as u64) as usize];
        let mut of = |values: &[Value]| values[random.below(values.len() as u64) as usize].clone();
        let mut arguments = Map::new();
        if tool.target.is_some() {
            arguments.insert("device_id".into(), of(&IDS.map(Value::from)));
        }
        let wild =
            [json!(null), json!(""), json!("x"), json!([1]), json!({"a": 1}), json!(-1), json!(1.5), json!(true)];
        let mut body = |name: &str, values: &[Value]| {
            let value = of(&[vec![values; 30].concat(), wild.to_vec()].concat());
            arguments.insert(name.into(), value);
        };
        match tool.name {
            "set_proxy" => {
                body("scheme", &[json!("http"), json!("socks5"), json!("http"), json!("socks5"), json!("ftp")]);
                body(
                    "host",
                    &[
                        json!("203.0.113.7"),
                        json!("proxy.example.com"),
                        json!("203.0.113.8"),
                        json!("203.0.113.9"),
                        json!("127.0.0.1"),
                        json!("héllo"),
                    ],
                );
                body("port", &[json!(1080), json!(1080), json!(3128), json!(3128), json!(0), json!(65536)]);
                body("password", &[json!("p1"), json!("p1"), json!("p1"), json!("p 2"), json!("\u{1f4f1}")]);
            }
            "set_power" => {
                body("action", &[json!("boot"), json!("restart"), json!("boot"), json!("restart"), json!("sleep")])
            }
            "create_session" => body("mode", &[json!("view"), json!("control"), json!("own")]),
            "list_devices" => {
                arguments.insert("limit".into(), of(&[json!(1), json!(5), json!(0), json!(201), json!(-1)]));
                arguments.insert(
                    "capability".into(),
                    of(&[json!("proxy"), json!("power"), json!(""), json!("a+b & c=d"), json!("é")]),
                );
            }
            "get_task" => {
                let ids =
                    [json!("task_019a3f5c0b7e5d1c8f2a4b6c8d0e1f23"), json!("task_1"), json!("LAST"), json!("LAST")];
                arguments.insert("task_id".into(), of(&ids));
                arguments.insert("wait_seconds".into(), of(&[json!(0), json!(51), json!(0)]));
            }
            _ => {}
        }
        if of(&[json!(0), json!(1), json!(2), json!(3), json!(4), json!(5), json!(6), json!(7), json!(8)]) == 0 {
            arguments.insert("colour".into(), json!("red"));
        }
        let key = of(&[
            json!(null),
            json!(null),
            json!("k1"),
            json!("k2"),
            json!("k3"),
            json!("k4"),
            json!("k5"),
            json!("not a key"),
        ]);
        let idempotency_key = tool.task.as_ref().and_then(|_| key.as_str().map(str::to_owned));
        made.push(Wanted { tool: tool.name, arguments, idempotency_key });
    }
    made
}

/// A transport over which a tool can be called.
enum Way {
    Mcp(Revision),
    V1,
    Bridge(Box<Bridge>),
}

impl Way {
    /// Calls the tool. Returns the result or the failure.
    async fn ask(&mut self, server: &Server, key: &Key, wanted: &Wanted) -> Value {
        let Wanted { tool, arguments, idempotency_key } = wanted;
        let mut all = arguments.clone();
        if let Some(key) = idempotency_key {
            all.insert("idempotency_key".into(), json!(key));
        }
        let params = json!({"name": tool, "arguments": all});
        match self {
            Self::V1 => return v1(server, key, wanted).await,
            Self::Mcp(revision) => {
                let (status, answer) = revisions::ask(server, key, *revision, "tools/call", params).await;
                let said = outcome(&answer);
                assert_eq!(status, 200, "{answer}");
                let structured = answer["result"].get("structuredContent");
                let expected = said.as_ref().ok().filter(|_| revision.features().structured);
                assert_eq!(structured, expected, "{answer}");
                said
            }
            Self::Bridge(bridge) => {
                let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
                outcome(&bridge.ask(message.to_string()).await)
            }
        }
        .unwrap_or_else(|failure| failure)
    }
}

async fn v1(server: &Server, key: &Key, Wanted { tool, arguments, idempotency_key }: &Wanted) -> Value {
    let http = CATALOGUE.tool(tool).and_then(|tool| tool.http.as_ref()).expect("a twin");
    let (mut path, mut rest) = (http.path.to_owned(), arguments.clone());
    for (name, value) in arguments {
        let slot = format!("{{{name}}}");
        if path.contains(&slot) {
            path = path.replace(&slot, &percent_encode(value.as_str().expect("text")));
            rest.shift_remove(name);
        }
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let query: Vec<_> = rest.iter().map(|(name, value)| format!("{name}={}", percent_encode(&text(value)))).collect();
    let takes_body = matches!(http.method, "PUT" | "POST");
    let target = if takes_body || query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    let request = server.sign(key, http.method, &target).with_key(idempotency_key.as_deref().unwrap_or_default());
    let request = if takes_body { request.body(json!(rest)) } else { request };
    let answer = server.v1(&request).await;
    let failed = CATALOGUE.tool(tool).expect("a tool").errors.iter().find(|error| answer.body["code"] == error.code);
    match failed {
        Some(error) => assert_eq!(answer.status, error.http, "{answer:?}"),
        None => assert!(matches!(answer.status, 200..=202), "{answer:?}"),
    }
    answer.body
}

fn percent_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The records of one transport: its answers, its audit trail without request ids, and the ledger.
#[derive(Debug, PartialEq)]
struct Books {
    answers: Vec<Value>,
    audit: Vec<Value>,
    ledger: Vec<(String, &'static str)>,
}

async fn books(way: Option<Revision>, bridged: bool, calls: &[Wanted]) -> Books {
    let (server, keys) = mute_phones(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    let key = &keys[0][0];
    server.clock.advance(Duration::from_secs(1));
    let mut way = match way {
        Some(revision) => Way::Mcp(revision),
        None if bridged => Way::Bridge(Box::new(Bridge::with_key(&server.url, key))),
        None => Way::V1,
    };
    let (mut answers, mut tasks) = (Vec::new(), Vec::new());
    for wanted in calls {
        let mut wanted = wanted.clone();
        if wanted.arguments.get("task_id") == Some(&json!("LAST")) {
            wanted.arguments["task_id"] = tasks.last().cloned().unwrap_or(json!("task_2"));
        }
        let answer = way.ask(&server, key, &wanted).await;
        if answer["idempotent_hit"] == false {
            tasks.push(answer["task_id"].clone());
        }
        answers.push(answer);
    }
    drop(way);
    for task in &tasks {
        answers.push(server.end(key, task).await["status"].clone());
    }
    let mut ledger = server.store.ledger(0, u32::MAX).await.expect("a ledger");
    ledger.sort_by_key(|row| (row.id, row.kind));
    let ledger = ledger.into_iter().map(|row| (row.id.to_string(), row.kind)).collect();
    let calls = calls.len();
    let audit = server.audit().await;
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        line.as_object_mut().expect("an object").shift_remove("request_id");
        line
    };
    Books { answers, audit: audit.lines().take(calls).map(line).collect(), ledger }
}

/// The number of calls in one history, and the number of histories.
const CALLS: usize = 60;
const SEEDS: u64 = 5;

#[tokio::test]
async fn a_call_is_answered_written_down_and_charged_alike_in_whichever_way_it_is_made() {
    let mut codes = std::collections::BTreeMap::<String, usize>::new();
    for seed in 1..=SEEDS {
        let calls = make_calls(seed);
        let first = books(Some(Revision::FALLBACK), false, &calls).await;
        for answer in &first.answers {
            *codes.entry(answer["code"].as_str().unwrap_or("ok").to_owned()).or_default() += 1;
        }
        let ways = Revision::ALL.into_iter().map(Some).map(|way| (way, false)).chain([(None, false), (None, true)]);
        for (way, bridged) in ways {
            let other = books(way, bridged, &calls).await;
            let name = way.map_or(if bridged { "the bridge" } else { "/v1" }, |revision| revision.features().name);
            for (n, (one, another)) in first.answers.iter().zip(&other.answers).enumerate() {
                assert_eq!(one, another, "seed {seed}, {name}, call {n}: {:?}", calls.get(n));
            }
            assert_eq!(first, other, "seed {seed}, {name}");
        }
    }
    // The calls cover a fair part of the possible outcomes.
    for code in ["ok", "invalid_argument", "not_found", "device_busy", "not_supported"] {
        assert!(codes.get(code).is_some_and(|count| *count > 5), "{code}: {codes:?}");
    }
}
