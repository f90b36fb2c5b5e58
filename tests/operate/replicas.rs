//! Replicas as operators run them: with the files in `docs/cluster`, for systemd and HAProxy. A
//! program that is not installed is left out.

use crate::harness::double::{Double, table};
use crate::harness::program::{binary, json_of, operate, says, until};
use crate::harness::signed::Signed;
use kit::{KeyPair, LinkRelay, Process, Start, TestPostgres, call, exchange, get, wait_for};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tempfile::TempDir;
use tokio::process::Command;
use toolwarrant_base::clock::Clock;

const UNIT: &str = include_str!("../../server/toolwarrant/operator/src/files/unit.service");
const CONFIGURATION: &str = include_str!("../../docs/cluster/cloudphone.toml");
const BALANCER: &str = include_str!("../../docs/cluster/haproxy.cfg");
const CELLS: &str = include_str!("../../docs/cluster/cells.cfg");

pub(super) fn adapt(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in {text}");
        text.replace(from, to)
    })
}

pub(super) async fn until_listed(address: SocketAddr, key: &KeyPair, phones: usize) {
    let listed = wait_for(async || {
        let page = call(address, key, "list_devices", &json!({})).await.expect("an answer").expect("a page");
        if page["devices"].as_array().expect("phones").len() == phones { Ok(()) } else { Err(page.to_string()) }
    });
    listed.await.unwrap_or_else(|error| panic!("{phones} phones: {error}"));
}

async fn is_installed(program: &str, flag: &str) -> bool {
    Command::new(program).arg(flag).output().await.is_ok()
}

async fn check(program: &str, arguments: &[&str], file: &Path) {
    let output = Command::new(program).args(arguments).arg(file).output().await.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{program} {arguments:?}: {said}");
}

fn ready(monitor: SocketAddr) -> String {
    format!("http://{monitor}/readyz")
}

type Places = [[SocketAddr; 2]; 2];

fn find_places() -> Places {
    let free = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let places = [[free(), free()], [free(), free()]];
    places.map(|pair| pair.map(|listener| listener.local_addr().expect("an address")))
}

/// Takes the command of the unit.
fn start_replica(
    home: &Path,
    (name, [listen, monitor]): (&str, [SocketAddr; 2]),
    url: &str,
    platform: &str,
) -> Process {
    let (folder, data) = (home.join(name), home.join(name).join("data"));
    fs::create_dir_all(&folder).expect("a folder");
    if !data.exists() {
        DirBuilder::new().mode(0o700).create(&data).expect("a folder");
        fs::copy(home.join("one/data/master.key"), data.join("master.key")).expect("the key of the first");
    }
    let (settings, _) = CONFIGURATION.split_once("[platform.lab]").expect("a platform");
    let settings = adapt(
        settings,
        &[
            ("postgres://cloudphone@10.0.0.21,10.0.0.22/cloudphone?sslrootcert=/etc/cloudphone/ca.pem", url),
            ("store-password-file = \"store.password\"\n", "authority-lease = 20\n"),
            ("replica = \"one\"", &format!("replica = \"{name}\"")),
            ("10.0.0.11:8080", &listen.to_string()),
            ("10.0.0.11:9090", &monitor.to_string()),
            ("10.0.0.11:8081", "127.0.0.1:0"),
            ("10.0.0.1\"", "127.0.0.1\""),
        ],
    );
    let file = home.join(format!("{name}.toml"));
    fs::write(&file, settings + platform).expect("written");
    let [file, data_text] = [&file, &data].map(|path| path.to_str().expect("text"));
    let unit = adapt(
        &unit(),
        &[("/etc/cloudphone/cloudphone.toml", file), ("DATA=/var/lib/cloudphone", &format!("DATA={data_text}"))],
    );
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/cloudphone ")).expect("a line");
    let mut command = Command::new(binary());
    command.envs(unit.lines().filter_map(|line| line.strip_prefix("Environment=")?.split_once('=')));
    command.args(line.split(' ')).arg("--json").stderr(File::create(folder.join("log")).expect("a log"));
    Process::start(command).expect("it starts")
}

fn unit() -> String {
    UNIT.replace("{program}", "cloudphone").replace("{environment}", "CLOUDPHONE_")
}

/// Nobody waits to lead, so no balancer can repeat the request elsewhere.
async fn see_what_a_held_request_gets(listen: SocketAddr, path: &str, usual: u16, form: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let held = loop {
        let answer = exchange(listen, request.as_bytes()).await.expect("it holds requests before it ends");
        if answer.status != usual {
            break answer;
        }
    };
    let is_told = held.body.starts_with(form) && held.body.contains("\"code\":\"handed_over\"");
    assert!(held.status == 425 && is_told && held.header("retry-after") == Some("1"), "{} {}", held.status, held.body);
}

/// A write that fails makes the leader unready, but a full disk does not and moves no leader.
async fn see_faults_of_the_server(server: &TestPostgres, url: &str, monitor: SocketAddr) {
    for (code, why, status) in
        [("check_violation", "the store cannot write", 503), ("disk_full", "make room on the disk of PostgreSQL", 200)]
    {
        let refuse = format!(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '{code}'; END $$"
        );
        server.count(url, &refuse).await;
        server.count(url, "CREATE TRIGGER refused BEFORE UPDATE ON writer EXECUTE FUNCTION refuse()").await;
        let told = wait_for(async || match get(&ready(monitor)).await {
            Ok(answer) if answer.body.contains(why) => Ok(answer.status),
            answer => Err(format!("{answer:?}")),
        });
        assert_eq!(told.await.expect("it says why"), status);
        server.count(url, "DROP TRIGGER refused ON writer").await;
    }
}

async fn start_balancer(home: &Path, places: &Places) -> (Process, LinkRelay) {
    let [one, two] = places.map(|[listen, monitor]| format!("{listen} port {}", monitor.port()));
    let servers = [("10.0.0.11:8080 port 9090", &*one), ("10.0.0.12:8080 port 9090", &*two)];
    start_haproxy(home, BALANCER, &servers).await
}

async fn start_haproxy(home: &Path, configuration: &str, servers: &[(&str, &str)]) -> (Process, LinkRelay) {
    let signed = rcgen::generate_simple_self_signed(["phones.example".to_owned()]).expect("a certificate");
    let certificate = home.join("phones.pem");
    fs::write(&certificate, signed.cert.pem() + &signed.signing_key.serialize_pem()).expect("written");
    let file = home.join("haproxy.cfg");
    let with_certificate = [("/etc/haproxy/phones.pem", certificate.to_str().expect("text"))];
    fs::write(&file, adapt(configuration, &with_certificate)).expect("written");
    check("haproxy", &["-c", "-q", "-f"], &file).await;

    let socket = home.join("clients");
    let bind = format!("bind unix@{}", socket.display());
    let changes = [
        // A busy machine may hold up the answers of a replica that is well.
        ("timeout connect 2s", "timeout connect 60s\n    timeout check 60s"),
        ("bind :443 ssl crt /etc/haproxy/phones.pem alpn h2,http/1.1", &*bind),
    ];
    fs::write(&file, adapt(configuration, &[&changes, servers].concat())).expect("written");
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(&file).stderr(File::create(home.join("haproxy.log")).expect("a log"));
    let process = Process::start(command).expect("it starts");
    (process, LinkRelay::start(socket).await.expect("a port"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_balancer_leads_each_key_to_its_cell_and_everything_else_to_the_default_one() {
    if !is_installed("haproxy", "-v").await {
        println!("left out: haproxy is not installed (package haproxy)");
        return;
    }
    let home = TempDir::new().expect("a temporary folder");
    let start = async |cell: &str| {
        let folder = home.path().join(cell);
        fs::create_dir(&folder).expect("a folder");
        let start = Start::new(binary(), folder).flags(&["--demo", "--cell", cell]);
        start.ready().await.expect("it serves")
    };
    let (eu, mut us) = (start("eu1").await, start("us1").await);
    let (first, second) = (eu.address.to_string(), us.address.to_string());
    let servers = [("10.0.0.11:8080", &*first), ("10.1.0.11:8080", &*second)];
    let (_process, relay) = start_haproxy(home.path(), CELLS, &servers).await;
    let balancer = SocketAddr::from(([127, 0, 0, 1], relay.port));
    let reached = wait_for(async || {
        get(&format!("http://{balancer}/v1/openapi.json")).await.map_err(|error| format!("{error:#}"))
    });
    reached.await.expect("the balancer runs");
    for (cell, other) in [(&eu, &us), (&us, &eu)] {
        let key = &cell.keys[0];
        let listed = call(balancer, key, "list_devices", &json!({})).await.expect("an answer");
        assert!(listed.is_ok(), "{listed:?}");
        let elsewhere = call(other.address, key, "list_devices", &json!({})).await;
        assert!(!matches!(elsewhere, Ok(Ok(_))), "a key belongs to one cell: {elsewhere:?}");
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let request = reqwest::Client::new().post(format!("http://{balancer}/mcp")).body(ping);
        let request =
            request.bearer_auth(format!("{}:{}", key.id, key.secret)).header("content-type", "application/json");
        assert_eq!(request.send().await.expect("an answer").status(), 200);
        let answer = Signed::at(Clock::system().wall().0 / 1000, key, "GET", "/v1/devices").send(balancer).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    // The token of a page leads to the cell that issued it.
    let key = &us.keys[0];
    let page = call(balancer, key, "list_devices", &json!({})).await.expect("an answer").expect("a page");
    let wanted = json!({"device_id": page["devices"][0]["device_id"], "mode": "view"});
    let session = call(balancer, key, "create_session", &wanted).await.expect("an answer").expect("a session");
    let token = session["token"].as_str().expect("text");
    let look = format!(
        "GET /screen/still?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(exchange(balancer, look.as_bytes()).await.expect("an answer").status, 200, "{token}");
    us.stop().await.expect("it ends");
    let dead = exchange(balancer, look.as_bytes()).await.expect("an answer");
    assert!(
        dead.status == 503 && dead.body.contains("\"retryable\":true") && dead.body.contains("jsonrpc"),
        "{}",
        dead.body
    );
    assert!(eu.keys[0].id.starts_with("cpk_eu1_") && us.keys[0].id.starts_with("cpk_us1_"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_unit_starts_replicas_and_behind_the_balancer_no_call_fails_while_one_hands_over() {
    let (home, double) = (TempDir::new().expect("a temporary folder"), Double::start(3, &[]).await);
    let Some(server) = TestPostgres::start() else { return };
    let url = server.schema().await.expect("the server runs");
    let (platform, data) = (table("lab", &double, &home), home.path().join("one/data"));
    let platform = platform.replace("-file = \"", &format!("-file = \"{}/", home.path().display()));
    fs::create_dir(home.path().join("one")).expect("a folder");
    says(&data, &format!("store init --replica one --store {url}"), 0, "").await;
    let places = find_places();
    let mut one = start_replica(home.path(), ("one", places[0]), &url, &platform);
    until(&ready(places[0][1]), 200).await;
    let mut two = start_replica(home.path(), ("two", places[1]), &url, &platform);
    until(&ready(places[1][1]), 503).await;
    for line in ["app create shop --permission device --requests-per-minute 100000", "device assign shop --all"] {
        assert_eq!(operate(&data, line).await.0, 0, "{line}");
    }
    let key = KeyPair::read(&json_of(&data, "key create shop").await).expect("a key");
    until_listed(places[0][0], &key, 3).await;
    let page = get(&format!("http://{}/metrics", places[1][1])).await.expect("a page").body;
    assert!(page.contains("cloudphone_replica_waits 1") && page.contains("cloudphone_replica_lease 0"), "{page}");
    see_faults_of_the_server(&server, &url, places[0][1]).await;
    if !is_installed("haproxy", "-v").await {
        println!("left out: haproxy is not installed (package haproxy)");
        return;
    }
    let (_process, relay) = start_balancer(home.path(), &places).await;
    let balancer = SocketAddr::from(([127, 0, 0, 1], relay.port));
    let reached = wait_for(async || {
        call(balancer, &key, "list_devices", &json!({})).await.map(drop).map_err(|error| format!("{error:#}"))
    });
    reached.await.expect("the balancer leads to the replica");
    let page = call(balancer, &key, "list_devices", &json!({})).await.expect("an answer").expect("a page");
    let phone = page["devices"][0]["device_id"].clone();
    let mut stopping = std::pin::pin!(one.stop());
    let mut accepted = BTreeSet::new();
    let status = loop {
        let calls = async {
            until_listed(balancer, &key, 3).await;
            let restart = json!({"device_id": phone, "action": "restart", "idempotency_key": "once"});
            let task = call(balancer, &key, "set_power", &restart).await.expect("an answer").expect("a task");
            accepted.insert(task["task_id"].to_string());
        };
        // A call that has begun must end well, also if the replica has stopped meanwhile.
        tokio::pin!(calls);
        tokio::select! {
            ended = &mut stopping => {
                calls.await;
                break ended.expect("it ends").0;
            }
            () = &mut calls => {}
        }
    };
    assert!(status.success(), "{status}");
    let log = fs::read_to_string(home.path().join("one/log")).expect("a log");
    assert!(!log.contains("did not stop"), "its work stops in time: {log}");
    until(&ready(places[1][1]), 200).await;
    until_listed(balancer, &key, 3).await;
    assert_eq!(accepted.len(), 1, "one key is one task: {accepted:?}");
    two.signal("TERM").await.expect("it runs");
    tokio::join!(
        see_what_a_held_request_gets(places[1][0], "/v1/contract.json", 200, "{\"code\""),
        see_what_a_held_request_gets(places[1][0], "/mcp", 405, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\"")
    );
    let (status, _) = two.end().await.expect("it ends");
    assert!(status.success(), "{status}");
    let refused = wait_for(async || {
        let refused = get(&format!("http://{balancer}/v1/devices")).await.expect("an answer");
        let tells = refused.status == 503 && refused.body.contains("\"retryable\":true");
        if tells { Ok(()) } else { Err(refused.body) }
    });
    refused.await.expect("the balancer answers as a replica would");
}
