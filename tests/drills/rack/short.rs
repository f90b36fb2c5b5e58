//! One of everything, at each adb server.

use super::{PLATFORMS, RackSite, measure_return, options, restart, wait_until_unknown};
use crate::harness::program::Program;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kit::{PROXY_LOGIN, PhoneFault, RackPhone, RackProxy};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and Debian: cargo xtask drill rack"]
async fn restarts_through_both_adb_servers_end_as_what_happened() {
    let mut site = RackSite::start(&options(), 4, 15).await;
    let mut program = site.serve().await;
    let phones_of = |platform: &str| {
        let mut phones: Vec<_> = site.phones.iter().filter(|(id, _)| id.starts_with(platform)).collect();
        phones.sort_by_key(|(id, _)| *id);
        phones
    };
    let [twelve, thirteen] = PLATFORMS.map(|(platform, ..)| phones_of(platform));
    tokio::join!(
        restart_and_swallow(&program, twelve[0]),
        restart_and_swallow(&program, thirteen[0]),
        freeze(&program, twelve[1]),
        freeze(&program, thirteen[1]),
    );
    let took = measure_return(&mut site, &program).await;
    assert!(took < Duration::from_secs(10), "the phones run {took:?} after the return of the servers");
    println!("{:>8}  milliseconds until all phones run after the return of the servers", took.as_millis());
    program.stop().await;
}

async fn restart_and_swallow(program: &Program, (id, phone): (&String, &Arc<RackPhone>)) {
    for (swallows, status, acts) in [(false, "success", 1), (true, "failed_silent", 2)] {
        if swallows {
            phone.swallow(true).expect("a switch");
        }
        let begun = tokio::time::Instant::now();
        let accepted = program.call("set_power", restart(id)).await.expect("accepted");
        let task = program.task(&accepted["task_id"]).await;
        println!("{:>8}  milliseconds until {status} of {id}", begun.elapsed().as_millis());
        assert_eq!((&task["status"], task["refund"].is_null()), (&json!(status), !swallows), "{task:#}");
        assert_eq!(task["evidence"]["reported"], "success", "{task:#}");
        assert_eq!(phone.count_commands().expect("a journal"), acts, "{task:#}");
    }
}

async fn freeze(program: &Program, (id, phone): (&String, &Arc<RackPhone>)) {
    phone.begin(PhoneFault::Freeze).expect("frozen");
    wait_until_unknown(program, id).await;
    let refused = program.call("set_power", restart(id)).await.expect_err("it does not answer");
    println!("{id}: {refused}");
    phone.end(PhoneFault::Freeze).expect("thawed");
    assert_eq!(phone.count_commands().expect("a journal"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and Debian: cargo xtask drill rack"]
async fn proxies_demand_a_login_and_leave_from_addresses_of_their_own() {
    let site = RackSite::start(&options(), 0, 15).await;
    let echo = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let target = echo.local_addr().expect("an address");
    let (user, password) = PROXY_LOGIN;
    let socks = site.rack.start_proxy(RackProxy::Socks5, 11).await.expect("microsocks");
    let http = site.rack.start_proxy(RackProxy::Http, 12).await.expect("tinyproxy");
    for password in [password, "other"] {
        let login = [&[1, user.len() as u8], user.as_bytes(), &[password.len() as u8], password.as_bytes()].concat();
        let connect = [&[5, 1, 0, 1, 127, 0, 0, 1][..], &target.port().to_be_bytes()].concat();
        let basic = STANDARD.encode(format!("{user}:{password}"));
        let head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {basic}\r\n\r\n");
        for (proxy, parts) in [(socks, vec![vec![5, 1, 2], login, connect]), (http, vec![head.into_bytes()])] {
            let mut stream = TcpStream::connect(proxy).await.expect("it listens");
            for part in parts {
                // A proxy that refuses the login closes the connection.
                let _ = stream.write_all(&part).await;
                let _ = stream.read(&mut [0; 256]).await;
            }
            let arrived = timeout(Duration::from_millis(500), echo.accept()).await;
            let from = arrived.ok().and_then(Result::ok).map(|(_, peer)| peer.ip());
            assert_eq!(from, (password == PROXY_LOGIN.1).then_some(proxy.ip()));
        }
    }
}
