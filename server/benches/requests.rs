//! What a request costs: `cargo xtask bench`.
//!
//! The program serves from a folder of its own; beside it, for each operation, a *baseline*: an axum handler behind the same
//! edge that reads the body and answers with the bytes and headers that the program answered with. Both are loaded in turn from
//! this process, so that what else the machine does hits both. The gate is CPU time, which hardly moves with it.
//!
//! A second table has the ways in which one question is asked: each revision of the protocol, and signed under `/v1`, beside the first
//! revision.

use anyhow::{Context, Result, bail, ensure};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response};
use axum::routing::any;
use bytes::Bytes;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write, stdin};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, str};
use tempfile::TempDir;
use toolwarrant_http::edge::{self, ConnectionLimiter, Limits};
use toolwarrant_signing as signing;

/// Most CPU time of a request, in that of its baseline.
const GATE: f64 = 1.5;
/// What the gate is for, and with how many connections.
const GATED: ([&str; 2], usize) = (["tools/list", "get_device"], 32);

/// Most CPU time of a request in any way, in that of the same question in the first.
const WAYS_GATE: f64 = 1.3;

/// Each measurement is taken that often, the program's and the baseline's in turn.
const ROUNDS: usize = 9;
/// How long one load lasts.
const SPAN: Duration = Duration::from_millis(500);

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(5);

const DEVICES: usize = 100;
const HEAD_END: &[u8] = b"\r\n\r\n";

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("baseline") {
        return tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(baseline());
    }
    compare()
}

/// Loads the program and the baselines, and shows what each request took.
fn compare() -> Result<()> {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let (program, credentials) = start_program(&folder.path().join("data"))?;
    println!("operation     connections    req/s  p50 µs  p99 µs  CPU µs/req  baseline  ratio");
    let mut missed = Vec::new();
    for (name, message) in operations() {
        let request = request(&credentials, &message.to_string());
        let reply = checked_reply(&program, request.as_bytes()).with_context(|| format!("{name} is not answered"))?;
        let baseline = start_baseline(&reply)?;
        let length = body_of(&reply)?.len();
        for connections in [1, 32] {
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                let request = || request.clone().into_bytes();
                let ours = load(&program, &request, length, connections).with_context(|| name.to_owned())?;
                rounds.push((ours, load(&baseline, &request, length, connections).context("the baseline")?));
            }
            let of_rounds = |figure: fn(&(Load, Load)) -> f64| median(rounds.iter().map(figure).collect());
            let rate = of_rounds(|(ours, _)| ours.waits.len() as f64 / SPAN.as_secs_f64());
            let (ours, base) = (of_rounds(|(ours, _)| ours.cpu_micros()), of_rounds(|(_, base)| base.cpu_micros()));
            let ratio = of_rounds(|(ours, base)| ours.cpu_micros() / base.cpu_micros());
            let mut waits: Vec<_> = rounds.iter().flat_map(|(ours, _)| &ours.waits).collect();
            waits.sort_unstable();
            let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
            let (p50, p99) = (at(0.5), at(0.99));
            println!(
                "{name:12}  {connections:11}  {rate:7.0}  {p50:6.0}  {p99:6.0}  {ours:10.2}  {base:8.2}  {ratio:5.2}"
            );
            if GATED.0.contains(&name) && GATED.1 == connections && ratio > GATE {
                missed.push(name);
            }
        }
    }
    let ways = compare_ways(&program, &credentials)?;
    ensure!(missed.is_empty(), "more than {GATE} times the CPU time of the baseline: {}", missed.join(", "));
    ensure!(ways.is_empty(), "more than {WAYS_GATE} times the CPU time of the first revision: {}", ways.join(", "));
    Ok(())
}

/// Loads the program with the same questions in every way, and shows what each took. Returns the ways that took too much.
fn compare_ways(program: &Server, credentials: &Credentials) -> Result<Vec<String>> {
    println!("\nquestion      way         CPU µs/req  ratio");
    let mut missed = Vec::new();
    let questions = [
        ("get_device", json!({"device_id": "phone-0000001"}), "/v1/devices/phone-0000001".to_owned()),
        ("list_devices", json!({"limit": DEVICES}), format!("/v1/devices?limit={DEVICES}")),
    ];
    for (name, arguments, target) in &questions {
        let mcp = REVISIONS.into_iter().map(|revision| {
            let request = in_revision(credentials, revision, name, arguments);
            (revision, Box::new(move || request.clone()) as Requests<'_>)
        });
        let ways: Vec<_> = mcp.chain([("signed", Box::new(|| signed(credentials, target)) as Requests<'_>)]).collect();
        let lengths = ways.iter().map(|(way, request)| {
            let reply = checked_reply(program, &request()).with_context(|| format!("{name}, {way}"))?;
            Ok(body_of(&reply)?.len())
        });
        let lengths = lengths.collect::<Result<Vec<_>>>()?;
        let mut rounds: Vec<Vec<f64>> = Vec::new();
        for _ in 0..ROUNDS {
            let costs = ways
                .iter()
                .zip(&lengths)
                .map(|((_, request), length)| Ok(load(program, request, *length, GATED.1)?.cpu_micros()));
            rounds.push(costs.collect::<Result<_>>()?);
        }
        for (n, (way, _)) in ways.iter().enumerate() {
            let cost = median(rounds.iter().map(|round| round[n]).collect());
            let ratio = median(rounds.iter().map(|round| round[n] / round[0]).collect());
            println!("{name:12}  {way:10}  {cost:10.2}  {ratio:5.2}");
            if ratio > WAYS_GATE {
                missed.push(format!("{name} {way}"));
            }
        }
    }
    Ok(missed)
}

/// Makes the octets of a request.
type Requests<'a> = Box<dyn Fn() -> Vec<u8> + 'a>;

/// The revisions, the first one first.
const REVISIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

fn in_revision(credentials: &Credentials, revision: &str, tool: &str, arguments: &Value) -> Vec<u8> {
    let mut params = json!({"name": tool, "arguments": arguments});
    let mut headers = format!("MCP-Protocol-Version: {revision}\r\n");
    if revision == "2026-07-28" {
        headers += &format!("Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        });
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = request(credentials, &message.to_string());
    request.replacen("\r\n\r\n", &format!("\r\n{headers}\r\n"), 1).into_bytes()
}

/// A signed GET. Each has a nonce of its own.
fn signed(Credentials { key_id, secret }: &Credentials, target: &str) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (timestamp, nonce) = (now.as_secs().to_string(), format!("{:032x}", NEXT.fetch_add(1, Relaxed)));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, idempotency_key) = ("GET", "");
    let request = signing::Request {
        key_id,
        timestamp: &timestamp,
        nonce: &nonce,
        method,
        path,
        query,
        idempotency_key,
        body: b"",
    };
    let signature = signing::header(&signing::sign(secret, &request.canonical()));
    let headers = format!("X-Api-Key: {key_id}\r\nX-Timestamp: {timestamp}\r\nX-Nonce: {nonce}\r\n");
    format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}X-Signature: {signature}\r\n\r\n").into_bytes()
}

fn operations() -> [(&'static str, Value); 4] {
    let message = |method, params| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let call = |tool, arguments| message("tools/call", json!({"name": tool, "arguments": arguments}));
    let client = json!({"name": "bench", "version": "1"});
    let hello = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client});
    [
        ("initialize", message("initialize", hello)),
        ("tools/list", message("tools/list", json!({}))),
        ("get_device", call("get_device", json!({"device_id": "phone-0000001"}))),
        ("list_devices", call("list_devices", json!({"limit": DEVICES}))),
    ]
}

/// A process that serves. It ends with this value.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a process that reads `input` and, once it serves, writes a line that ends in `http://ADDRESS/mcp`.
    fn start(command: &mut Command, input: &[u8]) -> Result<Self> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut server =
            Self { child: child.with_context(|| format!("cannot run {command:?}"))?, address: String::new() };
        server.child.stdin.take().context("an input")?.write_all(input)?;
        let mut lines = BufReader::new(server.child.stdout.as_mut().context("an output")?).lines();
        let line =
            lines.find_map(|line| line.ok().filter(|line| line.ends_with("/mcp"))).context("it did not start")?;
        let (_, address) = line.trim_end_matches("/mcp").rsplit_once("http://").context("its URL")?;
        server.address = address.to_owned();
        Ok(server)
    }

    /// The CPU time of all its threads so far.
    fn cpu(&self) -> Result<Duration> {
        let mut nanos = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(thread?.path().join("schedstat"))?;
            nanos += text.split(' ').next().context("a figure")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }
}

/// A key and its secret.
struct Credentials {
    key_id: String,
    secret: String,
}

/// The program with devices to list, and a key that may use them as often as it likes.
fn start_program(data: &Path) -> Result<(Server, Credentials)> {
    let program = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cloudphone"));
        command.args(["--data".as_ref(), data.as_os_str()]);
        command
    };
    let serve = ["serve", "--listen", "127.0.0.1:0", "--sim-devices", &DEVICES.to_string()];
    let server = Server::start(program().args(serve), b"")?;
    let operate = |line: &str| -> Result<Value> {
        let output = program().args(line.split(' ')).arg("--json").output()?;
        ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    operate("app create bench --permission device --permission stream --requests-per-minute 4294967295")?;
    operate("device assign bench --all")?;
    let key = operate("key create bench")?;
    let text =
        |member: &str| key[member].as_str().map(str::to_owned).with_context(|| format!("no `{member}` in {key}"));
    Ok((server, Credentials { key_id: text("key_id")?, secret: text("secret")? }))
}

fn request(Credentials { key_id, secret }: &Credentials, body: &str) -> String {
    let length = body.len();
    let credentials = format!("X-Api-Key: {key_id}\r\nX-Api-Secret: {secret}\r\n");
    let types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{types}{credentials}Content-Length: {length}\r\n\r\n{body}")
}

/// The reply to one request, which must be a result.
fn checked_reply(server: &Server, request: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(&server.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let line = find(request, b"\r\n").context("a request line")?;
    stream.write_all(&[&request[..line], b"\r\nConnection: close", &request[line..]].concat())?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    let body: Value = serde_json::from_slice(body_of(&reply)?)?;
    let rpc = body["id"] == 1 && body["result"].is_object() && body["result"]["isError"] != true;
    let sound = rpc || body["jsonrpc"].is_null();
    ensure!(reply.starts_with(OK) && sound, "{}", String::from_utf8_lossy(&reply));
    Ok(reply)
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";

fn body_of(reply: &[u8]) -> Result<&[u8]> {
    let at = find(reply, HEAD_END).context("a reply without an end of its head")?;
    Ok(&reply[at + HEAD_END.len()..])
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// What one load came to.
struct Load {
    /// How long each reply took.
    waits: Vec<Duration>,
    /// What the server spent on all of them.
    cpu: Duration,
}

impl Load {
    fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.waits.len() as f64
    }
}

/// Repeats a request on that many connections for [`SPAN`]; each reply must be a success with a body of that length.
///
/// This thread never sleeps meanwhile: to wake it would be the server's work, and more of it the slower the server is.
fn load(server: &Server, request: &dyn Fn() -> Vec<u8>, length: usize, connections: usize) -> Result<Load> {
    let mut clients = (0..connections).map(|_| Client::connect(server)).collect::<Result<Vec<_>>>()?;
    let length_line = format!("\r\ncontent-length: {length}\r\n");
    let (mut waits, mut waiting) = (Vec::new(), connections);
    let (before, until) = (server.cpu()?, Instant::now() + SPAN);
    for client in &mut clients {
        client.send(&request())?;
    }
    while waiting > 0 {
        ensure!(Instant::now() < until + PATIENCE, "there is no answer");
        for client in &mut clients {
            let Some(body) = client.read()? else { continue };
            let head = &client.reply[..body];
            let sound = head.starts_with(OK) && find(head, length_line.as_bytes()).is_some();
            ensure!(sound, "another reply than before: {}", String::from_utf8_lossy(head));
            if client.filled < body + length {
                continue;
            }
            ensure!(client.filled == body + length, "more was sent than asked for");
            waits.push(client.begun.elapsed());
            if Instant::now() < until { client.send(&request())? } else { waiting -= 1 }
        }
    }
    Ok(Load { waits, cpu: server.cpu()? - before })
}

/// A connection with one request on its way.
struct Client {
    stream: TcpStream,
    begun: Instant,
    reply: Vec<u8>,
    filled: usize,
}

impl Client {
    fn connect(server: &Server) -> Result<Self> {
        let stream = TcpStream::connect(&server.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, begun: Instant::now(), reply: vec![0; 1024 * 1024], filled: 0 })
    }

    fn send(&mut self, request: &[u8]) -> Result<()> {
        (self.begun, self.filled) = (Instant::now(), 0);
        Ok(self.stream.write_all(request)?)
    }

    /// Takes what has come of the reply; answers with where its body begins, if something came and that is known.
    fn read(&mut self) -> Result<Option<usize>> {
        match self.stream.read(&mut self.reply[self.filled..]) {
            Ok(0) => bail!("the connection was closed"),
            Ok(more) => self.filled += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        Ok(find(&self.reply[..self.filled], HEAD_END).map(|at| at + HEAD_END.len()))
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn start_baseline(reply: &[u8]) -> Result<Server> {
    Server::start(Command::new(std::env::current_exe()?).arg("baseline"), reply)
}

/// Answers every request with the reply on standard input, until it is killed.
async fn baseline() -> Result<()> {
    let mut reply = Vec::new();
    stdin().read_to_end(&mut reply)?;
    let body = Bytes::copy_from_slice(body_of(&reply)?);
    let mut headers = HeaderMap::new();
    for line in str::from_utf8(&reply[..reply.len() - body.len()])?.lines().skip(1) {
        match line.split_once(": ") {
            // These are the edge's own.
            None | Some(("connection" | "content-length" | "date", _)) => {}
            Some((name, value)) => drop(headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?)),
        }
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/mcp", any(answer)).with_state(Arc::new((headers, body)));
    println!("http://{address}/mcp");
    edge::serve(listener, router, ConnectionLimiter::new(Limits::default()), None, std::future::pending()).await;
    Ok(())
}

async fn answer(State(reply): State<Arc<(HeaderMap, Bytes)>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let _ = edge::read_body(body, &head.extensions, &Limits::default()).await;
    let (headers, body) = &*reply;
    let mut response = Response::new(Body::from(body.clone()));
    *response.headers_mut() = headers.clone();
    response
}
