//! The program as a process: its streams, its signals, its memory.

use crate::harness::program::{Program, binary, json_of, key_of};
use kit::{Process, Start, wait_for};
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read, Write, pipe};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

/// The only time limit.
const PATIENCE: Duration = Duration::from_secs(60);

/// Several times the capacity of a pipe on Linux.
const LOUD: usize = 256 << 10;

/// The server serves more at a time.
const AT_A_TIME: usize = 50;

/// Ends connections in the middle of a request: each is one logged line.
async fn be_loud(program: &Program, bytes: usize) {
    let line =
        "0000-00-00T00:00:00.000000Z DEBUG a connection ended early error=connection closed before message completed\n";
    let begin = || TcpStream::connect(program.address)?.write_all(b"POST /mcp HTTP/1.1\r\n");
    for _ in 0..bytes / line.len() / AT_A_TIME {
        for _ in 0..AT_A_TIME {
            begin().expect("a connection");
        }
        // The server accepts connections in order: it has accepted all of the above.
        let answered = wait_for(async || {
            let called = kit::call(program.address, &program.keys[0], "list_devices", &json!({})).await;
            called.map(drop).map_err(|error| format!("{error:#}"))
        });
        answered.await.expect("it answers");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_stops_nothing_tells_later_what_was_lost_and_keeps_no_stop_waiting() {
    let (mut log, writer) = pipe().expect("a pipe");
    let mut program = Program::start_by(|start| start.flags(&["--log", "debug"]).log(writer)).await;
    be_loud(&program, 4 * LOUD).await;
    let reading = tokio::task::spawn_blocking(move || {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&all).contains("lines were lost") {
            let length = log.read(&mut part).expect("a log");
            assert!(length > 0, "it has ended: {}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&part[..length]);
        }
        (String::from_utf8(all).expect("text"), log)
    });
    let (all, _log) = tokio::time::timeout(PATIENCE, reading).await.expect("it tells").expect("a log");
    let told = all.lines().find_map(|line| line.split_once("did not take them lines=")).expect("a line").1;
    assert!(told.parse::<u64>().expect("a number") > 0);
    program.call("list_devices", json!({})).await.expect("an answer");
    be_loud(&program, LOUD).await;
    tokio::time::timeout(PATIENCE, program.stop()).await.expect("it ends");
}

#[tokio::test]
async fn an_output_that_nobody_reads_keeps_no_start_waiting() {
    let (reader, writer) = pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe");
    while (&writer).write(&[b'\n'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("a pipe");
    let home = TempDir::new().expect("a temporary folder");
    let mut command = plain(&home).command().expect("a log");
    let mut child = command.stdout(writer).kill_on_drop(true).spawn().expect("the program starts");
    let serves = home.path().join("data/admin.sock");
    while tokio::net::UnixStream::connect(&serves).await.is_err() {
        assert!(child.try_wait().expect("a state").is_none(), "it has ended");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    kit::signal(child.id().expect("it runs"), "TERM").expect("it runs");
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.expect("it ends");
    assert!(status.expect("a status").success());
    drop(reader);
}

fn plain(home: &TempDir) -> Start {
    Start::new(binary(), home.path())
}

#[tokio::test]
async fn no_key_is_made_or_printed_where_the_output_is_collected_but_the_commands_that_make_one() {
    let home = TempDir::new().expect("a temporary folder");
    let start = plain(&home).flags(&["--public-url", "https://phones.example/base/"]);
    let mut program = Process::start(start.command().expect("a log")).expect("it starts");
    let said = program.until("Ctrl-C").await.expect("it serves");
    assert!(!said.contains("cps_") && !said.contains("X-Api"), "{said}");
    assert!(said.contains(" at https://phones.example/base/mcp\nIt listens on 127.0.0.1:"), "{said}");
    assert!(said.contains("must strip `/base` from the path"), "{said}");
    let data = home.path().join("data");
    let commands: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("  cloudphone ")).collect();
    let commands: Vec<_> = commands.iter().map(|line| line.split(" --data ").next().expect("a command")).collect();
    assert_eq!(commands, ["app create demo --permission device --permission stream --assign 'device:*' --key"]);
    assert_eq!(json_of(&data, "app list").await, json!([]));
    let program = binary();
    let script = said.lines().filter(|line| line.starts_with("  cloudphone ")).collect::<Vec<_>>().join("\n");
    let script = script.replace("  cloudphone ", &format!("{} ", program.display()));
    let output = Command::new("sh").args(["-e", "-c", &script]).output().await.expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(json_of(&data, "app show demo").await["devices"], "all");
}

#[tokio::test]
async fn a_hangup_ends_nothing_and_stays_ignored_where_it_was() {
    for (script, ignored) in [("true", false), ("trap '' HUP", true)] {
        let home = Arc::new(TempDir::new().expect("a temporary folder"));
        let mut program = Program::start_as(home.clone(), plain(&home).after(script)).await;
        let status = program.proc("status").expect("a status");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask").trim();
        assert_eq!(u64::from_str_radix(mask, 16).expect("a mask") & 1 == 1, ignored);
        program.signal("HUP").await.expect("it runs");
        if !ignored {
            program.until_logged("SIGHUP").await;
        }
        assert_eq!(json_of(&program.data, "app list").await, json!([]), "it serves");
        program.stop().await;
        let log = program.log();
        assert!(ignored || log.contains("SIGHUP: looked for what was renewed on the disk"), "{log}");
        assert_eq!(
            log.matches("SIGHUP").count(),
            usize::from(!ignored),
            "a signal that is ignored is not heard: {log}"
        );
    }
}

/// `script` acts as a terminal emulator that is closed.
#[tokio::test]
async fn it_stops_when_its_terminal_is_gone() {
    let home = TempDir::new().expect("a temporary folder");
    let data = home.path().join("data");
    let line = format!("{} --listen 127.0.0.1:0 --data {}", binary().display(), data.display());
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &format!("exec {line}"), "/dev/null"]);
    terminal.stdin(Stdio::piped());
    let mut terminal = Process::start(terminal).expect("`script`");
    let said = terminal.until("Ctrl-C").await.expect("it serves");
    assert!(said.contains("X-Api-Secret"), "a terminal shows the demo keys: {said}");
    terminal.kill().await.expect("it runs");
    // The program removes the socket when it stops in order.
    let socket = data.join("admin.sock");
    let gone = wait_for(async || if socket.exists() { Err("its socket is there".to_owned()) } else { Ok(()) });
    gone.await.expect("it stops");
}

#[tokio::test]
async fn nothing_dumps_its_memory_unless_a_flag_says_so() {
    for (flags, dumps) in [(&[][..], false), (&["--allow-core-dumps"], true)] {
        let home = TempDir::new().expect("a temporary folder");
        let program = plain(&home).after("ulimit -c unlimited").flags(flags).ready().await.expect("it starts");
        let limits = program.proc("limits").expect("limits");
        let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).expect("a limit");
        assert_eq!(core.trim_start().starts_with('0'), !dumps, "{core}");
    }
}

/// Returns each text as often as it is in the memory of the process, as far as the system lets this
/// process read it.
fn copies(id: u32, texts: &[String]) -> io::Result<Vec<String>> {
    let maps = fs::read_to_string(format!("/proc/{id}/maps"))?;
    let memory = File::open(format!("/proc/{id}/mem"))?;
    let mut grep = std::process::Command::new("grep");
    grep.env("LC_ALL", "C").args(["-a", "-o", "-F"]).args(texts.iter().flat_map(|text| ["-e", text]));
    let mut grep = grep.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = grep.stdin.take().expect("a pipe");
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let [from, to] = [from, to].map(|end| u64::from_str_radix(end, 16).expect("an address"));
        let mut bytes = vec![0; usize::try_from(to - from).expect("a length")];
        if memory.read_exact_at(&mut bytes, from).is_ok() {
            input.write_all(&bytes)?;
        }
    }
    drop(input);
    let found = String::from_utf8(grep.wait_with_output()?.stdout).expect("text");
    Ok(found.lines().map(str::to_owned).collect())
}

/// Copies made by libraries can stay until other bytes overwrite them, mostly in buffers of
/// connections. `SECURITY.md` names them.
#[tokio::test]
async fn few_copies_of_a_secret_outlive_its_task_and_its_answer() {
    let program = Program::start(&["--allow-core-dumps", "--sim-devices", "35"]).await;
    if let Err(why) = copies(program.id(), &["nothing".to_owned()]) {
        return eprintln!("not tried: this system does not let one process read the memory of another: {why}");
    }
    let (mut secrets, mut tasks) = (Vec::new(), Vec::new());
    // Phones without a special behaviour: they do what a client asks for.
    for n in 24..=35 {
        let device = format!("phone-00000{n}");
        let password = format!("A-pass-word-that-can-be-found-0123456789-{n}");
        let proxy = json!({"device_id": device, "scheme": "http", "host": "proxy.example.com", "port": 1080,
            "username": "user", "password": password});
        if let Ok(task) = program.call("set_proxy", proxy).await {
            tasks.push(task["task_id"].clone());
            secrets.push(password);
        }
        if let Ok(session) = program.call("create_session", json!({"device_id": device, "mode": "view"})).await {
            secrets.push(session["token"].as_str().expect("a token").to_owned());
        }
    }
    for task in tasks {
        program.task(&task).await;
    }
    // These are as long as the requests before, so they overwrite the same buffers fully.
    let long = json!({"device_id": "x".repeat(400)});
    for _ in 0..50 {
        program.call("list_devices", json!({"limit": 20})).await.expect("phones");
        program.call("get_device", long.clone()).await.expect_err("no such phone");
    }
    let hosts = copies(program.id(), &["proxy.example.com".to_owned()]).expect("memory");
    assert!(!hosts.is_empty(), "the host of a phone's proxy is no secret");
    let found = copies(program.id(), &secrets).expect("memory");
    assert!(secrets.len() == 24 && found.len() <= 3, "copies of {} secrets: {found:?}", secrets.len());
}

#[tokio::test]
async fn a_secret_that_cannot_be_printed_is_reported_with_its_key() {
    let mut program = Program::start(&[]).await;
    let data = program.data.clone();
    json_of(&data, "app create one --permission stream").await;
    let kept = key_of(&data, "one").await.id;
    for is_running in [true, false] {
        for (line, has_reader, expected) in [
            ("key create one", true, "the secret of the key cpk_"),
            ("key create one --json", false, "its reader has gone; make another with `key create`"),
            (&*format!("app create two-{is_running} --permission stream --key"), true, "the secret of the key cpk_"),
            (&*format!("key rotate {kept} --json"), true, &*format!("the secret of the key {kept} is lost")),
            ("app list --json", true, "its answer is lost"),
        ] {
            let mut command = Command::new(binary());
            command.args(line.split(' ')).arg("--data").arg(&data).stderr(Stdio::piped());
            match has_reader {
                true => command.stdout(File::options().write(true).open("/dev/full").expect("a full device")),
                false => command.stdout(pipe().expect("a pipe").1),
            };
            let output = command.spawn().expect("the program runs").wait_with_output().await.expect("it ends");
            let said = String::from_utf8_lossy(&output.stderr);
            let names = said.contains("cannot write to standard output") && said.contains(expected);
            assert!(output.status.code() == Some(1) && names, "{line}: {said}");
        }
        if is_running {
            program.stop().await;
        }
    }
}
