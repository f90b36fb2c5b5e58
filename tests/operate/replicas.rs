//! Replicas as operators run them: with the files in `docs/cluster`, for systemd and HAProxy. A
//! program that is not installed is left out.

use crate::harness::double::{Double, table};
use crate::harness::program::{binary, json_of, operate};
use driver::{Instance, KeyPair, LinkRelay, Process, ProgramOperator, call, get, wait_for};
use serde_json::json;
use std::fs::{self, DirBuilder, File};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tempfile::TempDir;
use test_postgres::TestPostgres;
use tokio::process::Command;

const UNIT: &str = include_str!("../../docs/cluster/cloudphone.service");
const CONFIGURATION: &str = include_str!("../../docs/cluster/cloudphone.toml");
const BALANCER: &str = include_str!("../../docs/cluster/haproxy.cfg");

/// Replaces parts of a text, each of which it must contain.
pub(super) fn adapt(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} is not in {text}");
        text.replace(from, to)
    })
}

/// Waits until the server at that address shows that many phones.
pub(super) async fn until_listed(address: SocketAddr, key: &KeyPair, phones: usize) {
    let listed = wait_for(async || {
        let page = call(address, key, "list_devices", &json!({})).await.expect("an answer").expect("a page");
        if page["devices"].as_array().expect("phones").len() == phones { Ok(()) } else { Err(page.to_string()) }
    });
    listed.await.unwrap_or_else(|error| panic!("{phones} phones: {error}"));
}

/// Returns true if the program can be run.
async fn is_installed(program: &str, flag: &str) -> bool {
    Command::new(program).arg(flag).output().await.is_ok()
}

/// Runs a program that must succeed and say nothing.
async fn check(program: &str, arguments: &[&str], file: &Path) {
    let output = Command::new(program).args(arguments).arg(file).output().await.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{program} {arguments:?}: {said}");
}

/// Starts a replica with the command of the unit, and the configuration next to it.
async fn start_replica(home: &Path, name: &str, url: &str, platform: &str) -> Instance {
    let (folder, data) = (home.join(name), home.join(name).join("data"));
    fs::create_dir_all(&folder).expect("a folder");
    if !data.exists() {
        DirBuilder::new().mode(0o700).create(&data).expect("a folder");
        fs::copy(home.join("one/data/master.key"), data.join("master.key")).expect("the key of the first");
    }
    let (settings, _) = CONFIGURATION.split_once("[platform.lab]").expect("a platform");
    let free = "127.0.0.1:0";
    let settings = adapt(
        settings,
        &[
            ("postgres://cloudphone@10.0.0.21,10.0.0.22/cloudphone", url),
            ("store-password-file = \"store.password\"\n", "authority-lease = 20\n"),
            ("replica = \"one\"", &format!("replica = \"{name}\"")),
            ("10.0.0.11:8080", free),
            ("10.0.0.11:9090", free),
            ("10.0.0.11:8081", free),
            ("10.0.0.1\"", "127.0.0.1\""),
        ],
    );
    let file = home.join(format!("{name}.toml"));
    fs::write(&file, settings + platform).expect("written");
    let line = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/cloudphone ")).expect("a line");
    let [file, data_text] = [&file, &data].map(|path| path.to_str().expect("text"));
    let line = adapt(line, &[("/etc/cloudphone/cloudphone.toml", file), ("/var/lib/cloudphone", data_text)]);
    let mut command = Command::new(binary());
    command.args(line.split(' ')).arg("--json").stderr(File::create(folder.join("log")).expect("a log"));
    let operator = ProgramOperator { program: binary(), data };
    Instance::ready(Process::start(command).expect("it starts"), operator).await.expect("it serves")
}

/// Starts HAProxy before these replicas. Returns its process, and a relay to its socket.
async fn start_balancer(home: &Path, replicas: &[Instance; 2]) -> (Process, LinkRelay) {
    let signed = rcgen::generate_simple_self_signed(["phones.example".to_owned()]).expect("a certificate");
    let certificate = home.join("phones.pem");
    fs::write(&certificate, signed.cert.pem() + &signed.signing_key.serialize_pem()).expect("written");
    let file = home.join("haproxy.cfg");
    let with_certificate = [("/etc/haproxy/phones.pem", certificate.to_str().expect("text"))];
    fs::write(&file, adapt(BALANCER, &with_certificate)).expect("written");
    check("haproxy", &["-c", "-q", "-f"], &file).await;

    let monitors = replicas.each_ref().map(|replica| replica.monitor.as_deref().expect("a monitor").rsplit(':').next());
    let [one, two] = [0, 1].map(|at| format!("{} port {}", replicas[at].address, monitors[at].expect("a port")));
    let socket = home.join("clients");
    let bind = format!("bind unix@{}", socket.display());
    let changes = [
        // A busy machine may hold up the answers of a replica that is well.
        ("timeout connect 2s", "timeout connect 60s\n    timeout check 60s"),
        // Without repeats, only the check of `/readyz` keeps requests from a replica that stops.
        ("retries 3", "retries 0"),
        ("    retry-on conn-failure\n    option redispatch 1\n", ""),
        ("bind :443 ssl crt /etc/haproxy/phones.pem alpn h2,http/1.1", &*bind),
        ("10.0.0.11:8080 port 9090", &one),
        ("10.0.0.12:8080 port 9090", &two),
    ];
    fs::write(&file, adapt(BALANCER, &changes)).expect("written");
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(&file).stderr(File::create(home.join("haproxy.log")).expect("a log"));
    let process = Process::start(command).expect("it starts");
    (process, LinkRelay::start(socket).await.expect("a port"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_unit_starts_replicas_and_behind_the_balancer_no_call_fails_while_one_stops() {
    let (home, double) = (TempDir::new().expect("a temporary folder"), Double::start(3, &[]).await);
    if is_installed("systemd-analyze", "--version").await {
        let unit = home.path().join("cloudphone.service");
        fs::write(&unit, adapt(UNIT, &[("/usr/local/bin/cloudphone", binary().to_str().expect("text"))]))
            .expect("written");
        check("systemd-analyze", &["verify", "--man=no"], &unit).await;
    }
    let Some(server) = TestPostgres::start() else { return };
    let url = server.schema().await.expect("the server runs").url;
    let (platform, data) = (table("lab", &double, &home), home.path().join("one/data"));
    let platform = platform.replace("-file = \"", &format!("-file = \"{}/", home.path().display()));
    fs::create_dir(home.path().join("one")).expect("a folder");
    let (code, said) = operate(&data, &format!("store init --replica one --store {url}")).await;
    assert_eq!(code, 0, "{said}");
    let one = start_replica(home.path(), "one", &url, &platform).await;
    let two = start_replica(home.path(), "two", &url, &platform).await;
    for line in ["app create shop --permission device --requests-per-minute 100000", "device assign shop --all"] {
        assert_eq!(operate(&data, line).await.0, 0, "{line}");
    }
    let key = KeyPair::read(&json_of(&data, "key create shop").await).expect("a key");
    until_listed(one.address, &key, 3).await;
    until_listed(two.address, &key, 3).await;
    if !is_installed("haproxy", "-v").await {
        return;
    }
    let mut replicas = [one, two];
    let (_process, relay) = start_balancer(home.path(), &replicas).await;
    let balancer = SocketAddr::from(([127, 0, 0, 1], relay.port));
    let reached = wait_for(async || {
        call(balancer, &key, "list_devices", &json!({})).await.map(drop).map_err(|error| format!("{error:#}"))
    });
    reached.await.expect("the balancer leads to a replica");
    let [one, two] = &mut replicas;
    let mut stopping = std::pin::pin!(one.stop());
    let status = loop {
        tokio::select! {
            ended = &mut stopping => break ended.expect("it ends").0,
            () = until_listed(balancer, &key, 3) => {}
        }
    };
    assert!(status.success(), "{status}");
    until_listed(balancer, &key, 3).await;
    let (status, _) = two.stop().await.expect("it ends");
    assert!(status.success(), "{status}");
    let refused = get(&format!("http://{balancer}/v1/devices")).await.expect("an answer");
    assert!(refused.status == 503 && refused.body.contains("\"retryable\":true"), "{}", refused.body);
}
