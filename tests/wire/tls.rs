//! TLS of the program: the certificate at its start, the versions that it speaks, and changes of
//! the certificate while it serves.

use crate::harness::program::{Program, json_of, refusal, start};
use crate::harness::stream::{NEVER, answer};
use crate::harness::{outcome, write};
use kit::Process;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::json;
use std::fs::{self, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use toolwarrant_http::Router;
use toolwarrant_http::edge::{self, ConnectionLimiter, Limits, Tls};

/// For `localhost`.
pub(crate) struct TlsPair {
    home: TempDir,
    der: CertificateDer<'static>,
}

impl TlsPair {
    pub(crate) fn new() -> Self {
        let mut pair =
            Self { home: TempDir::new().expect("a temporary folder"), der: CertificateDer::from(Vec::new()) };
        pair.renew();
        pair
    }

    /// Changes the key, too.
    fn renew(&mut self) {
        let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        write(&self.certificate(), &signed.cert.pem(), 0o600);
        write(&self.key(), &signed.signing_key.serialize_pem(), 0o600);
        self.der = signed.cert.der().clone();
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.home.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.home.path().join("key.pem")
    }

    pub(crate) fn flags(&self) -> [String; 4] {
        let text = |path: PathBuf| path.display().to_string();
        ["--tls-cert".into(), text(self.certificate()), "--tls-key".into(), text(self.key())]
    }

    async fn connect(
        &self,
        address: SocketAddr,
        version: &'static SupportedProtocolVersion,
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).expect("versions");
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        timeout(NEVER, TlsConnector::from(Arc::new(config)).connect(name, stream)).await.expect("an end")
    }
}

#[tokio::test]
async fn with_a_certificate_the_program_speaks_tls_1_2_and_1_3_and_nothing_else() {
    let pair = TlsPair::new();
    let program = Program::start(&pair.flags().each_ref().map(String::as_str)).await;
    assert_eq!(program.url, format!("https://{}/mcp", program.address));
    let list = program.keys[0].call_request("list_devices", &json!({}), "");
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut stream = pair.connect(program.address, version).await.expect("a connection");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        for _ in 0..3 {
            stream.write_all(list.as_bytes()).await.expect("sent");
            assert_eq!(answer(&mut stream).await.0, 200);
        }
    }
    let mut plain = TcpStream::connect(program.address).await.expect("a connection");
    plain.write_all(list.as_bytes()).await.expect("sent");
    let mut told = Vec::new();
    let _ = timeout(NEVER, plain.read_to_end(&mut told)).await.expect("it is closed");
    assert!(!told.starts_with(b"HTTP"), "{told:?}");
    let other = TlsPair::new().connect(program.address, &rustls::version::TLS13).await;
    assert!(other.is_err(), "it has the certificate that it was given");
}

#[tokio::test]
async fn the_end_of_a_clients_side_ends_its_hold_in_tls_as_well() {
    let pair = TlsPair::new();
    let program = Program::start(&pair.flags().each_ref().map(String::as_str)).await;
    let mut stream = pair.connect(program.address, &rustls::version::TLS13).await.expect("a connection");
    let ask = async |stream: &mut TlsStream<TcpStream>, tool, arguments| {
        stream.write_all(program.keys[0].call_request(tool, &arguments, "").as_bytes()).await.expect("sent");
    };
    ask(&mut stream, "set_power", json!({"device_id": "phone-0000016", "action": "restart"})).await;
    let accepted = outcome(&answer(&mut stream).await.1).expect("accepted");
    ask(&mut stream, "get_task", json!({"task_id": accepted["task_id"], "wait_seconds": 50})).await;
    stream.shutdown().await.expect("half closed");
    let told = answer(&mut stream).await;
    assert_eq!(outcome(&told.1).expect("a task")["status"], "dispatched");
}

#[tokio::test]
async fn the_console_beyond_this_machine_is_entered_over_tls_alone() {
    let pair = TlsPair::new();
    let flags = pair.flags();
    let more = ["--public-url", "https://localhost/mcp", "--console-listen", "0.0.0.0:0"];
    let program = Program::start(&flags.iter().map(String::as_str).chain(more).collect::<Vec<_>>()).await;
    let link = json_of(&program.data, "console --plain-host").await;
    let link = link["link"].as_str().expect("a link");
    let (host, code) = link.strip_prefix("https://").and_then(|link| link.split_once("/in#")).expect("a code");
    let port: u16 = host.strip_prefix("localhost:").expect("the public name").parse().expect("a port");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let send = async |origin: &str, line: &str, body: String| {
        let mut stream = pair.connect(address, &rustls::version::TLS13).await.expect("a connection");
        let (kind, length) = ("application/x-www-form-urlencoded", body.len());
        let head = format!("{line} HTTP/1.1\r\nhost: {host}\r\norigin: {origin}\r\ncontent-type: {kind}\r\n");
        let sent = format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(sent.as_bytes()).await.expect("sent");
        let mut told = String::new();
        let _ = timeout(NEVER, stream.read_to_string(&mut told)).await.expect("it is closed");
        told
    };
    let code = format!("code={code}");
    assert!(send(&format!("http://{host}"), "POST /in", code.clone()).await.starts_with("HTTP/1.1 403"));
    let entered = send(&format!("https://{host}"), "POST /in", code).await;
    let cookie = entered.lines().find(|line| line.starts_with("set-cookie: __Host-console=")).expect("a cookie");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    let mut plain = TcpStream::connect(address).await.expect("a connection");
    plain.write_all(format!("GET /in HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await.expect("sent");
    let mut told = Vec::new();
    let _ = timeout(NEVER, plain.read_to_end(&mut told)).await.expect("it is closed");
    assert!(!told.starts_with(b"HTTP"), "{told:?}");
    json_of(&program.data, "console end --all").await;
    assert!(
        send(&format!("https://{host}"), "GET /in", String::new()).await.starts_with("HTTP/1.1 200"),
        "it stays open"
    );
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_stops_the_start_and_is_named() {
    let (pair, other) = (TlsPair::new(), TlsPair::new());
    let [cert, own] = [pair.certificate(), pair.key()].map(|path| path.display().to_string());
    let [others, home] = [other.key(), pair.home.path().to_owned()].map(|path| path.display().to_string());
    let [nothing, exposed] = ["nothing", "exposed"].map(|name| pair.home.path().join(name).display().to_string());
    fs::copy(&own, &exposed).expect("copied");
    fs::set_permissions(&exposed, Permissions::from_mode(0o644)).expect("it is ours");
    let cases: &[(&[&str], &str)] = &[
        (&["--tls-cert", &cert], "--tls-cert and --tls-key go together; give both, or neither"),
        (&["--tls-key", &own, "--tls-cert", ""], "--tls-cert and --tls-key go together"),
        (&["--tls-cert", &nothing, "--tls-key", &own], &format!("--tls-cert {nothing}: there is no such file")),
        (&["--tls-cert", &cert, "--tls-key", &home], &format!("--tls-key {home}: it is a folder")),
        (&["--tls-cert", &own, "--tls-key", &own], &format!("--tls-cert {own}: expected a certificate in PEM format")),
        (&["--tls-cert", &cert, "--tls-key", &cert], &format!("--tls-key {cert}: expected a private key")),
        (&["--tls-cert", &cert, "--tls-key", &exposed], &format!("its mode is 0644; run `chmod 600 {exposed}`")),
        (&["--tls-cert", &cert, "--tls-key", &others], &format!("--tls-key {others} do not go together: ")),
    ];
    for (flags, expected) in cases {
        let data = TempDir::new().expect("a temporary folder");
        let data = data.path().display().to_string();
        let said = refusal(&[&["--listen", "127.0.0.1:0", "--data", &data], *flags].concat()).await;
        assert!(said.contains(expected), "{flags:?}: {said}");
    }
}

#[tokio::test]
async fn a_listener_that_others_can_overhear_says_so_unless_it_speaks_tls() {
    let pair = TlsPair::new();
    let tls = pair.flags();
    let tls = tls.each_ref().map(String::as_str);
    for (listen, flags, beware) in
        [("0.0.0.0:0", &[][..], true), ("127.0.0.1:0", &[], false), ("0.0.0.0:0", &tls, false)]
    {
        let home = TempDir::new().expect("a folder");
        let command = start(&home).flags(&["--listen", listen]).flags(flags).command().expect("a log");
        let welcome = Process::start(command).expect("it starts").until("Ctrl-C").await.expect("it serves");
        let scheme = if flags.is_empty() { "http" } else { "https" };
        assert!(welcome.contains(&format!("\n  curl {scheme}://")), "{welcome}");
        let log = fs::read_to_string(home.path().join("log")).expect("text");
        for told in [&welcome, &log] {
            assert_eq!(told.contains("cross the network in clear"), beware, "{listen} {flags:?}: {told}");
        }
    }
}

/// Answers 404.
struct TestServer {
    tls: Arc<Tls>,
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

async fn serve(pair: &TlsPair, limits: Limits) -> TestServer {
    let tls = Tls::load(pair.certificate(), pair.key()).expect("usable");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel();
    let stopped = async { drop(stopped.await) };
    tokio::spawn(edge::serve(listener, Router::new(), ConnectionLimiter::new(limits), Some(tls.clone()), stopped));
    TestServer { tls, address, _stop: stop }
}

#[tokio::test]
async fn a_new_certificate_is_used_from_the_next_connection_on_and_a_wrong_one_never() {
    let mut pair = TlsPair::new();
    let server = serve(&pair, Limits::default()).await;
    let is_served = async |pair: &TlsPair| pair.connect(server.address, &rustls::version::TLS13).await.is_ok();
    let old = TlsPair { home: TempDir::new().expect("a folder"), der: pair.der.clone() };
    let mut open = pair.connect(server.address, &rustls::version::TLS13).await.expect("a connection");

    // The two files are written one after the other, so for a moment they do not match.
    let key = fs::read(pair.key()).expect("a key");
    pair.renew();
    let new_key = fs::read_to_string(pair.key()).expect("a key");
    fs::write(pair.key(), key).expect("written");
    server.tls.reload();
    assert!(is_served(&old).await && !is_served(&pair).await, "the old one is kept");
    fs::remove_file(pair.key()).expect("removed");
    server.tls.reload();
    assert!(is_served(&old).await);
    write(&pair.key(), &new_key, 0o600);
    assert!(is_served(&old).await, "until it is read");
    server.tls.reload();
    assert!(is_served(&pair).await && !is_served(&old).await, "the new one is used");

    open.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
    let mut told = [0; 12];
    open.read_exact(&mut told).await.expect("an answer");
    assert_eq!(&told, b"HTTP/1.1 404", "a connection that is open stays as it is");
}

#[tokio::test]
async fn a_handshake_has_a_deadline_and_a_place() {
    let pair = TlsPair::new();
    let short = Limits { handshake: Duration::from_millis(200), ..Limits::default() };
    let server = serve(&pair, short).await;
    for sent in [&b""[..], &[22, 3, 1, 2, 0, 1]] {
        let mut silent = TcpStream::connect(server.address).await.expect("a connection");
        silent.write_all(sent).await.expect("sent");
        let ended = timeout(NEVER, silent.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "it is closed");
    }
    let server = serve(&pair, Limits { connections_per_address: 1, handshake: NEVER, ..Limits::default() }).await;
    let _silent = TcpStream::connect(server.address).await.expect("a connection");
    assert!(pair.connect(server.address, &rustls::version::TLS13).await.is_err(), "there is one place");
}
