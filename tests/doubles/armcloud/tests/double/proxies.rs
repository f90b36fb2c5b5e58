//! The proxies that listen.

use crate::harness::{Double, Echo};
use armcloud_double::addresses::of_proxy;
use reqwest::{Client, Proxy};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn requests_leave_from_the_proxys_address_over_socks_and_http() {
    let (double, echo) = (Double::start(&["--proxies", "2"]).await, Echo::start().await);
    for proxy in &double.proxies {
        let port = port(proxy);
        let exit = of_proxy("127.0.0.1", port).to_string();
        assert_eq!(proxy["exit"], exit);
        assert_eq!(over_http(port, &echo.url(), None).await, (200, exit.clone()));
        assert_eq!(over_socks(port, &echo, None).await, Some(exit.clone()));
        assert!(ask_through_tunnel(port, &echo).await.ends_with(&exit));
    }
    assert!(echo.seen.lock().unwrap()[0].starts_with("GET /once HTTP/1.1\r\n"));
    let pad = double.pads[0].clone();
    let own = json!({"enable": true, "ip": "127.0.0.1", "port": port(&double.proxies[0])});
    let task = double.submit("setProxy", &pad, own).await;
    double.wait_for_end(task).await;
    let seen = double.shell(&pad, &format!("curl -s {}", echo.url())).await;
    assert_eq!(seen, double.proxies[0]["exit"], "a pad behind it has the same exit");
}

#[tokio::test]
async fn a_login_is_asked_for_and_switches_hold_here_too() {
    let (double, echo) =
        (Double::start(&["--proxies", "1", "--proxy-login", "user:secret"]).await, Echo::start().await);
    let port = port(&double.proxies[0]);
    let exit = of_proxy("127.0.0.1", port).to_string();
    assert_eq!(over_http(port, &echo.url(), None).await.0, 407);
    assert_eq!(over_http(port, &echo.url(), Some(("user", "secret"))).await, (200, exit.clone()));
    let head = echo.seen.lock().unwrap().concat().to_ascii_lowercase();
    assert!(head.starts_with("get ") && !head.contains("proxy-"), "{head}");
    assert_eq!(over_socks(port, &echo, Some(("user", "secret"))).await, Some(exit.clone()));
    assert_eq!(over_socks(port, &echo, Some(("user", "sekret"))).await, None);
    assert_eq!(over_socks(port, &echo, None).await, None);
    double.set_all(json!({"proxy_lies": "192.0.2.55", "proxy_login": "a:b"})).await;
    assert_eq!(over_socks(port, &echo, Some(("a", "b"))).await.as_deref(), Some("192.0.2.55"));
    double.set_all(json!({"proxy_rotates": true})).await;
    assert_ne!(over_socks(port, &echo, Some(("user", "secret"))).await, Some(exit));
    double.set_all(json!({"proxy_dead": true})).await;
    assert_eq!(over_socks(port, &echo, Some(("user", "secret"))).await, None);
    let outside = over_http(port, "http://192.0.2.1/", Some(("user", "secret"))).await;
    assert!(outside.0 == 502 || outside.0 == 0, "nothing leaves this machine: {outside:?}");
}

fn port(proxy: &Value) -> u16 {
    u16::try_from(proxy["port"].as_u64().expect("a port")).expect("a port")
}

/// Sends a GET through a proxy. Returns status and body; the status is 0 without an answer.
async fn over_http(port: u16, url: &str, login: Option<(&str, &str)>) -> (u16, String) {
    let proxy = Proxy::all(format!("http://127.0.0.1:{port}")).expect("a proxy");
    let proxy = login.into_iter().fold(proxy, |proxy, (user, password)| proxy.basic_auth(user, password));
    let client = Client::builder().proxy(proxy).build().expect("a client");
    match client.get(url).send().await {
        Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap_or_default()),
        Err(_) => (0, String::new()),
    }
}

async fn over_socks(port: u16, echo: &Echo, login: Option<(&str, &str)>) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.write_all(if login.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] }).await.ok()?;
    let mut method = [0; 2];
    stream.read_exact(&mut method).await.ok()?;
    if let (Some((user, password)), 2) = (login, method[1]) {
        let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        stream.write_all(&[vec![1], text(user), text(password)].concat()).await.ok()?;
        stream.read_exact(&mut method).await.ok()?;
        (method[1] == 0).then_some(())?;
    } else {
        (method[1] == 0).then_some(())?;
    }
    stream
        .write_all(&[&[5, 1, 0, 1, 127, 0, 0, 1], echo.address.port().to_be_bytes().as_slice()].concat())
        .await
        .ok()?;
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await.ok()?;
    (reply[1] == 0).then_some(())?;
    last_line(stream).await
}

async fn ask_through_tunnel(port: u16, echo: &Echo) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a proxy");
    let connect = format!("CONNECT {} HTTP/1.1\r\nHost: {0}\r\n\r\n", echo.address);
    stream.write_all(connect.as_bytes()).await.expect("written");
    last_line(stream).await.unwrap_or_default()
}

/// Sends a GET on a stream. Returns the last line of the answer.
async fn last_line(mut stream: TcpStream) -> Option<String> {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: echo\r\n\r\n").await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer.lines().last()?.to_owned())
}
