//! The adb server in front of the pads, and the program for an operator.

use crate::harness::{Double, Echo};
use armcloud_double::addresses::of_proxy;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::timeout;

const FOREVER: u64 = 600_000;

/// A command that restarts a pad when it gets the word `go`.
const RESTART: &str =
    "echo ready;read -t 5 go||exit 41;[ \"$go\" = go ]||exit 42;setprop sys.powerctl reboot,||exit 43";

/// The time after which a client gives up on an answer.
const PATIENCE: Duration = Duration::from_millis(700);

impl Double {
    /// Asks the adb server for services, each on the connection of the one before. Returns the
    /// connection after the last OKAY, or the text of a FAIL.
    async fn adb(&self, services: &[&str]) -> Result<TcpStream, String> {
        let address = self.greeting["adb"].as_str().expect("as documented");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        for service in services {
            stream.write_all(format!("{:04x}{service}", service.len()).as_bytes()).await.expect("sent");
            let mut word = [0; 4];
            stream.read_exact(&mut word).await.map_err(|error| error.to_string())?;
            if &word != b"OKAY" {
                return Err(text(stream).await);
            }
        }
        Ok(stream)
    }

    /// Asks the server itself. Returns its text.
    async fn ask_adb(&self, service: &str) -> Result<String, String> {
        Ok(text(self.adb(&[service]).await?).await)
    }

    /// Runs a script on a pad with this input. Returns its output, its errors and its exit status,
    /// which is -1 if the connection ends without it.
    async fn run(&self, pad: &str, script: &str, input: &[u8]) -> Result<(String, String, i32), String> {
        let [transport, shell] = [format!("host:transport:{pad}"), format!("shell,v2,raw:{script}")];
        let mut stream = self.adb(&[&transport, &shell]).await?;
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let mut is_told = input.is_empty();
        loop {
            if !is_told && (!script.starts_with("echo ready") || output == b"ready\n") {
                let end: &[u8] = if script.starts_with("echo ready") { b"" } else { b"\x04\0\0\0\0" };
                let bytes = [b"\0", &(input.len() as u32).to_le_bytes()[..], input, end].concat();
                stream.write_all(&bytes).await.expect("sent");
                is_told = true;
            }
            let mut head = [0; 5];
            let mut data = Vec::new();
            let read = async {
                stream.read_exact(&mut head).await?;
                data = vec![0; u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize];
                stream.read_exact(&mut data).await
            };
            let is_read = read.await.is_ok();
            match head[0] {
                1 if is_read => output.extend(data),
                2 if is_read => errors.extend(data),
                kind => {
                    let status = if is_read && kind == 3 { i32::from(data[0]) } else { -1 };
                    let words = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
                    return Ok((words(output), words(errors), status));
                }
            }
        }
    }

    /// Runs the program for an operator. Returns its exit status and its output.
    async fn act(&self, action: &str, pad: &str, input: &Value) -> (Option<i32>, String) {
        let control = self.greeting["control"].as_str().expect("as documented");
        let mut command = Command::new(env!("CARGO_BIN_EXE_armcloud-double"));
        command.args(["act", "--control", control, action, pad]).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.to_string().as_bytes()).await.expect("sent");
        drop(stdin);
        let ended = child.wait_with_output().await.expect("it ends");
        (ended.status.code(), String::from_utf8(ended.stdout).expect("a text"))
    }
}

async fn text(mut stream: TcpStream) -> String {
    let mut digits = [0; 4];
    stream.read_exact(&mut digits).await.expect("a length");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("a text");
    assert_eq!(format!("{:04x}", text.len()).as_bytes(), digits);
    text
}

#[tokio::test]
async fn the_server_lists_pads_with_their_states_and_connects_to_them() {
    let double = Double::start(&[]).await;
    let [first, second, third, fourth, fifth] = &double.pads[..5] else { panic!("pads") };
    assert_eq!(double.ask_adb("host:version").await.unwrap(), "0029");
    double.set(second, json!({"adb_state": "unauthorized"})).await;
    double.set(third, json!({"adb_state": "absent"})).await;
    double.set(fourth, json!({"adb_old": true})).await;
    double.act("stop", fifth, &json!({})).await;
    let list = double.ask_adb("host:devices-l").await.unwrap();
    let line = |list: &str, serial: &str| {
        let mut words = list.lines().map(str::split_whitespace);
        words.find_map(|mut words| (words.next() == Some(serial)).then(|| words.next().map(str::to_owned)))?
    };
    let states = [first, second, third, fifth].map(|pad| line(&list, pad));
    assert_eq!(states.map(|state| state.unwrap_or_default()), ["device", "unauthorized", "", "offline"]);
    let network = format!("{third}:5555");
    for told in ["connected to", "already connected to"] {
        assert_eq!(double.ask_adb(&format!("host:connect:{network}")).await, Ok(format!("{told} {network}")));
    }
    assert_eq!(line(&double.ask_adb("host:devices-l").await.unwrap(), &network).unwrap(), "device");
    assert_eq!(double.run(&network, "getprop ro.serialno", b"").await.unwrap().0, format!("{third}\n"));
    let told = double.ask_adb("host:connect:192.0.2.7:5555").await.unwrap();
    assert_eq!(told, "failed to connect to '192.0.2.7:5555': Connection refused");
    let features = [(first, Ok("shell_v2,cmd")), (second, Err("device unauthorized")), (fourth, Ok("cmd"))];
    for (pad, told) in features {
        let features = double.ask_adb(&format!("host-serial:{pad}:features")).await;
        assert_eq!(features, told.map(str::to_owned).map_err(str::to_owned));
    }
    let told = double.ask_adb(&format!("host-serial:{first}:reconnect")).await.unwrap();
    assert_eq!(told, format!("reconnecting {first} [device]\n"));
    let refused = [(third, format!("device '{third}' not found")), (fourth, "closed".to_owned())];
    for (pad, why) in refused.into_iter().chain([(fifth, "device offline".to_owned())]) {
        assert_eq!(double.run(pad, "echo", b"").await, Err(why));
    }
    assert_eq!(double.run("", "getprop ro.serialno", b"").await.unwrap().0, format!("{first}\n"), "any pad");
}

#[tokio::test]
async fn a_shell_has_its_streams_and_its_exit_status_and_a_phone_has_its_tools() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    let told = double.run(pad, "cat;echo no >&2;exit 7", b"yes").await;
    assert_eq!(told, Ok(("yes".to_owned(), "no\n".to_owned(), 7)));
    let cases = [
        ("getprop sys.boot_completed", "1"),
        ("grep -c ^processor /proc/cpuinfo", "8"),
        ("grep ^MemTotal: /proc/meminfo", "MemTotal:        3906252 kB"),
        ("df -k /data|tail -n 1", "/dev/block/dm-5  115249236 12000000 103249236  11% /data"),
        ("toybox|grep -qw nc;echo $?;toybox|grep -qw ncat;echo $?", "0\n1"),
        ("setprop persist.x 1;echo $?", "1"),
    ];
    for (script, output) in cases {
        assert_eq!(double.run(pad, script, b"").await.unwrap().0, format!("{output}\n"), "{script}");
    }
}

#[tokio::test]
async fn a_pad_restarts_when_it_gets_the_word_and_boots() {
    let double = Double::start(&["--set", "online_ms=600"]).await;
    let pad = &double.pads[0];
    for (word, status) in [(&b"no\n"[..], 42), (b"go\n", 0)] {
        assert_eq!(double.run(pad, RESTART, word).await.unwrap(), ("ready\n".to_owned(), String::new(), status));
    }
    double.wait_for_act(pad).await;
    let mut seen = Vec::new();
    while seen.last().map(String::as_str) != Some("1\n") {
        if let Ok((booted, ..)) = double.run(pad, "getprop sys.boot_completed", b"").await {
            seen.push(booted);
        }
    }
    assert_eq!((seen[0].as_str(), double.did(pad).await), ("\n", vec!["restart".to_owned()]));
    // Without a word, the pad does nothing.
    assert_eq!(double.run(pad, RESTART, b"").await.unwrap().2, 41);
    assert_eq!(double.did(pad).await.len(), 1);
}

#[tokio::test]
async fn a_program_of_the_host_switches_pads_and_sets_proxies() {
    let double = Double::start(&[]).await;
    let pad = &double.pads[0];
    let proxy = json!({"scheme": "socks5", "host": "203.0.113.7", "port": 1080, "username": "u", "password": "p"});
    let acts = [("stop", "power_off"), ("start", "power_on"), ("restart", "restart"), ("set-proxy", "set_proxy")];
    for (action, did) in acts {
        assert_eq!(double.act(action, pad, &proxy).await, (Some(0), String::new()), "{action}");
        assert_eq!(double.did(pad).await.last().map(String::as_str), Some(did));
        let status = if action == "stop" { "stopped\n" } else { "running\n" };
        assert_eq!(double.act("status", pad, &json!({})).await, (Some(0), status.to_owned()));
    }
    let shown = double.truth(pad).await["proxy"].clone();
    assert_eq!((&shown["host"], &shown["port"], &shown["scheme"]), (&proxy["host"], &proxy["port"], &proxy["scheme"]));
    assert_eq!(double.act("clear-proxy", &format!("{pad}:5555"), &json!({})).await.0, Some(0));
    assert_eq!(double.truth(pad).await["proxy"], Value::Null);
    let acts = double.did(pad).await.len();
    for (action, status) in [("start", 0), ("set-proxy", 2), ("dance", 2)] {
        assert_eq!(double.act(action, pad, &json!({})).await.0, Some(status), "{action}");
    }
    assert_eq!(double.did(pad).await.len(), acts, "it is on already");
    double.act("stop", pad, &json!({})).await;
    double.set(pad, json!({"effect": "show"})).await;
    assert_eq!(double.act("start", pad, &json!({})).await.0, Some(0));
    assert_eq!(double.act("status", pad, &json!({})).await.1, "running\n");
    assert_eq!(double.run(pad, "echo", b"").await, Err("device offline".to_owned()));
}

/// The end of a restart whose connection ends, or whose program is ended by a signal.
const LOST: Option<i32> = Some(-1);
/// The end of a restart over adb that is refused.
const REFUSED: Option<i32> = Some(-2);

#[tokio::test]
async fn a_restart_over_adb_and_by_a_program_has_each_fault_that_a_switch_gives_it() {
    let double = Double::start(&["--pads", "24", "--set", "online_ms=0"]).await;
    let at = |switch: &str, value: Value| json!({switch: {"value": value, "endpoint": "restart"}});
    // The end over adb, and by the program; `None` if the client gives up.
    let cases = [
        (at("code", json!(500)), REFUSED, Some(1), false),
        (at("drop_before_acting", json!(true)), LOST, LOST, false),
        (at("drop_after_acting", json!(true)), LOST, LOST, true),
        (at("half_body", json!(true)), LOST, Some(0), true),
        (at("code_after_acting", json!(500)), Some(0), Some(1), true),
        (at("stall_ms", json!(FOREVER)), None, None, false),
        (json!({"effect": "never"}), Some(0), Some(0), false),
        (json!({"task_end": -1}), Some(43), Some(1), false),
        (json!({"task_end": -1, "effect": "always"}), Some(43), Some(1), true),
        (json!({"effect_late_ms": 50}), Some(0), Some(0), true),
        (json!({"task_never_ends": true, "effect": "always"}), None, None, true),
        (json!({"shell": "hangs"}), None, Some(0), true),
    ];
    let state = double.get("state").await;
    let pads = state["pads"].as_array().unwrap().iter().map(|pad| pad["pad_code"].as_str().unwrap());
    for ((switches, over_adb, by_program, acts), pad) in cases.into_iter().zip(pads) {
        double.set(pad, switches.clone()).await;
        let over = timeout(PATIENCE, double.run(pad, RESTART, b"go\n")).await.ok();
        let over = over.map(|ended| ended.map_or(-2, |(_, _, status)| status));
        let acts = usize::from(acts);
        let is_heard = switches.get("shell").is_none();
        while is_heard && double.did(pad).await.len() < acts {}
        let by = timeout(PATIENCE, double.act("restart", pad, &json!({}))).await.ok();
        let by = by.map(|(status, _)| status.unwrap_or(-1));
        let acts = acts * (1 + usize::from(is_heard));
        while double.did(pad).await.len() < acts {}
        assert_eq!((over, by, double.did(pad).await.len()), (over_adb, by_program, acts), "{switches}");
    }
}

#[tokio::test]
async fn nc_on_a_pad_is_a_connection_to_a_proxy_that_need_not_exist() {
    let (double, echo) = (Double::start(&[]).await, Echo::start().await);
    let pad = &double.pads[0];
    double.set(pad, json!({"proxy_login": "user:secret"})).await;
    let exit = of_proxy("203.0.113.7", 1080).to_string();
    let get = "GET /once HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let to = echo.address.port().to_be_bytes();
    let socks = [&b"\x05\x01\x02\x01\x04user\x06secret\x05\x01\0\x01\x7f\0\0\x01"[..], &to, get.as_bytes()].concat();
    let connect =
        format!("CONNECT {} HTTP/1.1\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n{get}", echo.address);
    for (nc, input) in [("nc", socks.as_slice()), ("toybox nc", connect.as_bytes())] {
        let (seen, errors, _) = double.run(pad, &format!("{nc} -w 8 -- 203.0.113.7 1080"), input).await.unwrap();
        assert!(seen.ends_with(&exit), "{nc}: {seen} {errors}");
    }
    double.set(pad, json!({"proxy_login": "user:other"})).await;
    let (seen, ..) = double.run(pad, "nc -w 8 -- 203.0.113.7 1080", connect.as_bytes()).await.unwrap();
    assert!(seen.starts_with("HTTP/1.1 407"), "{seen}");
}
