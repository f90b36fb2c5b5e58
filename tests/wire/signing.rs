//! The documents about signing: the samples in `docs/signing`, each run as a program, and the page
//! about them.

use crate::harness::program::Program;
use crate::harness::signed::exchange;
use crate::harness::{Key, open_phones};
use crate::wire::bridge::fake::{self, Fake};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::mpsc;
use toolwarrant_signing::{IDEMPOTENCY_KEY, KEY, NONCE, Request, SIGNATURE, TIMESTAMP, header, sign};

struct Sample {
    file: &'static str,
    needs: &'static [&'static str],
    /// Otherwise it is the first argument of a command.
    built: bool,
    /// The HTTP client sends the absolute form if the environment names a proxy.
    proxied: bool,
    /// The vectors whose target its HTTP client changes, or whose request the client refuses.
    otherwise: &'static [&'static str],
}

const SAMPLES: [Sample; 5] = [
    Sample {
        file: "curl.sh",
        needs: &["bash", "curl", "openssl"],
        built: false,
        proxied: true,
        otherwise: &["raw octets of UTF-8"],
    },
    Sample { file: "sign.py", needs: &["python3"], built: false, proxied: false, otherwise: &["raw octets of UTF-8"] },
    Sample {
        file: "sign.mjs",
        needs: &["node"],
        built: false,
        proxied: false,
        otherwise: &[
            "a question mark without a query",
            "raw octets of UTF-8",
            "characters that a URI may not have and servers take",
            "dots are not resolved",
            "encoded dots are not resolved",
            "GET with a body",
            "TRACE",
        ],
    },
    Sample {
        file: "sign.go",
        needs: &["go"],
        built: true,
        proxied: true,
        otherwise: &["raw octets of UTF-8", "characters that a URI may not have and servers take"],
    },
    Sample {
        file: "sign.rs",
        needs: &[],
        built: true,
        proxied: true,
        otherwise: &[
            "raw octets of UTF-8",
            "characters that a URI may not have and servers take",
            "dots are not resolved",
            "encoded dots are not resolved",
        ],
    },
];

#[derive(Deserialize)]
struct Vector {
    title: String,
    key_id: String,
    secret: String,
    timestamp: String,
    nonce: String,
    method: String,
    target: String,
    idempotency_key: String,
    body: Option<String>,
    body_hex: Option<String>,
    canonical_request: String,
    signature: String,
}

struct Received {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Received {
    fn of(request: &fake::FakeRequest) -> Self {
        let (line, lines) = request.head.split_once("\r\n").expect("a head");
        let mut words = line.split(' ').map(str::to_owned);
        let [method, target] = [(); 2].map(|()| words.next().expect("a request line"));
        let member = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        let headers = lines.lines().map(member).collect();
        let received = Self { method, target, headers, body: request.octets.clone() };
        assert_eq!(received.header("transfer-encoding"), "", "a body of unknown length");
        received
    }

    /// Returns an empty text for a missing header.
    fn header(&self, name: &str) -> &str {
        let mut values = self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let value = values.next().unwrap_or_default();
        assert_eq!(values.next(), None, "two of {name}");
        value
    }

    fn compute_signature(&self, secret: &str) -> String {
        let target = &self.target[origin(&self.target).map_or(0, str::len)..];
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let request = Request {
            key_id: self.header(KEY),
            timestamp: self.header(TIMESTAMP),
            nonce: self.header(NONCE),
            method: &self.method,
            path,
            query,
            idempotency_key: self.header(IDEMPOTENCY_KEY),
            body: &self.body,
        };
        header(&sign(secret, &request.canonical()))
    }
}

#[tokio::test]
async fn each_sample_sends_and_signs_every_vector_that_its_client_can_send_and_no_base_path() {
    let vectors = vectors();
    let mut unknown = Vec::new();
    for sample in &SAMPLES {
        let folder = TempDir::new().expect("a temporary folder");
        let Some(program) = program(sample, folder.path()).await else { continue };
        let (url, mut requests) = record().await;
        let mut exact = 0;
        for vector in &vectors {
            let (title, origin) = (vector.title.as_str(), origin(&vector.target));
            if origin.is_some() && !sample.proxied {
                continue;
            }
            let key = Key { id: vector.key_id.clone(), secret: vector.secret.clone() };
            let target = &vector.target[origin.map_or(0, str::len)..];
            let mut command = command(&program, origin.unwrap_or(&url), &key);
            command.args([&vector.method, target, &argument(&vector.body(), folder.path()), &vector.idempotency_key]);
            command.envs(origin.map(|_| ("http_proxy", &url)));
            let output = run(command.env("TIMESTAMP", &vector.timestamp).env("NONCE", &vector.nonce)).await;
            let about = format!("{}, {title}\n{}", sample.file, output_text(&output));
            let received = requests.try_recv().ok();
            assert_eq!(output.status.success(), received.is_some(), "{about}");
            // The signature must fit the request that was sent, even if the HTTP client changed it.
            let signed =
                received.as_ref().is_none_or(|it| it.header(SIGNATURE) == it.compute_signature(&vector.secret));
            assert!(signed, "{about}");
            match received.filter(|it| (&it.method, &it.target) == (&vector.method, &vector.target)) {
                Some(received) => {
                    assert_eq!(received.header(SIGNATURE), vector.signature, "{about}");
                    exact += 1;
                }
                None if sample.otherwise.contains(&title) => {}
                None => unknown.push((sample.file, title)),
            }
        }
        // A proxy strips the base path of the URL.
        let key = Key { id: "key".into(), secret: "secret".into() };
        let mut command = command(&program, &format!("{url}/base/path"), &key);
        let output = run(command.args(["GET", "/v1/%C3%A9?a=b"])).await;
        let mut received = requests.try_recv().unwrap_or_else(|_| panic!("{}\n{}", sample.file, output_text(&output)));
        received.target = received.target.strip_prefix("/base/path").expect("the base path is sent").to_owned();
        assert_eq!(received.header(SIGNATURE), received.compute_signature("secret"), "{}", sample.file);
        say(&format!("{}: {exact} of {} vectors", sample.file, vectors.len()));
    }
    assert!(unknown.is_empty(), "refused, or sent otherwise: {unknown:#?}");
}

#[tokio::test]
async fn each_sample_reads_and_writes_at_the_program_and_shows_what_it_answers() {
    for sample in &SAMPLES {
        let folder = TempDir::new().expect("a temporary folder");
        let Some(runner) = program(sample, folder.path()).await else { continue };
        let program = Program::start(&[]).await;
        let ask = async |key: &Key, set: &[(&str, &str)], arguments: &[&str]| {
            let output = run(command(&runner, &format!("http://{}", program.address), key)
                .envs(set.iter().copied())
                .args(arguments))
            .await;
            let status = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let answer: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", output_text(&output)));
            (output.status.success(), status, answer)
        };
        let (key, file) = (&program.keys[0], sample.file);
        let body = r#"{"scheme":"http","host":"203.0.113.7","port":3128}"#;
        let write = ["PUT", "/v1/devices/phone-0000001/proxy", body, "order-1042"];
        let (done, status, task) = ask(key, &[], &write).await;
        assert_eq!(
            (done, status.as_str(), &task["status"]),
            (true, "202", &Value::from("dispatched")),
            "{file}: {task}"
        );
        let (done, status, hit) = ask(key, &[], &write).await;
        assert_eq!((done, status.as_str(), &hit["task_id"]), (true, "200", &task["task_id"]), "{file}: {hit}");

        // The server refuses a read that is signed in the second of its start, so this one is
        // signed a minute ahead.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
        let (done, status, page) =
            ask(key, &[("TIMESTAMP", &(now + 60).to_string())], &["GET", "/v1/devices?limit=2"]).await;
        assert_eq!(
            (done, status.as_str(), page["devices"].as_array().map(Vec::len)),
            (true, "200", Some(2)),
            "{file}: {page}"
        );

        let wrong = Key { id: key.id.clone(), secret: "wrong".into() };
        let (done, status, refusal) = ask(&wrong, &[], &write).await;
        let lines = refusal["canonical_request"].as_str().map(|canonical| canonical.lines().count());
        assert_eq!((done, status.lines().last(), lines), (false, Some("401"), Some(9)), "{file}: {status} {refusal}");
    }
}

#[tokio::test]
async fn the_server_builds_the_canonical_request_of_every_vector() {
    let (server, _) = open_phones().await;
    // The answer to HEAD has no body.
    for vector in vectors().iter().filter(|vector| vector.method != "HEAD") {
        let Vector { title, key_id, timestamp, nonce, method, target, idempotency_key, signature, .. } = vector;
        let body = vector.body();
        let mut request = format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\
             X-Api-Key: {key_id}\r\nX-Timestamp: {timestamp}\r\nX-Nonce: {nonce}\r\nX-Signature: {signature}\r\n",
            body.len()
        );
        if !idempotency_key.is_empty() {
            request += &format!("Idempotency-Key: {idempotency_key}\r\n");
        }
        let answer = exchange(server.address, &[request.as_bytes(), b"\r\n", &body].concat()).await.expect("an answer");
        let built = answer.body["canonical_request"].as_str();
        assert_eq!((answer.status, built), (401, Some(vector.canonical_request.as_str())), "{title}: {}", answer.body);
    }
}

#[test]
fn the_page_shows_the_vector_of_its_example_whole_and_links_every_sample() {
    let page = fs::read_to_string(docs().with_file_name("signing.md")).expect("the page");
    let vectors = vectors();
    let example = vectors.iter().find(|vector| page.contains(&vector.nonce)).expect("an example");
    let Vector {
        title,
        key_id,
        secret,
        timestamp,
        nonce,
        method,
        target,
        idempotency_key,
        canonical_request,
        signature,
        ..
    } = example;
    let block = |lines: &str| page.contains(&format!("\n```text\n{lines}\n```\n"));
    assert!(block(canonical_request), "{title}");
    let body = example.body.as_deref().expect("text");
    let headers = format!(
        "{method} {target} HTTP/1.1\nX-Api-Key: {key_id}\nX-Timestamp: {timestamp}\nX-Nonce: {nonce}\n\
         X-Signature: {signature}\nIdempotency-Key: {idempotency_key}\nContent-Type: application/json\n\n{body}"
    );
    assert!(block(&headers), "{headers}");
    assert!(page.contains(&format!("`{secret}`")) && page.contains(title.as_str()));
    let files = fs::read_dir(docs()).expect("the folder").map(|entry| entry.expect("an entry").file_name());
    let files: Vec<String> = files.map(|name| name.into_string().expect("UTF-8")).collect();
    assert_eq!(files.len(), SAMPLES.len());
    for file in files {
        assert!(SAMPLES.iter().any(|sample| sample.file == file), "{file} is tried by no test");
        assert!(page.contains(&format!("(signing/{file})")), "{file} is not linked");
    }
}

impl Vector {
    fn body(&self) -> Vec<u8> {
        let hex = self.body_hex.as_deref().unwrap_or_default();
        let octet = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
        self.body.clone().map_or_else(|| (0..hex.len()).step_by(2).map(octet).collect(), String::into_bytes)
    }
}

fn origin(target: &str) -> Option<&str> {
    let (_, rest) = target.split_once("://").filter(|_| !target.starts_with('/'))?;
    Some(target.split_at(target.len() - rest.len() + rest.find('/')?).0)
}

fn vectors() -> Vec<Vector> {
    let mut file: Value =
        serde_json::from_str(include_str!("../../server/toolwarrant/signing/vectors.json")).expect("JSON");
    serde_json::from_value(file["vectors"].take()).expect("vectors")
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/signing")
}

/// Returns `None` if a needed program is missing.
async fn program(sample: &Sample, folder: &Path) -> Option<Vec<PathBuf>> {
    let Sample { file, needs, built, proxied: _, otherwise: _ } = *sample;
    if needs.iter().any(|program| kit::lacks(program)) {
        return None;
    }
    let source = docs().join(file);
    if !built {
        return Some(vec![needs[0].into(), source]);
    }
    if needs.is_empty() {
        let example = PathBuf::from(env!("CARGO_BIN_EXE_cloudphone")).with_file_name("examples").join("sign");
        assert!(example.is_file(), "`cargo build --package cloudphone --example sign` makes {}", example.display());
        return Some(vec![example]);
    }
    let program = folder.join("sign");
    let output = run(Command::new("go").args(["build", "-o"]).args([&program, &source])).await;
    assert!(output.status.success(), "{}", output_text(&output));
    Some(vec![program])
}

fn command(program: &[PathBuf], url: &str, key: &Key) -> Command {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).env("API_URL", url).env("API_KEY", &key.id).env("API_SECRET", &key.secret);
    // A proxy in this machine's environment must not matter.
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] {
        command.env_remove(name);
    }
    command
}

/// Returns the name of a file if an argument cannot hold the body.
fn argument(body: &[u8], folder: &Path) -> String {
    match str::from_utf8(body) {
        Ok(text) if !text.contains('\0') && !text.starts_with('@') => text.to_owned(),
        _ => {
            let file = folder.join("body");
            fs::write(&file, body).expect("a file");
            format!("@{}", file.display())
        }
    }
}

async fn run(command: &mut Command) -> Output {
    // A sample that hangs shows after two minutes; this is the only time limit.
    let output = tokio::time::timeout(Duration::from_secs(120), command.kill_on_drop(true).output()).await;
    output.expect("it ends").expect("it runs")
}

fn output_text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Writes to a stream that the test runner does not capture.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error");
}

/// Returns a channel that has each request before its answer.
async fn record() -> (String, mpsc::UnboundedReceiver<Received>) {
    let mut fake = Fake::listen().await;
    let url = fake.url.trim_end_matches("/mcp").to_owned();
    let (sender, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let request = fake.next().await;
            if sender.send(Received::of(&request)).is_err() {
                break;
            }
            request.answer(200, Value::Null).await;
        }
    });
    (url, requests)
}
