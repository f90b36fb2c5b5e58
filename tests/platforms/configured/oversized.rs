//! Answers of a platform that are made to cost memory or time.

use super::{FAST, Site, id, lab};
use crate::harness::double::Double;
use crate::harness::program::Program;
use serde_json::json;
use std::fs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const LENGTH: u64 = 4 << 20;

/// Returns the bytes now, and the most since the last call.
fn memory(program: &Program) -> (u64, u64) {
    let file = |name: &str| format!("/proc/{}/{name}", program.id());
    let status = fs::read_to_string(file("status")).expect("it runs");
    let figure = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    };
    fs::write(file("clear_refs"), "5").expect("the peak is forgotten");
    (figure("VmRSS:"), figure("VmHWM:"))
}

#[tokio::test]
async fn a_list_of_zeros_takes_at_most_eight_times_its_length_and_all_is_given_back() {
    let (site, double, program) = lab(2, "", &[]).await;
    let phone = json!({"device_id": id("lab", &double.codes().await[0])});
    program.call("get_device", phone.clone()).await.expect("a phone");
    let zeros = json!({"value": LENGTH - 100, "endpoint": "userPadList"});
    double.switch(None, &json!({"zeros": zeros})).await;
    let (before, _) = memory(&program);
    let (_, said) = site.operate("platform check lab").await;
    let (after, peak) = memory(&program);
    assert!(said.contains("no row of a page has a code of a pad"), "{said}");
    assert!((LENGTH..8 * LENGTH).contains(&(peak - before)), "{before} {peak}");
    assert!(after.saturating_sub(before) < LENGTH, "{before} {after}");
}

/// More than buffers on the way can take.
const CHUNKS: usize = 10 << 20;

#[tokio::test]
async fn an_answer_in_one_byte_chunks_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (taken, mut answers) = mpsc::unbounded_channel();
    let mut platform = JoinSet::new();
    platform.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let _ = stream.read(&mut [0; 4_096]).await.expect("a request");
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.expect("a head");
            let mut chunks = 0;
            while chunks < CHUNKS && stream.write_all(b"1\r\n \r\n").await.is_ok() {
                chunks += 1;
            }
            taken.send(chunks).expect("the test runs");
        }
    });
    let site = Site::new();
    let double = Double::start(1, FAST).await;
    site.configure(&site.table("lab", &double).replace(&double.url, &url));
    let program = site.start(0, &[]).await;
    let (_, said) = site.operate("platform check lab").await;
    assert!(said.contains("its pieces are too small"), "{said}");
    assert!(answers.recv().await.expect("an answer") < CHUNKS);
    drop(program);
}
