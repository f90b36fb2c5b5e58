//! Tests the client against servers that fail at each moment, and checks that its report is true.

use super::gate::{Gate, Verdict};
use super::{HttpClient, HttpFailure, HttpLimits, Road, Way};
use http::{Request, StatusCode};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use url::Url;

#[derive(Clone, Copy, Debug)]
enum Act {
    Answer(&'static str),
    Cut(&'static str),
    Hold,
}

const OK: Act = Act::Answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");

struct Server {
    url: Url,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(acts: &'static [Act]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/x", listener.local_addr().expect("an address")).parse().expect("a URL");
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        let counts = (connections.clone(), requests.clone());
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counts.0.fetch_add(1, SeqCst);
                open.spawn(act(stream, acts, counts.1.clone()));
            }
        });
        Self { url, connections, requests, _tasks: tasks }
    }

    fn counts(&self) -> (usize, usize) {
        (self.connections.load(SeqCst), self.requests.load(SeqCst))
    }
}

async fn act(mut stream: TcpStream, acts: &[Act], requests: Arc<AtomicUsize>) {
    let mut read = Vec::new();
    loop {
        while !read.ends_with(b"{}") {
            match stream.read_buf(&mut read).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        read.clear();
        let at = requests.fetch_add(1, SeqCst);
        match acts[at.min(acts.len() - 1)] {
            Act::Answer(text) => stream.write_all(text.as_bytes()).await.expect("written"),
            Act::Cut(text) => {
                stream.write_all(text.as_bytes()).await.expect("written");
                stream.set_zero_linger().expect("a socket");
                return;
            }
            Act::Hold => {}
        }
    }
}

const LIMITS: HttpLimits = HttpLimits { deadline: Duration::from_mins(2), largest_answer: 1_000 };

const SHORT: HttpLimits = HttpLimits { deadline: Duration::from_millis(500), ..LIMITS };

fn post(url: &Url) -> Request<&'static str> {
    Request::post(url.as_str()).header("x-secret", "hunter2").body("{}").expect("a request")
}

fn tls_client(roots: RootCertStore) -> HttpClient {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    HttpClient { way: Way::Direct(Road::of(tcp, tls.with_root_certificates(roots).with_no_client_auth(), true)) }
}

async fn once(url: &Url, limits: HttpLimits) -> Result<(StatusCode, String), HttpFailure> {
    let client = HttpClient::to(url).expect("a client");
    let answer = client.exchange_once(post(url), limits, async { true }).await?;
    Ok((answer.status(), String::from_utf8_lossy(answer.body()).into_owned()))
}

#[tokio::test]
async fn a_request_that_may_have_left_is_never_reported_unsent_and_none_is_sent_twice() {
    let cases: [(&'static [Act], HttpLimits, &str); 7] = [
        (&[OK], LIMITS, "200 ok"),
        (&[Act::Answer("HTTP/1.1 307 T\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n")], LIMITS, "307 "),
        (&[Act::Cut("")], LIMITS, "ended"),
        (&[Act::Cut("HTTP/1.1 200 OK\r\nContent-Le")], LIMITS, "ended"),
        (&[Act::Cut("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal")], LIMITS, "ended"),
        (&[Act::Hold], LIMITS, "no whole answer"),
        (&[OK], HttpLimits { largest_answer: 1, ..LIMITS }, "larger than 1 bytes"),
    ];
    for (acts, limits, expected) in cases {
        let server = Server::start(acts).await;
        let url = server.url.clone();
        let exchange = tokio::spawn(async move { once(&url, limits).await });
        if let [Act::Hold] = acts {
            while server.counts().1 == 0 {
                tokio::task::yield_now().await;
            }
            tokio::time::pause();
            tokio::time::advance(limits.deadline).await;
            tokio::time::resume();
        }
        let (text, nothing_left) = match exchange.await.expect("no panic") {
            Ok((status, body)) => (format!("{} {body}", status.as_u16()), false),
            Err(failure) => (failure.to_string(), failure.nothing_left()),
        };
        assert!(text.contains(expected) && !text.contains("hunter2"), "{acts:?}: {text}");
        assert!(!nothing_left, "{acts:?}");
        assert_eq!(server.counts(), (1, 1), "{acts:?}");
    }
}

#[tokio::test]
async fn an_answer_in_tiny_pieces_is_given_up_after_a_thousand_of_them() {
    for (pieces, size, expected) in [(1_000, 1, "200"), (3_000, 100, "200"), (1_100, 1, "its pieces are too small")] {
        let piece = format!("{size:x}\r\n{}\r\n", "x".repeat(size));
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", piece.repeat(pieces));
        let acts: &'static [Act] = vec![Act::Answer(text.leak())].leak();
        let server = Server::start(acts).await;
        let told = match once(&server.url, HttpLimits { largest_answer: 1 << 20, ..LIMITS }).await {
            Ok((status, body)) => format!("{} {}", status.as_u16(), body.len()),
            Err(failure) => failure.to_string(),
        };
        assert!(told.contains(expected), "{pieces} pieces of {size}: {told}");
    }
}

#[tokio::test]
async fn a_request_that_never_left_is_reported_as_such() {
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("an address");
    let url = |scheme: &str, address| format!("{scheme}://{address}/x").parse::<Url>().expect("a URL");
    let failure = once(&url("http", gone), LIMITS).await.expect_err("no answer");
    assert_eq!(failure, HttpFailure::Refused);
    assert!(failure.nothing_left());
    // The bytes of a TLS handshake are not part of the request.
    for (answer, limits) in [(Some("HTTP/1.1 400 Bad\r\n\r\n"), LIMITS), (None, SHORT)] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = url("https", listener.local_addr().expect("an address"));
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut hello = Vec::new();
            stream.read_buf(&mut hello).await.expect("a greeting");
            if let Some(answer) = answer {
                stream.write_all(answer.as_bytes()).await.expect("written");
            }
            let _ = stream.read_to_end(&mut hello).await;
            String::from_utf8_lossy(&hello).into_owned()
        });
        let client = tls_client(RootCertStore::empty());
        let failure = client.exchange_once(post(&url), limits, async { true }).await.expect_err("no answer");
        assert!(matches!(failure, HttpFailure::Unreachable(_)) && failure.nothing_left(), "{failure}");
        assert!(!server.await.expect("a server").contains("hunter2"));
    }
}

#[tokio::test]
async fn a_request_whose_time_has_passed_when_the_connection_stands_does_not_leave() {
    let server = Server::start(&[OK]).await;
    let client = HttpClient::to(&server.url).expect("a client");
    let failure = client.exchange_once(post(&server.url), LIMITS, async { false }).await.expect_err("no answer");
    assert_eq!(failure, HttpFailure::TooLate);
    assert!(failure.nothing_left());
    assert_eq!(once(&server.url, LIMITS).await, Ok((StatusCode::OK, "ok".to_owned())));
    assert_eq!(server.requests.load(SeqCst), 1);
}

#[tokio::test]
async fn the_gate_stands_behind_the_handshake_and_an_untrusted_server_gets_nothing() {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(issued.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let config = config.with_single_cert(vec![issued.cert.der().clone()], key).expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url: Url =
        format!("https://localhost:{}/x", listener.local_addr().expect("an address").port()).parse().expect("a URL");
    let server = tokio::spawn(async move {
        let mut seen = Vec::new();
        for _ in 0..3 {
            let (stream, _) = listener.accept().await.expect("a connection");
            let mut read = Vec::new();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                while !read.ends_with(b"{}") && stream.read_buf(&mut read).await.is_ok_and(|bytes| bytes > 0) {}
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
            seen.push(String::from_utf8_lossy(&read).contains("hunter2"));
        }
        seen
    });
    let mut roots = RootCertStore::empty();
    roots.add(issued.cert.der().clone()).expect("a root");
    let trusting = tls_client(roots);
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(stranger.cert.der().clone()).expect("a root");
    let untrusted = tls_client(roots).exchange_once(post(&url), LIMITS, async { true }).await.expect_err("no answer");
    assert!(matches!(untrusted, HttpFailure::Certificate(_)) && untrusted.nothing_left(), "{untrusted}");
    for (may_leave, expected) in [(false, Err(HttpFailure::TooLate)), (true, Ok(StatusCode::OK))] {
        let answer = trusting.exchange_once(post(&url), LIMITS, async move { may_leave }).await;
        assert_eq!(answer.map(|answer| answer.status()), expected);
    }
    assert_eq!(server.await.expect("a server"), [false, false, true]);
}

/// Races the reset with the request: a report that nothing left must be right in each case.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_while_a_request_leaves_is_reported_truly() {
    for round in 0..200 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url: Url = format!("http://{}/x", listener.local_addr().expect("an address")).parse().expect("a URL");
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut read = [0; 1];
            let arrived = if round % 2 == 0 { stream.read(&mut read).await.unwrap_or(0) } else { 0 };
            stream.set_zero_linger().expect("a socket");
            arrived
        });
        let failure = once(&url, LIMITS).await.expect_err("no answer");
        let arrived = server.await.expect("a server");
        assert!(!(failure.nothing_left() && arrived > 0), "{failure}");
    }
}

#[tokio::test]
async fn a_gate_that_was_shut_lets_nothing_through_and_one_that_was_passed_says_so() {
    let (shut, passed) = (Gate::new(async { true }), Gate::new(async { true }));
    let pass = async |gate: &Gate| poll_fn(|context| gate.poll_pass(context)).await;
    assert!(shut.shut() == Verdict::Shut);
    assert!(pass(&shut).await.is_err() && pass(&passed).await.is_ok());
    assert!(passed.shut() == Verdict::Left);
    assert!(pass(&passed).await.is_ok(), "the rest of a request that has begun to leave");
    let (answer, asked) = oneshot::channel();
    let gate = Gate::new(async { asked.await.unwrap_or(false) });
    assert!(poll_fn(|context| Poll::Ready(gate.poll_pass(context).is_pending())).await);
    assert!(gate.shut() == Verdict::Shut);
    answer.send(true).expect("a question");
    assert!(pass(&gate).await.is_err());
}

#[tokio::test]
async fn a_request_waits_on_its_connection_until_it_is_confirmed_that_it_may_leave() {
    for answer in [Some(true), Some(false), None] {
        let server = Server::start(&[OK]).await;
        let (tell, asked) = oneshot::channel();
        let (url, mut tell) = (server.url.clone(), Some(tell));
        let exchange = tokio::spawn(async move {
            let client = HttpClient::to(&url).expect("a client");
            let limits = if answer.is_some() { LIMITS } else { SHORT };
            client.exchange_once(post(&url), limits, async { asked.await.unwrap_or(false) }).await
        });
        while server.counts().0 == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.counts(), (1, 0), "{answer:?}");
        if let Some(answer) = answer {
            tell.take().expect("one question").send(answer).expect("a question");
        }
        match exchange.await.expect("no panic") {
            Ok(_) => assert_eq!(answer, Some(true)),
            Err(failure) => assert!(answer != Some(true) && failure.nothing_left(), "{answer:?}: {failure}"),
        }
        assert_eq!(server.counts(), (1, usize::from(answer == Some(true))), "{answer:?}");
    }
}

#[tokio::test]
async fn a_kept_connection_is_used_again_and_a_lost_request_is_not_sent_again() {
    let server = Server::start(&[OK, OK, Act::Cut("")]).await;
    let client = HttpClient::to(&server.url).expect("a client");
    for _ in 0..2 {
        client.exchange(post(&server.url), LIMITS).await.expect("an answer");
    }
    assert_eq!(server.counts(), (1, 2));
    let failure = client.exchange(post(&server.url), LIMITS).await.expect_err("no answer");
    assert!(matches!(failure, HttpFailure::Lost(_)) && !failure.nothing_left(), "{failure}");
    assert_eq!(server.counts(), (1, 3));
}

#[test]
fn plain_http_goes_to_this_machine_and_to_what_is_configured_alone() {
    for (url, expected) in [
        ("http://127.0.0.1:1/", true),
        ("http://localhost/", true),
        ("https://example.com/", true),
        ("http://example.com/", false),
        ("http://10.0.0.1/", false),
        ("ftp://127.0.0.1/", false),
    ] {
        let (url, is_http) = (url.parse().expect("a URL"), url.starts_with("http"));
        assert_eq!(HttpClient::to(&url).is_ok(), expected, "{url}");
        assert_eq!(HttpClient::to_configured(&url).is_ok(), is_http, "{url}");
    }
}
