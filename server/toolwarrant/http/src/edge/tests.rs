//! The edge over real sockets. The server runs on its own thread, so the clients here can block.

use super::*;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Semaphore, oneshot};
use toolwarrant_base::BoxFuture;

/// It should pass during the test.
const SHORT: Duration = Duration::from_millis(200);
/// It should not pass.
const LONG: Duration = Duration::from_secs(60);

fn long_deadlines() -> Limits {
    Limits { head: LONG, idle: LONG, body_gap: LONG, body: LONG, answer: LONG, grace: LONG, ..Limits::default() }
}

struct TestServer {
    address: SocketAddr,
    limiter: Arc<ConnectionLimiter>,
    waiting: Arc<Semaphore>,
    /// Each permit ends one call of `/wait`.
    release: Arc<Semaphore>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    fn start(limits: Limits) -> Self {
        let (waiting, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (started, go) = (Arc::clone(&waiting), Arc::clone(&release));
        let wait = async move || {
            started.add_permits(1);
            go.acquire().await.expect("open").forget();
            "waited"
        };
        let router = Router::new().route("/", post(length)).route("/wait", get(wait)).with_state(limits);

        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("nonblocking");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let limiter = ConnectionLimiter::new(limits);
        let own = Arc::clone(&limiter);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                serve(listener, PeerRouter(router), own, None, async { drop(stopped.await) }).await;
            });
        });
        Self { address, limiter, waiting, release, stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(LONG)).expect("set");
        stream
    }

    fn status(&self, text: &str) -> u16 {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).expect("sent");
        status(&everything(&mut stream))
    }

    fn stop(&mut self) {
        self.stop.take().expect("not yet stopped").send(()).expect("running");
    }

    fn join(mut self) {
        self.thread.take().expect("not yet joined").join().expect("no panic");
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}

struct PeerRouter(Router);

impl Responder for PeerRouter {
    fn respond<'a>(&'a self, mut request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        request.extensions_mut().insert(Peer::clone(&peer));
        self.0.respond(request, peer)
    }
}

async fn length(State(limits): State<Limits>, request: axum::extract::Request) -> (StatusCode, String) {
    let (head, body) = request.into_parts();
    match read_body(body, head.extensions.get(), BodyRoom::Verified, &limits).await {
        Ok(bytes) => (StatusCode::OK, bytes.len().to_string()),
        Err(BodyError::TooLarge) => (StatusCode::PAYLOAD_TOO_LARGE, String::new()),
        Err(BodyError::Timeout) => (StatusCode::REQUEST_TIMEOUT, String::new()),
        Err(BodyError::Overloaded) => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
        Err(BodyError::Broken) => (StatusCode::BAD_REQUEST, String::new()),
    }
}

fn everything(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("not closed: {error}"),
        _ => String::from_utf8(bytes).expect("text"),
    }
}

fn status(answer: &str) -> u16 {
    let code = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    code.and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

fn connection(limiter: &Arc<ConnectionLimiter>) -> (Peer, ClientStream<DuplexStream>, DuplexStream) {
    let permit = limiter.acquire([192, 0, 2, 1].into()).expect("a permit");
    let (ours, theirs) = tokio::io::duplex(16 * 1024);
    let connection = Arc::clone(&permit.connection);
    let stream = ClientStream::new(ours, Arc::clone(&connection), &limiter.limits);
    (Peer { address: connection.address, crowded: false, connection }, stream, theirs)
}

/// Returns the seconds until the connection ends. Each text comes after a pause in seconds.
async fn ends_after(sent: &[(u64, &str)]) -> u128 {
    let limiter = ConnectionLimiter::new(Limits::default());
    let (_running, stopping) = watch::channel(());
    let slow = async || sleep(Duration::from_secs(30)).await;
    let router = Router::new().route("/", post(length)).route("/slow", get(slow)).with_state(limiter.limits);
    let server = Server::new(Arc::new(PeerRouter(router)), Arc::clone(&limiter), stopping);
    let (own, stream, mut client) = connection(&limiter);
    let begin = tokio::time::Instant::now();
    let sending = async {
        for (after, text) in sent {
            sleep(Duration::from_secs(*after)).await;
            client.write_all(text.as_bytes()).await.expect("written");
        }
    };
    tokio::join!(server.serve(stream, &own, false), sending);
    begin.elapsed().as_millis() / 1000
}

#[tokio::test(start_paused = true)]
async fn a_head_has_ten_seconds_and_a_connection_may_be_idle_for_75_after_an_answer() {
    let (get, slow) = ("GET /none HTTP/1.1\r\nhost: x\r\n\r\n", "GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
    let (begun, ended) = get.split_at(20);
    let (head, body) = ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n", "body");
    let cases: &[(&[(u64, &str)], u128)] = &[
        (&[], 10),
        (&[(9, begun)], 10),
        (&[(3, "G"), (3, "E"), (3, "T")], 10),
        (&[(9, get)], 84),
        (&[(5, begun), (4, ended)], 84),
        (&[(9, get), (9, begun)], 28),
        (&[(9, get), (74, begun), (9, "h")], 93),
        (&[(9, get), (74, begun), (9, ended), (74, get)], 241),
        (&[(9, get), (9, get), (9, get), (9, get)], 111),
        (&[(1, get), (1, get), (1, get)], 78),
        // The edge cannot see the bytes that came with the request before.
        (&[(0, get), (0, get), (0, begun)], 75),
        (&[(2, slow)], 107),
        (&[(2, slow), (31, get), (1, begun)], 44),
        (&[(5, head), (9, body)], 89),
        (&[(5, head), (9, body), (9, begun)], 33),
    ];
    for (sent, expected) in cases {
        assert_eq!(ends_after(sent).await, *expected, "{sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_whole_takes_one_turn_of_its_connection() {
    let limiter = ConnectionLimiter::new(Limits::default());
    let (_running, stopping) = watch::channel(());
    let router = Router::new().route("/", post(length)).with_state(limiter.limits);
    let server = Server::new(Arc::new(PeerRouter(router)), Arc::clone(&limiter), stopping);
    let (own, stream, mut client) = connection(&limiter);
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let serving = tokio::spawn(async move {
        let mut served = pin!(server.serve(stream, &own, false));
        poll_fn(|context| {
            counted.fetch_add(1, Relaxed);
            served.as_mut().poll(context)
        })
        .await;
    });
    tokio::task::yield_now().await;
    for n in 1..=20 {
        client.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nbody").await.expect("written");
        let mut answer = [0; 1024];
        let read = client.read(&mut answer).await.expect("read");
        assert!(answer[..read].ends_with(b"\r\n\r\n4"), "head and body in one write");
        tokio::task::yield_now().await;
        assert_eq!(turns.load(Relaxed), 1 + n);
    }
    serving.abort();
}

#[test]
fn a_request_that_is_too_large_or_incomplete_or_stalls_is_refused_with_its_status() {
    let long = long_deadlines();
    let lines = |lines: usize| {
        let filler: String = (3..lines).map(|n| format!("X-{n}: x\r\n")).collect();
        format!("Connection: close\r\nContent-Length: 0\r\n{filler}\r\n")
    };
    for (limits, rest, expected) in [
        // The body does not come.
        (long, format!("Content-Length: {}\r\n\r\n", 1024 * 1024 + 1), 413),
        (Limits { body_gap: SHORT, ..long }, "Content-Length: 10\r\n\r\nfive!".to_owned(), 408),
        (Limits { body: SHORT, ..long }, "Content-Length: 10\r\n\r\nfive!".to_owned(), 408),
        (long, "Transfer-Encoding: chunked\r\n\r\nnonsense\r\n".to_owned(), 400),
        (long, lines(64), 200),
        (long, lines(65), 431),
        (Limits { head_bytes: 8192, ..long }, format!("X: {}\r\n", "x".repeat(20_000)), 431),
    ] {
        let server = TestServer::start(limits);
        assert_eq!(server.status(&format!("POST / HTTP/1.1\r\nHost: x\r\n{rest}")), expected, "{rest:.80}");
    }
}

#[test]
fn a_body_that_drips_is_given_up_when_its_time_is_over() {
    let server = TestServer::start(Limits { body: SHORT, ..long_deadlines() });
    let mut stream = server.connect();
    write!(stream, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n").expect("sent");
    stream.set_read_timeout(Some(Duration::from_millis(1))).expect("set");
    let mut answer = [0; 12];
    until("an answer", || {
        let _ = stream.write_all(b"x");
        stream.read_exact(&mut answer).is_ok()
    });
    assert_eq!(&answer, b"HTTP/1.1 408");
}

fn wait_for_answer(mut stream: TcpStream) -> Option<TcpStream> {
    let request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
    let mut answer = [0; 12];
    let alive = stream.write_all(request.as_bytes()).and_then(|()| stream.read_exact(&mut answer)).is_ok();
    alive.then_some(stream)
}

#[test]
fn clients_that_stall_do_not_keep_others_out() {
    let server = TestServer::start(Limits { connections: 3, ..long_deadlines() });
    let mut carried_out = server.connect();
    carried_out.write_all(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").expect("sent");
    until("the call runs", || server.waiting.available_permits() == 1);
    let stalled = ["", "POST / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"];
    let stalled: Vec<_> = (0..60)
        .map(|n| {
            let mut stream = server.connect();
            // Writing fails if this connection was given up for the next one.
            let _ = stream.write_all(stalled[n % 3].as_bytes());
            assert!(n % 10 != 0 || wait_for_answer(server.connect()).is_some(), "another client beside {n} that stall");
            stream
        })
        .collect();
    server.release.add_permits(1);
    carried_out.shutdown(Shutdown::Write).expect("half closed");
    assert_eq!(status(&everything(&mut carried_out)), 200, "what is carried out is carried out");
    drop(stalled);
}

#[test]
fn a_body_is_refused_if_bodies_of_its_client_or_of_all_take_too_much_memory() {
    for limits in [
        Limits { bodies_bytes_per_address: 100_000, ..long_deadlines() },
        Limits { bodies_bytes: 100_000, ..long_deadlines() },
    ] {
        let server = TestServer::start(limits);
        let request = |bytes: usize| {
            let head = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length:";
            format!("{head} {bytes}\r\n\r\n{}", "x".repeat(bytes))
        };
        let (large, other, small) = (request(110_000), request(60_000), request(1_000));
        let (most, rest) = large.split_at(90_000);
        let mut stream = server.connect();
        stream.write_all(most.as_bytes()).expect("sent");
        until("it is in memory", || server.limiter.body_bytes() > 70_000);
        assert_eq!(server.status(&other), 503);
        assert_eq!(server.status(&small), 200);
        stream.write_all(rest.as_bytes()).expect("sent");
        assert_eq!(status(&everything(&mut stream)), 200);
        assert_eq!(server.status(&other), 200, "what the first took is returned");
    }
}

#[test]
fn a_client_that_does_not_read_is_given_up() {
    let server = TestServer::start(Limits { answer: SHORT, grace: SHORT, ..long_deadlines() });
    let mut stream = server.connect();
    // Unread answers fill the buffers of both sockets. The server then closes the connection.
    let many = "GET /missing HTTP/1.1\r\nhost: x\r\n\r\n".repeat(10_000);
    stream.set_write_timeout(Some(LONG)).expect("set");
    let failed =
        (0..1_000).find_map(|_| stream.write_all(many.as_bytes()).err()).expect("the buffers are full by then");
    assert!(
        !matches!(failed.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "the server never gives up: {failed}"
    );
}

#[test]
fn a_stop_refuses_connections_and_finishes_the_request_in_flight() {
    let mut server = TestServer::start(long_deadlines());
    let idle = server.connect();
    let mut stream = server.connect();
    write!(stream, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    until("the request arrived", || server.waiting.available_permits() == 1);

    server.stop();
    until("connections are refused", || TcpStream::connect(server.address).is_err());
    assert_eq!(everything(&mut { idle }), "", "an idle connection is closed");
    server.release.add_permits(1);
    let answer = everything(&mut stream);
    assert!(answer.ends_with("\r\n\r\nwaited") && answer.contains("connection: close"), "{answer}");
    server.join();
}

#[test]
fn a_stop_drops_requests_that_outlast_the_grace_period() {
    let mut server = TestServer::start(Limits { grace: SHORT, ..long_deadlines() });
    let mut stream = server.connect();
    write!(stream, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    until("the request arrived", || server.waiting.available_permits() == 1);
    server.stop();
    assert_eq!(everything(&mut stream), "");
    server.join();
}

#[test]
fn connections_leave_file_descriptors_for_the_rest_of_the_process() {
    let connections = |open_files: u64| Limits::default().within(open_files).connections;
    assert_eq!([256, 1_024, 4_096, 20_000, u64::MAX].map(connections), [128, 768, 3_840, 10_000, 10_000]);
}

#[test]
fn a_client_whose_body_is_refused_can_read_why() {
    let limits = Limits { bodies_bytes: 50_000, ..long_deadlines() };
    let server = TestServer::start(limits);
    for (bytes, expected) in [(8 * 1024 * 1024, 413), (1024 * 1024, 503)] {
        let body = vec![b'x'; bytes];
        let mut stream = server.connect();
        write!(stream, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {bytes}\r\n\r\n").expect("sent");
        stream.write_all(&body).expect("it is taken, and dropped");
        let answer = everything(&mut stream);
        assert_eq!(status(&answer), expected);
        assert!(answer.contains("connection: close"), "{answer}");
    }
}
