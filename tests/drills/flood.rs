//! The answers that other applications get before, during and after a flood under `/v1`: signed
//! requests beyond a budget, and large bodies that no key has signed. This takes minutes, so only
//! `cargo xtask drill flood` runs it.

use super::options;
use crate::harness::Key;
use crate::harness::program::{Program, key_of, operate};
use crate::harness::signed::{Signed, exchange};
use crate::wire::edge::send_large_bodies;
use serde::Deserialize;
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The options of `cargo xtask drill flood`, in seconds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FloodOptions {
    before: u64,
    during: u64,
    after: u64,
}

/// Time from one pair of calls of the other application to the next.
const PACE: Duration = Duration::from_millis(100);

/// The most that a flood may leave in memory, in KiB, and on the disk, in bytes.
const MOST: (u64, u64) = (20 * 1024, 1024 * 1024);

#[derive(Clone, Copy, Debug)]
enum Flood {
    Reads,
    Writes,
    Bodies(u32),
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs()
}

/// Sends signed requests on one connection, without pause.
async fn send_signed(address: SocketAddr, key: Key, flood: Flood, sent: Arc<AtomicU64>) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let mut answers = Vec::new();
    loop {
        let mut batch = Vec::new();
        for _ in 0..16 {
            let request = match flood {
                Flood::Reads => Signed::at(now(), &key, "GET", "/v1/devices?limit=1"),
                _ => Signed::at(now(), &key, "DELETE", "/v1/devices/phone-0000001/proxy"),
            };
            batch.extend(request.header("connection", "keep-alive").octets());
        }
        stream.write_all(&batch).await.expect("sent");
        answers.clear();
        while answers.windows(9).filter(|part| part == b"HTTP/1.1 ").count() < 16 {
            assert!(stream.read_buf(&mut answers).await.expect("answers") > 0, "the connection ended");
        }
        sent.fetch_add(16, Relaxed);
    }
}

/// Calls as another application for that many seconds. Prints a row, and returns the number of
/// refused calls.
async fn observe(program: &Program, key: &Key, phase: &str, seconds: u64) -> usize {
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let batch = key.request(&format!("[{list}{}]", " ".repeat(33_000)), "connection: close\r\n");
    let (begin, mut refused, mut took) = (Instant::now(), Vec::new(), Vec::new());
    while begin.elapsed() < Duration::from_secs(seconds) {
        for octets in [Signed::at(now(), key, "GET", "/v1/devices?limit=1").octets(), batch.clone().into_bytes()] {
            let sent = Instant::now();
            let answer = exchange(program.address, &octets).await.expect("an answer");
            took.push(sent.elapsed().as_secs_f64() * 1e3);
            refused.extend((answer.status != 200).then_some(answer.status));
        }
        sleep(PACE).await;
    }
    took.sort_by(f64::total_cmp);
    let (calls, at) = (took.len(), |part: usize| took[took.len() * part / 100]);
    println!("  {phase:7} {calls:6} {:8} {:8.1} {:8.1}", refused.len(), at(50), at(99));
    refused.len()
}

/// Returns the memory of the program in KiB, and the bytes of its database.
fn size(program: &Program) -> (u64, u64) {
    let bytes = |name: &str| std::fs::metadata(program.data.join(name)).map_or(0, |file| file.len());
    (program.memory("VmRSS").expect("its memory"), bytes("cloudphone.db"))
}

async fn application(data: &Path, name: &str, budget: u32) -> Key {
    let (code, told) =
        operate(data, &format!("app create {name} --permission device --requests-per-minute {budget}")).await;
    assert_eq!(code, 0, "{told}");
    let (code, told) = operate(data, &format!("device assign {name} --all")).await;
    assert_eq!(code, 0, "{told}");
    key_of(data, name).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: cargo xtask drill flood"]
async fn a_flood_under_v1_costs_other_applications_no_call() {
    let FloodOptions { before, during, after } = options();
    println!("  phase    calls  refused   p50 ms   p99 ms");
    for flood in [Flood::Reads, Flood::Writes, Flood::Bodies(185), Flood::Bodies(1_000)] {
        let program = Program::start(&[]).await;
        let other = application(&program.data, "other", 1_000_000).await;
        let flooding = application(&program.data, "flooding", 300).await;
        println!("{flood:?}");
        let mut refused = observe(&program, &other, "before", before).await;
        let (was, sent) = (size(&program), Arc::new(AtomicU64::new(0)));
        let mut senders = JoinSet::new();
        let (told, mut refusals) = mpsc::unbounded_channel();
        match flood {
            Flood::Bodies(many) => (0..many).for_each(|n| {
                senders.spawn(send_large_bodies(program.address, 2 + (n % 5) as u8, told.clone()));
            }),
            _ => (0..8).for_each(|_| {
                senders.spawn(send_signed(program.address, flooding.clone(), flood, sent.clone()));
            }),
        }
        refused += observe(&program, &other, "during", during).await;
        assert!(senders.try_join_next().is_none(), "a sender failed");
        senders.shutdown().await;
        let peak = size(&program).0.saturating_sub(was.0);
        refused += observe(&program, &other, "after", after).await;
        let is = size(&program);
        let bodies = std::iter::from_fn(|| refusals.try_recv().ok()).count();
        let (left, stored) = (is.0.saturating_sub(was.0), is.1.saturating_sub(was.1));
        let sent = sent.load(Relaxed);
        println!(
            "  {}",
            json!({"signed": sent, "refused bodies": bodies, "KiB at the end": peak, "KiB left": left, "bytes on disk": stored})
        );
        assert_eq!(refused, 0, "{flood:?}");
        assert!(
            matches!(flood, Flood::Bodies(_)) || (peak <= MOST.0 && stored <= MOST.1),
            "{peak} KiB, {stored} bytes"
        );
    }
}
