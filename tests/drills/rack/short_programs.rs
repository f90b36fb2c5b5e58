//! The programs of an operator, and `docs/own-phones/container-proxy` among them. Each row has a
//! phone of its own, and all run at the same time.

use super::super::crash::assert_without;
use super::{PLATFORMS, RackSite, options};
use crate::harness::program::{Program, operate};
use kit::{PROXY_LOGIN, RackProxy, write_program};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Its arguments are ACTION SERIAL. The file `manner` of a phone says how it works.
const PROGRAM: &str = r#"#!/bin/sh
set -eu
number=${2#10.9.} number=${number%%.*}
cd "HOME/phone-$number"
case $(cat manner 2> /dev/null) in
    nothing) exit 0 ;;
    fails) exit 3 ;;
esac
case $1 in
    start) rm -f off ;;
    stop) touch off; echo stop > power ;;
    status) if [ -e off ]; then echo stopped; else echo running; fi ;;
    set | clear)
        net=/proc/$(cat pid)/ns/net
        CONTAINER_PROXY "$1" "$net"
        [ "$(cat manner 2> /dev/null)" != one-family ] || nsenter --net="$net" nft delete chain inet container_proxy refuse
        ;;
esac
"#;

/// Phone, manner of the program, proxy, true with the login, and the end. Odd phones are at the
/// older adb server.
const ROWS: [(u8, &str, &str, &str, bool, &str); 11] = [
    (1, "works", "socks5", "10.9.0.10", false, "success"),
    (2, "works", "socks5", "10.9.0.11", true, "success"),
    (3, "works", "http", "10.9.0.12", true, "success"),
    (4, "works", "socks5", "proxy.rack", true, "success"),
    (5, "nothing", "socks5", "10.9.0.11", true, "failed_silent"),
    (6, "fails", "http", "10.9.0.12", true, "failed"),
    (7, "one-family", "socks5", "10.9.0.11", true, "timeout"),
    (8, "works", "socks5", "10.9.0.99", false, "timeout"),
    (9, "works", "socks5", "10.9.0.98", false, "timeout"),
    (10, "nothing", "http", "10.9.0.12", true, "timeout"),
    (13, "works", "socks5", "10.9.0.97", false, "timeout"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and Debian: cargo xtask drill rack"]
async fn programs_switch_phones_and_give_them_proxies_that_are_measured() {
    let site = RackSite::start(&options(), 13, 5).await;
    let folder = site.home.path();
    site.rack.install(&["bin/jq", "sbin/nft", "sbin/redsocks"]).expect("root");
    for (kind, host) in [(RackProxy::Open, 10), (RackProxy::Socks5, 11), (RackProxy::Http, 12)] {
        site.rack.start_proxy(kind, host).await.expect("a proxy");
    }
    for address in ["10.9.0.1/32", "10.9.0.95/32", "10.9.0.96/32", "10.9.0.97/32", "10.9.0.98/32", "fd00:9::1/128"] {
        site.rack.add_address(address).expect("root");
    }
    tokio::spawn(lie("10.9.0.98:1080".parse().expect("an address")));
    tokio::spawn(rotate("10.9.0.97:1080".parse().expect("an address")));
    site.rack.name_host("10.9.0.11", "proxy.rack").expect("root");
    configure(folder);
    let urls = "http://10.9.0.1:8081,http://[fd00:9::1]:8081";
    let program = Arc::new(serve(&site, urls).await);
    let id = |number: u8| {
        let part = format!("10-9-{number}-2");
        site.phones.keys().find(|id| id.contains(&part)).expect("a phone").clone()
    };
    // The missing effect on one phone is refunded, because its readings are proven.
    let line = format!("platform check {} --write {} --proxy socks5://10.9.0.10:1080 --yes", PLATFORMS[0].0, id(5));
    let (code, said) = operate(&program.data, &line).await;
    assert_eq!(code, 0, "{said}{}", program.log());
    let mut playing = JoinSet::new();
    for (number, manner, scheme, host, login, end) in ROWS {
        let (program, id) = (Arc::clone(&program), id(number));
        fs::write(folder.join(format!("phone-{number}/manner")), manner).expect("written");
        playing.spawn(async move {
            let task = set_proxy(&program, &id, (scheme, host, login)).await;
            println!("{id}: {manner} {scheme} {host} {login}: {} {}", task["status"], task["evidence"]);
            assert_eq!((&task["status"], task["refund"].is_null()), (&json!(end), end != "failed_silent"), "{task:#}");
            if end == "success" {
                let cleared = play(&program, "clear_proxy", json!({"device_id": id})).await;
                assert_eq!(cleared["status"], "success_unverified", "{cleared:#}");
            }
        });
    }
    for number in [11, 12] {
        let (program, id) = (Arc::clone(&program), id(number));
        playing.spawn(async move { switch(&program, &id).await });
    }
    playing.join_all().await;
    assert_without(folder.join("data").as_path(), &[PROXY_LOGIN.1]);
    assert!(!program.log().contains(PROXY_LOGIN.1), "a password is in the log");
    Arc::into_inner(program).expect("no other user").stop().await;
    // With an echo in one family, the other one is not seen.
    let mut program = serve(&site, "http://10.9.0.1:8081").await;
    let task = set_proxy(&program, &id(7), ("socks5", "10.9.0.10", false)).await;
    assert_eq!(task["status"], "success", "{task:#}");
    program.stop().await;
}

fn configure(folder: &Path) {
    let (file, program) = (folder.join("cloudphone.toml"), folder.join("program"));
    let proxy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/own-phones/container-proxy");
    let script = PROGRAM.replace("HOME", &folder.display().to_string());
    let script = script.replace("CONTAINER_PROXY", &proxy.display().to_string());
    write_program(&program, &script).expect("written");
    let mut keys = String::from("proxy-seconds = 5\n");
    for (key, action) in
        [("start", "start"), ("stop", "stop"), ("status", "status"), ("set-proxy", "set"), ("clear-proxy", "clear")]
    {
        keys += &format!("{key} = [\"{}\", \"{action}\", \"{{serial}}\"]\n", program.display());
    }
    let config =
        fs::read_to_string(&file).expect("a configuration").replace("power-seconds", &(keys + "power-seconds"));
    let echo = "echo-listen = \"[::]:8081\"\necho-url = \"URLS\"\nallow-private-proxy = true\n";
    fs::write(file, echo.to_owned() + &config).expect("written");
}

async fn serve(site: &RackSite, urls: &str) -> Program {
    let file = site.home.path().join("cloudphone.toml");
    let config = fs::read_to_string(&file).expect("a configuration");
    let rest = config.split_once("\nallow-private").expect("the echo").1;
    let echo = format!("echo-listen = \"[::]:8081\"\necho-url = \"{urls}\"\nallow-private");
    fs::write(file, echo + rest).expect("written");
    site.serve().await
}

async fn set_proxy(program: &Program, id: &str, (scheme, host, login): (&str, &str, bool)) -> Value {
    let mut arguments = json!({"device_id": id, "scheme": scheme, "host": host, "port": 1080});
    if login {
        (arguments["username"], arguments["password"]) = (json!(PROXY_LOGIN.0), json!(PROXY_LOGIN.1));
    }
    play(program, "set_proxy", arguments).await
}

async fn play(program: &Program, tool: &str, arguments: Value) -> Value {
    let accepted = program.call(tool, arguments).await.expect("accepted");
    program.task(&accepted["task_id"]).await
}

/// Answers in place of the echo.
async fn lie(address: SocketAddr) {
    let listener = TcpListener::bind(address).await.expect("a free address");
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let answers: [&[u8]; 3] =
                [&[5, 0], &[5, 0, 0, 1, 10, 9, 0, 98, 0, 80], b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"];
            for answer in answers {
                if stream.read(&mut [0; 1_024]).await.unwrap_or(0) == 0 || stream.write_all(answer).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn rotate(address: SocketAddr) {
    let listener = TcpListener::bind(address).await.expect("a free address");
    for exit in [95, 96].into_iter().cycle() {
        let Ok((client, _)) = listener.accept().await else { return };
        tokio::spawn(pass_on(client, Ipv4Addr::new(10, 9, 0, exit)));
    }
}

async fn pass_on(mut client: TcpStream, exit: Ipv4Addr) -> io::Result<()> {
    let [_, methods] = [client.read_u8().await?, client.read_u8().await?];
    client.read_exact(&mut vec![0; methods.into()]).await?;
    client.write_all(&[5, 0]).await?;
    client.read_exact(&mut [0; 4]).await?;
    let target = (Ipv4Addr::from(client.read_u32().await?), client.read_u16().await?);
    let socket = TcpSocket::new_v4()?;
    socket.bind((exit, 0).into())?;
    let mut echo = socket.connect(target.into()).await?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    copy_bidirectional(&mut client, &mut echo).await.map(drop)
}

async fn switch(program: &Program, id: &str) {
    for (action, state) in [("shutdown", "stopped"), ("boot", "running")] {
        let task = play(program, "set_power", json!({"device_id": id, "action": action})).await;
        println!("{id}: {action}: {} {}", task["status"], task["evidence"]);
        assert_eq!(task["status"], "success", "{task:#}");
        let phone = program.call("get_device", json!({"device_id": id})).await.expect("it is known");
        assert_eq!(phone["state"], state, "{phone:#}");
    }
}
