//! Readings on connections that the phone opens, and in both families of addresses.

use super::*;
use async_trait::async_trait;
use std::net::SocketAddr;
use tokio::net::TcpStream;

struct LocalDial;

#[async_trait]
impl Dial for LocalDial {
    async fn dial(&self, _: &DeviceId, host: &str, port: u16) -> Result<DialedConnection, Unreachable> {
        let stream = TcpStream::connect((host, port)).await;
        stream.map(|stream| Box::new(stream) as DialedConnection).map_err(|error| Unreachable(error.to_string().into()))
    }
}

#[tokio::test]
async fn on_connections_of_the_phone_a_proxy_is_read_with_its_login_and_at_a_name_and_no_command_has_it() {
    let running = Running::start();
    let exit = [127, 0, 0, 5];
    let shown = Some(Through::Phone(exit.into()));
    for (scheme, host, manner, login, through) in [
        ("socks5", "127.0.0.1", Manner::Honest, "", shown),
        ("socks5", "localhost", Manner::Demands("u:p"), "u:p", shown),
        ("http", "localhost", Manner::Demands("u:p"), "u:p", shown),
        ("socks5", "127.0.0.1", Manner::Demands("u:p"), "u:x", None),
        ("http", "127.0.0.1", Manner::Lies, "u:p", None),
        ("http", "127.0.0.1", Manner::Babbles, "u:p", None),
        ("socks5", "127.0.0.1", Manner::Refuses, "", None),
    ] {
        let (at, _, _tasks) = run_proxy(manner, exit).await;
        let (url, ran) = (running.url.clone(), Mutex::default());
        let staged = StagedPhone { url, ordinary: &[OWN], through: [&[EXIT], &[EXIT]], prints: "curl", ran };
        let proxy = with_login(proxy(scheme, host, at.port()), Some(login));
        let (exits, _) = running.readings().read(&staged, Some(&LocalDial), &proxy).await;
        assert_eq!(exits.unwrap(), Exits::of(OWN.into(), through), "{scheme} {manner:?} {login}");
        let ran = staged.ran.lock().unwrap();
        assert!(!ran.contains("u:") && !ran.contains("-x"), "{ran}");
    }
}

/// IPv4 traffic leaves from [`EXIT`], and IPv6 traffic directly or not at all.
struct TwoFamilies {
    leaks: bool,
}

#[async_trait]
impl Shell for TwoFamilies {
    async fn run(&self, _: &DeviceId, script: &str) -> Result<String, Unreachable> {
        let url = script.split("g curl c 'http://").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
        let (authority, path) = url.split_once('/').unwrap();
        let to: SocketAddr = authority.parse().unwrap();
        if to.is_ipv4() || self.leaks {
            let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.unwrap();
            let from = if to.is_ipv4() { (Ipv4Addr::from(EXIT), 0).into() } else { "[::1]:0".parse().unwrap() };
            socket.bind(from).unwrap();
            let mut stream = socket.connect(to).await.unwrap();
            stream.write_all(format!("GET /{path} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.unwrap();
        }
        let nonce = &script["echo ".len()..][..16];
        Ok(format!("{nonce}<\ncurl\n{nonce}>0."))
    }
}

#[tokio::test]
async fn a_proxy_that_leaves_out_a_family_is_no_success_if_both_are_observed() {
    let listener = CallbackListener::bind("[::]:0".parse().unwrap(), Random::System);
    // Not every machine has IPv6.
    let Ok((listener, echo)) = listener else { return };
    let port = listener.address().unwrap().port();
    let served = tokio::spawn(listener.serve(std::future::pending()));
    let (at, _, _tasks) = run_proxy(Manner::Honest, EXIT).await;
    let proxy = proxy("socks5", "localhost", at.port());
    let (v4, v6) = (format!("http://127.0.0.1:{port}"), format!("http://[::1]:{port}"));
    for (urls, leaks, verdict) in [
        (format!("{v4},{v6}"), false, Verdict::Present),
        (format!("{v4},{v6}"), true, Verdict::Unreadable),
        (v4.clone(), true, Verdict::Present),
    ] {
        let echo = Some((echo.clone(), urls.parse().unwrap()));
        let readings = PhoneReadings { echo, random: Random::from_seed(1), by_server: None };
        let exits = readings.read(&TwoFamilies { leaks }, Some(&LocalDial), &proxy).await.0.unwrap();
        assert_eq!(exits.verdict(&proxy, Some(OWN.into())), verdict, "{urls} {leaks}: {exits:?}");
    }
    for urls in
        ["", "http://a,http://b", "http://127.0.0.1,http://127.0.0.2", "http://a,http://[::1]", "http://1.2.3.4,"]
    {
        assert!(urls.parse::<CallbackUrls>().is_err(), "{urls}");
    }
    served.abort();
}
