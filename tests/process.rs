//! The process that the program is: its streams, its signals, its memory.

use crate::program::Program;
use serde_json::json;
use std::io::{PipeReader, Read, pipe};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

/// What hangs shows in a minute; no other time is measured.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a pipe on Linux takes, several times.
const LOUD: usize = 256 << 10;

/// The program with a log that goes into this pipe.
async fn with_log_in_pipe() -> (Program, PipeReader) {
    let (reader, writer) = pipe().expect("a pipe");
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let mut program = Program::spawn_by(Command::new(crate::program::binary()), home, writer, &["--log", "debug"]);
    program.ready().await;
    (program, reader)
}

/// Makes it log that much at least: each connection that ends in the middle of a request is a line.
async fn be_loud(program: &Program, bytes: usize) {
    let address = program.url.trim_start_matches("http://").to_owned();
    let line =
        "0000-00-00T00:00:00.000000Z DEBUG a connection ended early error=connection closed before message completed\n";
    let begin = || std::io::Write::write_all(&mut TcpStream::connect(&address)?, b"POST /mcp HTTP/1.1\r\n");
    for _ in 0..bytes / line.len() {
        begin().expect("a connection");
    }
    // The log goes on meanwhile: what is answered later was taken later.
    for _ in 0..3 {
        let answer = tokio::time::timeout(PATIENCE, program.call("list_devices", json!({}))).await;
        answer.expect("it answers").expect("phones");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_stops_nothing_and_tells_later_what_was_lost() {
    let (program, mut log) = with_log_in_pipe().await;
    be_loud(&program, 4 * LOUD).await;
    let reading = tokio::task::spawn_blocking(move || {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&all).contains("lines were lost") {
            let length = log.read(&mut part).expect("a log");
            assert!(length > 0, "it has ended: {}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&part[..length]);
        }
        String::from_utf8(all).expect("text")
    });
    let all = reading.await.expect("a log");
    let told = all.lines().find_map(|line| line.split_once("did not take them lines=")).expect("a line").1;
    assert!(told.parse::<u64>().expect("a number") > 0);
    program.call("list_devices", json!({})).await.expect("an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_keeps_no_stop_waiting() {
    let (mut program, log) = with_log_in_pipe().await;
    be_loud(&program, LOUD).await;
    let (status, last) = tokio::time::timeout(PATIENCE, program.stop()).await.expect("it ends");
    assert!(status.success() && last.ends_with("cloudphone has stopped\n"), "{last}");
    drop(log);
}

#[tokio::test]
async fn an_output_that_nobody_reads_keeps_no_start_waiting() {
    let (reader, writer) = pipe().expect("a pipe");
    // All that it takes.
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe");
    while std::io::Write::write(&mut &writer, &[b'\n'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("a pipe");
    let home = TempDir::new().expect("a temporary folder");
    let mut command = Command::new(crate::program::binary());
    command.args(["--listen", "127.0.0.1:0", "--data"]).arg(home.path().join("data")).stdout(writer).kill_on_drop(true);
    let mut child = command.spawn().expect("the program starts");
    // Its commands are answered by the server alone, once it serves.
    let serves = home.path().join("data/admin.sock");
    while tokio::net::UnixStream::connect(&serves).await.is_err() {
        assert!(child.try_wait().expect("a state").is_none(), "it has ended");
        tokio::task::yield_now().await;
    }
    let id = child.id().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.expect("kill").success());
    let status = tokio::time::timeout(PATIENCE, child.wait()).await.expect("it ends");
    assert!(status.expect("a status").success());
    drop(reader);
}
