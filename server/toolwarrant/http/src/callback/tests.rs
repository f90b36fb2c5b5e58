//! Tests of the callback listener over real sockets, also against hostile clients.

use super::*;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::net::TcpSocket;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const LONG: Duration = Duration::from_secs(60);
const AT_ONCE: Duration = Duration::ZERO;

struct Running {
    echo: CallbackPaths,
    address: SocketAddr,
    limiter: Arc<ConnectionLimiter>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

fn start_within(limits: Limits, address: &str) -> Running {
    static SEED: AtomicU64 = AtomicU64::new(1);
    let random = Random::from_seed(SEED.fetch_add(1, Relaxed));
    let (listener, echo) =
        CallbackListener::within(limits, address.parse().expect("an address"), random).expect("a port");
    let (address, limiter) = (listener.address().expect("bound"), Arc::clone(&listener.limiter));
    let (stop, stopped) = oneshot::channel();
    let served = tokio::spawn(listener.serve(async { drop(stopped.await) }));
    Running { echo, address, limiter, stop, served }
}

fn start() -> Running {
    start_within(Limits { head: LONG, ..Limits::default() }, "127.0.0.1:0")
}

fn connect(to: SocketAddr, from: [u8; 4]) -> impl Future<Output = TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::from(from), 0).into()).expect("a source");
    async move { socket.connect(to).await.expect("connected") }
}

async fn rest_of(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let mut bytes = [0; 1024];
    // The connection may be reset if the server did not read everything.
    while let Ok(read @ 1..) = stream.read(&mut bytes).await {
        answer.extend_from_slice(&bytes[..read]);
    }
    String::from_utf8(answer).expect("text")
}

impl Running {
    async fn observe(&self, from: [u8; 4], text: &[u8]) -> String {
        let mut stream = connect(self.address, from).await;
        // The server refuses a text that is too long before it has read all of it.
        let _ = stream.write_all(text).await;
        rest_of(stream).await
    }

    async fn get(&self, from: [u8; 4], path: &str) -> String {
        self.observe(from, format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await
    }
}

const ONE: [u8; 4] = [127, 0, 0, 1];
const TWO: [u8; 4] = [127, 0, 0, 2];

fn one(address: [u8; 4]) -> CallbackSource {
    CallbackSource::One(address.into())
}

#[tokio::test]
async fn a_request_to_an_expected_path_is_recorded_with_the_address_of_its_connection_not_of_its_headers() {
    let running = start();
    for request in [
        "GET PATH HTTP/1.1\r\nHost: x\r\n\r\n",
        "HEAD PATH HTTP/1.0\r\n\r\n",
        "GET PATH HTTP/1.0\r\n\r\n",
        "GET PATH HTTP/1.1\r\nX-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.9\r\nX-Real-IP: 203.0.113.9\r\n\r\n",
        "GET PATH HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let expected = running.echo.expect().expect("random");
        assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Nobody);
        let answer = running.observe(TWO, request.replace("PATH", &expected.path).as_bytes()).await;
        assert_eq!(answer.as_bytes(), ANSWER, "{request}");
        assert_eq!(expected.observe(AT_ONCE).await, one(TWO), "{request}");
    }
}

#[tokio::test]
async fn any_other_request_gets_no_byte_and_is_not_recorded() {
    let running = start();
    let expected = running.echo.expect().expect("random");
    let long = format!("GET PATH HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(HEAD_BYTES));
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET /00000000000000000000000000000000 HTTP/1.1\r\n\r\n",
        "GET PATH/ HTTP/1.1\r\n\r\n",
        "GET /PATH HTTP/1.1\r\n\r\n",
        "GET PATH?a HTTP/1.1\r\n\r\n",
        "GET http://xPATH HTTP/1.1\r\n\r\n",
        "GET .PATH HTTP/1.1\r\n\r\n",
        "GET PATH HTTP/2.0\r\n\r\n",
        "GET PATH\r\n\r\n",
        "GET  PATH HTTP/1.1\r\n\r\n",
        "POST PATH HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "CONNECT xPATH:80 HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n\r\n",
        "get PATH HTTP/1.1\r\n\r\n",
        "\u{16}\u{3}\u{1}\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &long,
    ] {
        assert_eq!(running.observe(ONE, request.replace("PATH", &expected.path).as_bytes()).await, "", "{request}");
    }
    assert_eq!(running.observe(ONE, b"GET /\xff HTTP/1.1\r\n\r\n").await, "");
    assert_eq!(running.get(ONE, &expected.path.to_uppercase()).await, "");
    let mut stream = connect(running.address, ONE).await;
    stream.write_all(b"GET / HT").await.expect("sent");
    stream.shutdown().await.expect("shut down");
    assert_eq!(rest_of(stream).await, "");
    assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Nobody);
}

#[tokio::test]
async fn a_path_requested_from_two_addresses_is_doubtful_and_twice_from_one_is_not() {
    let running = start();
    let expected = running.echo.expect().expect("random");
    for (from, seen) in
        [(TWO, one(TWO)), (TWO, one(TWO)), (ONE, CallbackSource::Several), (TWO, CallbackSource::Several)]
    {
        running.get(from, &expected.path).await;
        assert_eq!(expected.observe(AT_ONCE).await, seen);
    }
}

#[tokio::test]
async fn an_ipv4_address_that_is_seen_as_ipv6_is_one() {
    let running = start_within(Limits::default(), "[::]:0");
    let expected = running.echo.expect().expect("random");
    let address = SocketAddr::from((ONE, running.address.port()));
    let mut stream = connect(address, ONE).await;
    let request = format!("GET {} HTTP/1.1\r\n\r\n", expected.path);
    stream.write_all(request.as_bytes()).await.expect("sent");
    assert_eq!(rest_of(stream).await.as_bytes(), ANSWER);
    assert_eq!(expected.observe(AT_ONCE).await, one(ONE));
}

#[tokio::test]
async fn a_path_is_forgotten_with_its_expectation_and_counts_for_no_other() {
    let running = start();
    let [gone, stays] = [(); 2].map(|()| running.echo.expect().expect("random"));
    assert!(gone.path != stays.path && gone.path.len() == 33, "{}", gone.path);
    assert_eq!(gone.url("http://echo.example:8081/"), format!("http://echo.example:8081{}", gone.path));
    let path = gone.path.clone();
    drop(gone);
    assert_eq!(running.get(ONE, &path).await, "");
    assert_eq!(stays.observe(AT_ONCE).await, CallbackSource::Nobody);
    drop(stays);
    assert!(running.echo.paths.open().is_empty());
}

#[tokio::test]
async fn a_connection_takes_one_request_and_a_client_that_closed_its_sending_side_gets_the_answer() {
    let running = start();
    let [first, second] = [(); 2].map(|()| running.echo.expect().expect("random"));
    let both = format!("GET {} HTTP/1.1\r\n\r\nGET {} HTTP/1.1\r\n\r\n", first.path, second.path);
    let mut stream = connect(running.address, ONE).await;
    stream.write_all(both.as_bytes()).await.expect("sent");
    stream.shutdown().await.expect("shut down");
    assert_eq!(rest_of(stream).await.as_bytes(), ANSWER);
    assert_eq!((first.observe(AT_ONCE).await, second.observe(AT_ONCE).await), (one(ONE), CallbackSource::Nobody));
}

#[tokio::test]
async fn a_head_that_does_not_come_in_time_ends_its_connection() {
    let head = Duration::from_millis(100);
    let running = start_within(Limits { head, ..Limits::default() }, "127.0.0.1:0");
    let expected = running.echo.expect().expect("random");
    let mut stream = connect(running.address, ONE).await;
    stream.write_all(format!("GET {} HTTP/1.1\r\n", expected.path).as_bytes()).await.expect("sent");
    assert_eq!(timeout(LONG, rest_of(stream)).await.expect("it ends"), "");
    assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Nobody);
}

#[tokio::test]
async fn silent_connections_do_not_keep_others_out() {
    let limits = Limits { head: LONG, connections: 16, connections_per_address: 12, ..Limits::default() };
    let running = start_within(limits, "127.0.0.1:0");
    let expected = running.echo.expect().expect("random");
    let mut flood = Vec::new();
    for n in 0..200_u8 {
        flood.push(connect(running.address, [127, 0, 1, n % 4]).await);
        if n % 20 == 0 {
            assert_eq!(running.get(TWO, &expected.path).await.as_bytes(), ANSWER, "after {n}");
        }
    }
    assert!(running.limiter.connections() <= 16 + 32, "{}", running.limiter.connections());
    let crowd = start_within(Limits { head: LONG, connections_per_address: 4, ..Limits::default() }, "127.0.0.1:0");
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(connect(crowd.address, ONE).await);
    }
    assert_eq!(crowd.get(ONE, &crowd.echo.expect().expect("random").path).await, "");
}

#[tokio::test]
async fn a_stop_ends_the_connections_that_are_open() {
    let running = start();
    let silent = connect(running.address, ONE).await;
    drop(running.stop);
    running.served.await.expect("it ends");
    assert_eq!(timeout(LONG, rest_of(silent)).await.expect("it ends"), "");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_learns_of_a_request_at_once_and_waits_no_longer_than_its_patience() {
    let (random, paths) = (Random::from_seed(7), Arc::default());
    let expected = CallbackPaths { random, paths: Arc::clone(&paths) }.expect().expect("random");
    let begin = Instant::now();
    assert_eq!(expected.observe(LONG).await, CallbackSource::Nobody);
    assert_eq!(begin.elapsed(), LONG);
    let asked = async {
        sleep(LONG / 2).await;
        paths.note(&expected.path, ONE.into())
    };
    let (seen, noted) = tokio::join!(expected.observe(LONG), asked);
    assert_eq!((seen, noted), (one(ONE), Some(())));
    assert_eq!(begin.elapsed(), LONG + LONG / 2);
}
