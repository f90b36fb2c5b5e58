//! The monitor's view of the program: health, readiness, metrics and logs.

use crate::harness::Key;
use crate::harness::program::{Program, WATCHED, get};
use crate::harness::writes::open_database;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_http::edge::HostOriginPolicy;
use toolwarrant_http::monitor::Monitor;
use toolwarrant_operator::Names;
use toolwarrant_operator::metrics::ServiceStatus;

/// Parses as strictly as the format is specified.
pub(super) fn parse(page: &str) -> BTreeMap<String, f64> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    assert!(page.ends_with('\n'));
    let (mut all, mut families, mut help, mut family) = (BTreeMap::new(), BTreeSet::new(), "", ("", ""));
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').expect("a text");
            assert!(is_name(name) && !text.contains('\\') && families.insert(name), "{line}");
            help = name;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split_once(' ').expect("a type");
            assert_eq!(family.0, help, "HELP and TYPE come together");
            assert!(["counter", "gauge", "histogram"].contains(&family.1), "{line}");
            assert_eq!(family.0.ends_with("_total"), family.1 == "counter", "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = series.split_once('{').map_or((series, None), |(name, rest)| (name, Some(rest)));
            for label in labels.into_iter().flat_map(|labels| labels.strip_suffix('}').expect("an end").split(',')) {
                let (name, value) = label.split_once("=\"").expect("a label");
                let value = value.strip_suffix('"').expect("an end");
                assert!(is_name(name) && !value.contains(['"', '\\', '\n']), "{line}");
            }
            let base = match family.1 {
                "histogram" => ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)),
                _ => Some(name),
            };
            assert_eq!(base, Some(family.0), "a sample stands in its family: {line}");
            assert!(all.insert(series.to_owned(), value.parse().expect("a number")).is_none(), "twice: {line}");
        }
    }
    for (series, count) in all.iter().filter(|(series, _)| series.contains("_count{")) {
        let spans = series.replace("_count{", "_bucket{").replace('}', ",le=");
        let spans = all.iter().filter(|(other, _)| other.starts_with(&spans));
        let mut spans: Vec<f64> = spans.map(|(_, count)| *count).collect();
        spans.sort_by(f64::total_cmp);
        assert_eq!((spans.len(), spans.last()), (17, Some(count)), "{series}");
    }
    all
}

const COUNTED: &[(&str, u32)] = &[
    (r#"build_info{version="0.1.0"}"#, 1),
    (r#"tool_calls_total{tool="list_devices",outcome="ok"}"#, 3),
    (r#"tool_calls_total{tool="get_device",outcome="not_found"}"#, 1),
    (r#"tool_calls_total{tool="set_proxy",outcome="ok"}"#, 1),
    (r#"tool_calls_total{tool="set_power",outcome="forbidden"}"#, 1),
    (r#"tool_call_duration_seconds_count{tool="list_devices"}"#, 3),
    (r#"requests_refused_total{reason="unauthenticated"}"#, 1),
    (r#"requests_refused_total{reason="rate_limited"}"#, 50),
    (r#"tool_calls_total{tool="list_devices",outcome="rate_limited"}"#, 50),
    ("tasks_accepted_total", 1),
    ("tasks_in_flight", 0),
    (r#"tasks_ended_total{status="failed_silent"}"#, 1),
    (r#"tasks_ended_total{status="success"}"#, 0),
    (r#"ledger_entries_total{kind="charge"}"#, 1),
    (r#"ledger_entries_total{kind="reversal"}"#, 0),
    (r#"ledger_entries_total{kind="refund"}"#, 1),
    ("repeated_refunds_total", 0),
    ("held_polls", 0),
    ("store_commit_failures_total", 0),
    ("store_queue", 0),
    ("refund_invariant_violations", 0),
];

#[tokio::test]
async fn calls_and_tasks_are_counted_and_logged_and_a_lost_refund_is_reported() {
    let mut program = Program::start(WATCHED).await;
    let url = program.monitor().to_owned();
    for _ in 0..3 {
        program.call("list_devices", json!({})).await.expect("a page");
    }
    assert_eq!(program.log().lines().count(), 1, "a read that went well is no news: {}", program.log());

    program.call("get_device", json!({"device_id": "nothing"})).await.expect_err("there is none");
    let nobody = Key { id: "cpk_0000000000000000".to_owned(), secret: "none".to_owned() };
    assert_eq!(program.status(&nobody).await, 401);
    let proxy = json!({"device_id": "phone-0000013", "scheme": "http", "host": "proxy.example.com", "port": 8080,
        "username": "user", "password": "hunter2-and-more"});
    let task = program.call("set_proxy", proxy).await.expect("accepted");
    let told = program.task(&task["task_id"]).await;
    assert_eq!(told["status"], "failed_silent", "{told}");
    let reading = program.keys.swap_remove(1);
    program.keys = vec![reading];
    program.call("set_power", json!({"device_id": "phone-0000001", "action": "boot"})).await.expect_err("forbidden");

    // One request is already spent, so the last of six batches of fifty exceeds the budget of 300.
    let mut answer = String::new();
    for method in ["ping", "ping", "ping", "ping", "ping", "tools/call"] {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": {"name": "list_devices"}});
        let request = program.keys[0].request(&json!(vec![message; 50]).to_string(), "connection: close\r\n");
        answer = kit::exchange(program.address, request.as_bytes()).await.expect("an answer").body;
    }
    assert!(answer.contains("rate_limited"), "{answer}");

    let (status, kind, page) = get(&format!("{url}/metrics")).await;
    assert_eq!((status, &*kind), (200, "text/plain; version=0.0.4; charset=utf-8"));
    let metrics = parse(&page);
    for (series, value) in COUNTED {
        assert_eq!(metrics.get(&format!("cloudphone_{series}")), Some(&f64::from(*value)), "{series}\n{page}");
    }
    let sum = metrics[r#"cloudphone_tool_call_duration_seconds_sum{tool="list_devices"}"#];
    assert!(sum > 0.0 && sum != (sum * 1e3).round() / 1e3, "it has fractions of a millisecond: {sum}");
    let sends = metrics.iter().filter(|(series, _)| series.starts_with("cloudphone_task_sends_total"));
    assert!(sends.map(|(_, count)| count).sum::<f64>() >= 1.0, "{page}");
    for series in ["store_commits_total", "store_writes_total"] {
        assert!(metrics[&format!("cloudphone_{series}")] >= 5.0, "{series}\n{page}");
    }

    let log = program.log();
    let last = log.lines().last().unwrap_or_default();
    let line: Value = serde_json::from_str(last).expect("one line of JSON");
    let fields = ["level", "task", "tool", "target", "status"].map(|field| line[field].as_str().expect("text"));
    let task = task["task_id"].as_str().expect("text");
    assert_eq!(fields, ["WARN", task, "set_proxy", "phone-0000013", "failed_silent"]);
    assert!(line["application"].as_str().is_some_and(|id| id.starts_with("app_")), "{line}");
    assert!(!log.contains("hunter2") && !page.contains("hunter2"));

    let db = open_database(&program.data);
    db.execute("DELETE FROM ledger WHERE kind = 'refund'", []).expect("deleted");
    let metrics = parse(&get(&format!("{url}/metrics")).await.2);
    assert_eq!(metrics["cloudphone_refund_invariant_violations"], 1.0);
}

async fn open() -> Monitor {
    let policy = HostOriginPolicy::keyless(None, &[]).expect("a policy");
    let status = Arc::new(ServiceStatus::new(Arc::new(Names::of("cloudphone", "0")), Timestamp(7_000)));
    let monitor = Monitor::listen("127.0.0.1:0".parse().expect("an address"), policy, status).await;
    monitor.expect("a free port")
}

#[tokio::test]
async fn it_is_unready_until_it_serves() {
    let monitor = open().await;
    let url = format!("http://{}", monitor.address());
    assert_eq!(get(&format!("{url}/healthz")).await.0, 200);
    let (status, _, why) = get(&format!("{url}/readyz")).await;
    assert_eq!((status, &*why), (503, "the program is starting\n"));
    let metrics = parse(&get(&format!("{url}/metrics")).await.2);
    assert_eq!(metrics["process_start_time_seconds"], 7.0);
    monitor.close().await;
    reqwest::get(&url).await.expect_err("it is closed");
}

#[tokio::test]
async fn silent_connections_do_not_lock_others_out() {
    let monitor = open().await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.2:0".parse().expect("an address")).expect("bound");
        idle.push(socket.connect(monitor.address()).await.expect("connected"));
    }
    assert_eq!(get(&format!("http://{}/healthz", monitor.address())).await.0, 200);
}

#[tokio::test]
async fn probes_of_a_store_that_cannot_write_share_one_try() {
    let program = Program::start(WATCHED).await;
    let url = program.monitor();
    program.until_ready(200).await;
    let db = open_database(&program.data);
    db.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    let mut probes = JoinSet::new();
    for _ in 0..20 {
        let ready = format!("{url}/readyz");
        probes.spawn(async move { get(&ready).await.0 });
    }
    assert_eq!(probes.join_all().await, [503; 20]);
    let metrics = parse(&get(&format!("{url}/metrics")).await.2);
    // The engine may be writing too.
    assert!(metrics["cloudphone_store_queue"] < 5.0, "what nobody waits for any more holds up what somebody does");
}

#[tokio::test]
async fn it_is_unready_while_writes_would_be_lost_and_while_it_stops() {
    let mut program = Program::start(WATCHED).await;
    let url = program.monitor();
    assert_eq!(program.until_ready(200).await, "the program serves\n");

    let db = open_database(&program.data);
    db.execute_batch("BEGIN IMMEDIATE").expect("a lock");
    assert!(program.until_ready(503).await.contains("the store"));
    assert_eq!(get(&format!("{url}/healthz")).await.0, 200, "it lives all the same");
    db.execute_batch("ROLLBACK").expect("no lock");
    program.until_ready(200).await;

    // A request whose last byte is missing delays the stop.
    let mut client = TcpStream::connect(program.address).await.expect("a connection");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = program.keys[0].request(body, "expect: 100-continue\r\n");
    client.write_all(request.strip_suffix(body).expect("a body").as_bytes()).await.expect("sent");
    let mut goes_on = [0; 25];
    client.read_exact(&mut goes_on).await.expect("it is being answered");
    program.ask_to_stop().await;
    assert_eq!(program.until_ready(503).await, "the program is stopping\n");
    client.write_all(body.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    program.wait_for_end().await;
}

#[tokio::test]
async fn it_is_watched_only_where_the_operator_says_and_by_no_web_page() {
    assert_eq!(Program::start(&[]).await.monitor, None);
    let program = Program::start(&[WATCHED, &["--allow-host", "watcher.example"]].concat()).await;
    let url = program.monitor();
    let client = reqwest::Client::new();
    let status = async |request: reqwest::RequestBuilder| request.send().await.expect("an answer").status().as_u16();
    let metrics = || client.get(format!("{url}/metrics"));
    assert_eq!(status(metrics()).await, 200);
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    for (host, expected) in
        [("rebound.example", 403), ("again.example", 403), ("watcher.example:9090", 200), (&*machine, 200)]
    {
        assert_eq!(status(metrics().header("host", host)).await, expected, "{host}");
    }
    program.until_logged("the host `rebound.example` is not one").await;
    let log = program.log();
    let refusals: Vec<_> = log.lines().filter(|line| line.contains("is not one that this server answers to")).collect();
    assert!(refusals.len() == 1 && refusals[0].contains("allow it with `--allow-host`"), "{log}");
    assert_eq!(status(metrics().header("origin", "https://page.example")).await, 403);
    assert_eq!(status(client.post(format!("{url}/metrics"))).await, 405);
    assert_eq!(status(client.get(format!("{url}/mcp"))).await, 404);
    assert_eq!(status(client.get(format!("http://{}/metrics", program.address))).await, 404);
}
