//! The effect of clients that stall, crowd or leave on other clients, from several loopback
//! addresses.

use crate::harness::program::{Program, WATCHED, get, operate};
use crate::harness::signed::Signed;
use crate::harness::stream::{NEVER, answer};
use crate::harness::{Tenant, mute_phones, open_phones, outcome, serve_page};
use cloudphone::phones::port::Still;
use kit::wait_for;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarrant::BoxFuture;
use toolwarrant::page::{PageAnswer, PageError, PageFile, PageRequest, Pass, WebPage};
use toolwarrant_audit::days;
use toolwarrant_core::catalogue::PermissionSet;

/// Loses commands, so its tasks stay in flight until their deadline.
const LOSING: &str = "phone-0000016";

async fn connect(address: SocketAddr, host: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).expect("an address of this machine");
    socket.connect(address).await.expect("a connection")
}

async fn in_flight(program: &Program) -> Value {
    let accepted = program.call("set_power", json!({"device_id": LOSING, "action": "restart"})).await;
    accepted.expect("accepted")["task_id"].clone()
}

#[tokio::test]
async fn idle_connections_take_neither_the_files_of_the_program_nor_the_place_of_a_client() {
    let mut program = Program::start_by(|start| start.after("ulimit -n 1024")).await;
    let mut idle = Vec::new();
    for n in 0..1_100_u32 {
        idle.push(connect(program.address, 2 + (n % 8) as u8).await);
    }
    let served = timeout(NEVER, program.call("list_devices", json!({}))).await;
    served.expect("an answer").expect("a page");
    let (code, told) = operate(&program.data, "app create shop --permission device").await;
    assert_eq!(code, 0, "{told}");
    program.stop().await;
    let trail = days(&program.data.join("audit")).expect("a folder");
    let trail: String = trail.iter().map(|day| fs::read_to_string(day).expect("text")).collect();
    assert!(trail.contains("list_devices"), "{trail}");
    let log = program.log();
    assert!(log.contains("leaves fewer connections than --max-connections"), "{log}");
    assert!(!log.contains("cannot accept"), "{log}");
}

#[tokio::test]
async fn the_limit_on_open_files_is_raised_as_far_as_it_may_be() {
    let program = Program::start_by(|start| start.after("ulimit -Sn 300")).await;
    let pid = Pid::from_raw(program.id().try_into().expect("a process"));
    // Reads the limit by setting it to its present value.
    let own = rustix::process::getrlimit(Resource::Nofile).maximum;
    let limit = prlimit(pid, Resource::Nofile, Rlimit { current: own, maximum: own }).expect("it is ours");
    assert_eq!((limit.current, limit.maximum), (own, own));
}

#[tokio::test]
async fn requests_by_a_trusted_proxy_count_for_the_client_that_it_names() {
    let flags = ["--trust-proxy", "127.0.0.0/8", "--max-connections-per-address", "3"];
    let program = Program::start(&[WATCHED, &flags].concat()).await;
    let poll = json!({"task_id": in_flight(&program).await, "wait_seconds": 50});
    let by = |client: &str| program.keys[0].call_request("get_task", &poll, &format!("x-forwarded-for: {client}\r\n"));
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut stream = connect(program.address, 1).await;
        stream.write_all(by("198.51.100.1").as_bytes()).await.expect("sent");
        held.push(stream);
    }
    // A call that is counted before the third poll would take its place.
    let metrics = format!("{}/metrics", program.monitor());
    let held_polls = wait_for(async || {
        let page = get(&metrics).await.2;
        if page.contains("cloudphone_held_polls 3\n") { Ok(()) } else { Err(page) }
    });
    held_polls.await.expect("all polls are held");
    // The other application keeps these repeated calls from spending the budget of the polls.
    let list = |header: &str| program.keys[1].call_request("list_devices", &json!({}), header);
    let asked = async |header: &str| {
        let mut proxy = connect(program.address, 1).await;
        proxy.write_all(list(header).as_bytes()).await.expect("sent");
        answer(&mut proxy).await
    };
    let refused = asked("forwarded: for=\"198.51.100.1:4711\"\r\n").await;
    assert_eq!(refused.0, 503, "{refused:?}");
    assert_eq!(refused.1["error"]["data"]["code"], "overloaded", "{refused:?}");
    for other in ["x-forwarded-for: 198.51.100.2\r\n", "x-forwarded-for: 198.51.100.1, 198.51.100.2\r\n", ""] {
        assert_eq!(asked(other).await.0, 200, "{other}");
    }
    // When the client gives up, the proxy closes its connections too. At this pace the calls never
    // spend the budget of a minute.
    drop(held);
    let served = wait_for(async || match asked("x-forwarded-for: 198.51.100.1\r\n").await {
        (200, _) => Ok(()),
        refused => {
            sleep(Duration::from_millis(200)).await;
            Err(format!("{refused:?}"))
        }
    });
    served.await.expect("its places are free");
}

/// Sends one body after the other, each until it is refused. No live key has signed them.
pub(crate) async fn send_large_bodies(address: SocketAddr, host: u8, refused: mpsc::UnboundedSender<u8>) {
    let head = "POST /v1/devices/phone-0000001/power HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
        x-api-key: cpk_nobody\r\nx-timestamp: 1800000000\r\nx-nonce: 0123456789abcdef\r\ncontent-length: 1000000\r\n";
    let head = format!("{head}x-signature: {}\r\n\r\n", "0".repeat(64));
    loop {
        let mut stream = connect(address, host).await;
        let _ = stream.write_all(head.as_bytes()).await;
        // The last byte never comes.
        for _ in 0..999 {
            tokio::task::yield_now().await;
            if stream.write_all(&[b' '; 1_000]).await.is_err() {
                break;
            }
        }
        if answer(&mut stream).await.0 == 503 {
            let _ = refused.send(host);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies_of_callers_that_are_not_verified_cost_a_verified_caller_no_call() {
    let (server, key) = open_phones().await;
    let key = &key;
    let (refused, mut refusals) = mpsc::unbounded_channel();
    let mut senders = JoinSet::new();
    for n in 0..185 {
        senders.spawn(send_large_bodies(server.address, 2 + n % 5, refused.clone()));
    }
    // They hold all that they can get.
    for _ in 0..200 {
        timeout(NEVER, refusals.recv()).await.expect("a refusal").expect("senders");
    }
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let batch = format!("[{list}{}]", " ".repeat(33_000));
    let padded = format!("{{\"action\":\"boot\"{}}}", " ".repeat(33_000));
    for n in 0..100 {
        assert_eq!(server.send(key, batch.clone()).await.0, 200, "batch {n}");
        let signed = server.sign(key, "POST", "/v1/devices/phone-0000001/power").with_key(&format!("k{n}"));
        let signed = server.v1(&Signed { body: padded.clone(), ..signed }).await;
        assert!([202, 409].contains(&signed.status), "signed request {n}: {signed:?}");
    }
    senders.shutdown().await;
}

#[tokio::test]
async fn the_end_of_a_clients_side_ends_its_hold_whether_it_still_reads_or_is_gone() {
    let everything = Tenant::with(PermissionSet(u64::MAX));
    let (server, keys) = mute_phones(vec![everything]).await;
    let key = &keys[0][0];
    let write = json!({"device_id": "phone-0000001", "action": "boot"});
    let task = server.call(key, "set_power", write).await.expect("accepted")["task_id"].clone();
    let poll = key.call_request("get_task", &json!({"task_id": task, "wait_seconds": 50}), "");
    let held = async |many: usize| {
        let reached = async {
            while server.engine.poll_count() != many {
                tokio::task::yield_now().await;
            }
        };
        timeout(NEVER, reached).await.unwrap_or_else(|_| panic!("{} are held, not {many}", server.engine.poll_count()));
    };
    // The clock stands still, so no hold ends by itself.
    for behind in ["", "POST /mcp HTTP/1.1\r\n", &"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(20)] {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        stream.write_all(format!("{poll}{behind}").as_bytes()).await.expect("sent");
        held(1).await;
        stream.shutdown().await.expect("half closed");
        let (status, told) = answer(&mut stream).await;
        let told = outcome(&told).expect("a task");
        assert_eq!((status, &told["status"]), (200, &json!("dispatched")), "behind it {behind:?}");
        assert_eq!(told["poll_after_seconds"], 15, "{told}");
        held(0).await;
    }
    let mut gone = TcpStream::connect(server.address).await.expect("a connection");
    gone.write_all(poll.as_bytes()).await.expect("sent");
    held(1).await;
    drop(gone);
    held(0).await;

    // The hold of another client, which keeps its connection open, goes on.
    let path = format!("/v1/tasks/{}?wait_seconds=50", task.as_str().expect("an id"));
    let mut signed = TcpStream::connect(server.address).await.expect("a connection");
    signed.write_all(&server.sign(key, "GET", &path).octets()).await.expect("sent");
    held(1).await;
    let mut waits = TcpStream::connect(server.address).await.expect("a connection");
    waits.write_all(poll.as_bytes()).await.expect("sent");
    held(2).await;
    drop(signed);
    held(1).await;
    server.clock.advance(Duration::from_secs(50));
    assert_eq!(answer(&mut waits).await.0, 200);
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    timeout(NEVER, stream.read_to_end(&mut bytes)).await.expect("an end").expect("no reset");
    String::from_utf8(bytes).expect("text")
}

#[tokio::test]
async fn the_last_answer_of_a_connection_says_so() {
    let (server, key) = open_phones().await;
    let key = &key;
    let call = key.call_request("list_devices", &json!({}), "");
    let wrong = call.replace(&key.secret, "wrong");
    let elsewhere = call.replace("POST /mcp", "POST /elsewhere");
    let encoded = key.call_request("list_devices", &json!({}), "content-encoding: gzip\r\n");
    for (refused, status) in
        [(&wrong, "401"), (&elsewhere, "404"), (&encoded, "415"), (&call.replace("POST", "PUT"), "405")]
    {
        // A body that has come is skipped, and the connection goes on.
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        for (request, expected) in [(refused, status), (&call, "200"), (refused, status)] {
            stream.write_all(request.as_bytes()).await.expect("sent");
            assert_eq!(answer(&mut stream).await.0.to_string(), expected);
        }
        // The rest of a body may come late or never, so the connection ends.
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        stream.write_all(&refused.as_bytes()[..refused.len() - 1]).await.expect("sent");
        let told = read_to_end(&mut stream).await;
        assert!(told.contains(status) && told.contains("connection: close\r\n"), "{told}");
    }
    let mut stream = TcpStream::connect(server.address).await.expect("a connection");
    stream.write_all(b"no request\r\n\r\n").await.expect("sent");
    let told = read_to_end(&mut stream).await;
    assert!(told.contains(" 400 ") && told.contains("connection: close\r\n"), "{told}");
}

/// Shows a picture of the most bytes that one may have.
struct LargestPicture;

impl WebPage for LargestPicture {
    fn path(&self) -> &'static str {
        "/screen"
    }

    fn files(&self) -> &'static [PageFile] {
        &[]
    }

    fn answer<'a>(&'a self, _: &'a Pass, _: PageRequest<'a>) -> BoxFuture<'a, Result<PageAnswer, PageError>> {
        let body = vec![0; Still::BYTES_MAX].into();
        Box::pin(async { Ok(PageAnswer::Content { content_type: "image/png", number: None, body }) })
    }
}

#[tokio::test]
async fn an_address_that_does_not_read_long_answers_gets_no_more_of_them_and_others_do() {
    let tenants = vec![Tenant::with(PermissionSet(u64::MAX))];
    let (server, keys) = serve_page(200, tenants, |service| service.page(Arc::new(LargestPicture))).await;
    let key = &keys[0][0];
    let session = server.call(key, "create_session", json!({"device_id": "phone-0000001"})).await.expect("a session");
    let head = "HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n";
    let token = session["token"].as_str().expect("a token");
    let picture = format!("GET /screen/still {head}authorization: Bearer {token}\r\n\r\n").into_bytes();
    let call = |tool: &str, arguments: Value| key.call_request(tool, &arguments, "connection: close\r\n").into_bytes();
    let list = || call("list_devices", json!({"limit": 200}));
    let signed = || server.sign(key, "GET", "/v1/devices?limit=200").octets();
    let short = || call("get_device", json!({"device_id": "phone-0000001"}));
    let ask = async |host: u8, request: Vec<u8>| {
        let mut stream = connect(server.address, host).await;
        stream.write_all(&request).await.expect("sent");
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.expect("an answer");
        (String::from_utf8_lossy(&status[9..]).into_owned(), stream)
    };
    let mut unread = Vec::new();
    for (host, expected) in [(2, "200"), (2, "200"), (2, "200"), (2, "503"), (3, "200")] {
        let (status, stream) = ask(host, picture.clone()).await;
        assert_eq!(status, expected, "{host}");
        unread.push(stream);
    }
    let mut told = String::new();
    unread[3].read_to_string(&mut told).await.expect("an answer");
    assert!(told.contains("not read yet") && told.contains("\"retryable\":true"), "{told}");
    for (host, request, expected) in
        [(2, list(), "503"), (2, signed(), "503"), (2, short(), "200"), (3, list(), "200"), (3, signed(), "200")]
    {
        assert_eq!(ask(host, request).await.0, expected, "{host}");
    }
    unread[0].read_to_end(&mut Vec::new()).await.expect("the picture");
    for request in [list(), signed()] {
        assert_eq!(ask(2, request).await.0, "200", "what was read makes room");
    }
}

#[tokio::test]
async fn forwarding_headers_of_an_untrusted_address_are_ignored() {
    let program = Program::start(&["--trust-proxy", "127.0.0.9", "--max-connections-per-address", "3"]).await;
    let mut open = Vec::new();
    for n in 0..5 {
        let mut stream = connect(program.address, 2).await;
        let header = format!("x-forwarded-for: 198.51.100.{n}\r\nforwarded: for=198.51.100.{n}\r\n");
        // The server may close a connection beyond the limit before the client has written.
        let _ = stream.write_all(program.keys[0].call_request("list_devices", &json!({}), &header).as_bytes()).await;
        open.push((answer(&mut stream).await.0, stream));
    }
    assert_eq!(open.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [200, 200, 200, 0, 0]);
}
