//! Readings that the server takes itself, through proxies on this machine.

use super::*;
use crate::adapter_kit::readings::tests::{Running, proxy, with_login};
use kit::ProxyClient;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolwarrant::http::CallbackSource;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Manner {
    Honest,
    Demands(&'static str),
    /// Reports a connection, and answers in place of the callback listener.
    Lies,
    Refuses,
    Babbles,
}

pub(crate) async fn run_proxy(manner: Manner, exit: [u8; 4]) -> (SocketAddr, Arc<Mutex<String>>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, heard) = (listener.local_addr().unwrap(), Arc::<Mutex<String>>::default());
    let mut tasks = JoinSet::new();
    let log = Arc::clone(&heard);
    tasks.spawn(async move {
        let mut served = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            served.spawn(async move { drop(pass_on(stream, manner, exit, &log).await) });
        }
    });
    (at, heard, tasks)
}

async fn pass_on(mut stream: TcpStream, manner: Manner, exit: [u8; 4], log: &Mutex<String>) -> io::Result<()> {
    if manner == Manner::Babbles {
        stream.read_u8().await?;
        return stream.write_all(b"what do you want from me, stranger?\r\n\r\n").await;
    }
    let login = if let Manner::Demands(login) = manner { Some(login) } else { None };
    let Some(mut client) = ProxyClient::meet(stream, login).await? else { return Ok(()) };
    client.answer(manner != Manner::Refuses).await?;
    if manner == Manner::Refuses {
        return Ok(());
    }
    log.lock().unwrap().push_str(&format!("{} ", client.to));
    if manner == Manner::Lies {
        return client.lie("").await;
    }
    // The proxy is slow.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::from(exit), 0).into())?;
    let port = client.to.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
    let mut echo = socket.connect((Ipv4Addr::LOCALHOST, port).into()).await?;
    tokio::io::copy_bidirectional(&mut client.stream, &mut echo).await.map(drop)
}

const EXIT: [u8; 4] = [127, 0, 0, 5];

pub(crate) fn reader() -> ProxyReader {
    ProxyReader { judge: |_, host| Ok(host.to_owned()), ..ProxyReader::new(ProxyHosts::Public) }
}

#[tokio::test]
async fn the_echo_sees_where_a_request_through_a_proxy_leaves_and_nothing_that_the_proxy_says_counts() {
    let running = Running::start();
    let (own, unseen) = (CallbackSource::One(EXIT.into()), CallbackSource::Nobody);
    let no = "the proxy did not pass a request on";
    for (scheme, manner, login, seen, error) in [
        ("socks5", Manner::Honest, None, own, None),
        ("http", Manner::Honest, None, own, None),
        ("socks5", Manner::Honest, Some("u1:p1"), own, None),
        ("socks5", Manner::Demands("u1:p1"), Some("u1:p1"), own, None),
        ("http", Manner::Demands("u1:p1"), Some("u1:p1"), own, None),
        ("socks5", Manner::Demands("u1:p1"), Some("u1:p2"), unseen, Some(no)),
        ("http", Manner::Demands("u1:p1"), Some("u1:p2"), unseen, Some(no)),
        ("socks5", Manner::Demands("u1:p1"), None, unseen, Some(no)),
        ("http", Manner::Demands("u1:p1"), None, unseen, Some(no)),
        ("socks5", Manner::Lies, None, unseen, None),
        ("http", Manner::Lies, None, unseen, None),
        ("socks5", Manner::Refuses, None, unseen, Some(no)),
        ("http", Manner::Refuses, None, unseen, Some(no)),
        ("socks5", Manner::Babbles, None, unseen, Some(no)),
        ("http", Manner::Babbles, None, unseen, Some(no)),
        ("https", Manner::Honest, None, unseen, Some(no)),
    ] {
        let (at, heard, _tasks) = run_proxy(manner, EXIT).await;
        let pair = [(); 2].map(|()| running.echo.expect().unwrap());
        let proxy = with_login(proxy(scheme, "127.0.0.1", at.port()), login);
        let asked = reader().ask(&proxy, &running.url, &pair).await;
        let why = asked.err().map(|Unreachable(why)| why.as_str().to_owned());
        assert_eq!(why.as_deref(), error, "{scheme} {manner:?} {login:?}");
        for expected in &pair {
            assert_eq!(expected.observe(Duration::ZERO).await, seen, "{scheme} {manner:?} {login:?}");
        }
        let wanted = format!("{} ", running.url.authority()).repeat(2);
        assert!(seen == unseen || *heard.lock().unwrap() == wanted, "{heard:?}");
    }
}

#[tokio::test]
async fn the_proxy_gets_host_and_port_of_the_listener_and_resolves_a_name_itself() {
    let running = Running::start();
    let port = running.url.port;
    for (host, told, arrives) in [
        (format!("127.0.0.1:{port}"), format!("127.0.0.1:{port} "), true),
        (format!("echo.example:{port}"), format!("echo.example:{port} "), true),
        (format!("[::1]:{port}"), format!("[::1]:{port} "), true),
        ("echo.example".to_owned(), "echo.example:80 ".to_owned(), false),
        ("[2001:db8::80]".to_owned(), "[2001:db8::80]:80 ".to_owned(), false),
    ] {
        let url: CallbackUrl = format!("http://{host}").parse().unwrap();
        for scheme in ["socks5", "http"] {
            let (at, heard, _tasks) = run_proxy(Manner::Honest, EXIT).await;
            let pair = [(); 2].map(|()| running.echo.expect().unwrap());
            let _ = reader().ask(&proxy(scheme, "127.0.0.1", at.port()), &url, &pair).await;
            let seen = if arrives { CallbackSource::One(EXIT.into()) } else { CallbackSource::Nobody };
            assert_eq!(pair[1].observe(Duration::ZERO).await, seen, "{scheme} {host}");
            assert_eq!(*heard.lock().unwrap(), told.repeat(2), "{scheme}");
        }
    }
}

#[tokio::test]
async fn the_server_connects_only_to_addresses_that_the_operator_allows() {
    let running = Running::start();
    let pair = [(); 2].map(|()| running.echo.expect().unwrap());
    let (at, _, _tasks) = run_proxy(Manner::Honest, EXIT).await;
    for hosts in [ProxyHosts::Public, ProxyHosts::PublicAndPrivate] {
        let reader = ProxyReader::new(hosts);
        let asked = reader.ask(&proxy("socks5", "127.0.0.1", at.port()), &running.url, &pair).await;
        let Err(Unreachable(why)) = asked else { panic!("it is refused") };
        assert_eq!(why.as_str(), "the host has an address that is refused");
    }
    assert_eq!(pair[0].observe(Duration::ZERO).await, CallbackSource::Nobody);
    // If one address of a name is refused, no address of it is used.
    let reader = ProxyReader::new(ProxyHosts::Public);
    let found = |texts: &[&str]| reader.pick_address(texts.iter().map(|text| text.parse().unwrap()));
    assert_eq!(found(&["8.8.8.8:1", "[2606:4700::1111]:1"]), Ok("8.8.8.8:1".parse().unwrap()));
    for refused in ["10.0.0.1:1", "169.254.169.254:1", "[::1]:1", "[::ffff:10.0.0.1]:1"] {
        assert_eq!(found(&["8.8.8.8:1", refused]), Err("the host has an address that is refused"), "{refused}");
        assert_eq!(found(&[refused, "8.8.8.8:1"]), Err("the host has an address that is refused"), "{refused}");
    }
    assert_eq!(found(&[]), Err("the host has no address"));
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_says_nothing_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = proxy("socks5", "127.0.0.1", listener.local_addr().unwrap().port());
    let running = Running::start();
    let pair = [(); 2].map(|()| running.echo.expect().unwrap());
    let begin = Instant::now();
    let Err(Unreachable(why)) = reader().ask(&silent, &running.url, &pair).await else { panic!("given up") };
    assert_eq!(why.as_str(), "the proxy did not answer in time");
    assert!((PATIENCE..2 * PATIENCE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
}
