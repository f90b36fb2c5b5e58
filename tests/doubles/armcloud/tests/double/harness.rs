//! A running double, a client that signs, and an echo server that reports the address of its
//! client.

use reqwest::{Client, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

pub(crate) const VMOS: &str = "/vcpcloud/api/padApi";
pub(crate) const ARMCLOUD: &str = "/openapi/open";

/// The program. It stops at the end of the test.
pub(crate) struct Double {
    inner: driver::DoubleProcess,
    pub(crate) pads: Vec<String>,
    pub(crate) proxies: Vec<Value>,
    http: Client,
}

impl Deref for Double {
    type Target = driver::DoubleProcess;
    fn deref(&self) -> &driver::DoubleProcess {
        &self.inner
    }
}

impl Double {
    /// Starts it with short durations and these additional flags.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let times = ["task_ms=20", "restart_ms=40", "online_ms=40", "power_ms=20", "command_ms=5"];
        let flags: Vec<_> = times.iter().flat_map(|time| ["--set", time]).chain(flags.iter().copied()).collect();
        let program = Path::new(env!("CARGO_BIN_EXE_armcloud-double"));
        let inner = driver::DoubleProcess::start(program, &flags).await.expect("the double starts");
        let list = |name: &str| inner.greeting[name].as_array().expect("as documented").clone();
        let pads = list("pads").iter().map(|code| code.as_str().expect("as documented").to_owned()).collect();
        let http = Client::builder()
            .timeout(Duration::from_secs(60))
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .build()
            .expect("a client");
        Self { pads, proxies: list("proxies"), inner, http }
    }

    /// Sends a request under `/vcpcloud/api/padApi`, signed by V2. The error is that of the
    /// transport.
    pub(crate) async fn send(&self, endpoint: &str, body: &Value) -> reqwest::Result<Response> {
        self.send_to(&format!("{VMOS}/{endpoint}"), body, 0).await
    }

    /// Sends a request to any path; a path of ARMCloud is signed by its own scheme. The signer's
    /// clock is `late` seconds behind.
    pub(crate) async fn send_to(&self, path: &str, body: &Value, late: u64) -> reqwest::Result<Response> {
        let body = body.to_string();
        let time = SystemTime::now().duration_since(UNIX_EPOCH).expect("as documented").as_secs() - late;
        let sign = hex(&Sha256::digest(format!("SKTEST9876543210{time}{path}{body}")));
        let request = self.http.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        let request = if path.starts_with("/v") {
            request
                .header("X-Access-Key", "AKTEST0123456789")
                .header("X-Timestamp", time.to_string())
                .header("X-Sign", sign)
        } else {
            armcloud(request, path, &body, time)
        };
        request.body(body).send().await
    }

    /// Calls an endpoint. Returns the envelope of the answer.
    pub(crate) async fn call(&self, endpoint: &str, body: &Value) -> Value {
        json_of(self.send(endpoint, body).await.expect("an answer")).await
    }

    pub(crate) async fn call_at(&self, path: &str, body: &Value) -> Value {
        json_of(self.send_to(path, body, 0).await.expect("an answer")).await
    }

    /// Submits an operation for a pad, which must be accepted. Returns the id of its task.
    pub(crate) async fn submit(&self, endpoint: &str, pad: &str, more: Value) -> u64 {
        let mut body = json!({"padCodes": [pad]});
        body.as_object_mut().expect("as documented").extend(more.as_object().expect("as documented").clone());
        let answer = self.call(endpoint, &body).await;
        answer["data"][0]["taskId"].as_u64().unwrap_or_else(|| panic!("no task: {answer}"))
    }

    /// Polls a task until it has ended.
    pub(crate) async fn wait_for_end(&self, task: u64) -> Value {
        self.until("padTaskDetail", &json!({"taskIds": [task]}), |answer| {
            let status = answer["data"][0]["taskStatus"].as_i64().unwrap_or_default();
            status == 3 || status < 0
        })
        .await["data"][0]
            .clone()
    }

    /// Repeats a call until the answer is as wanted, for up to a minute.
    pub(crate) async fn until(&self, endpoint: &str, body: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
        let polled = async {
            loop {
                let answer = self.call(endpoint, body).await;
                if wanted(&answer) {
                    break answer;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), polled).await.expect("within a minute")
    }

    /// Runs a script on a pad. Returns its output.
    pub(crate) async fn shell(&self, pad: &str, script: &str) -> String {
        let task = self.submit("asyncCmd", pad, json!({"scriptContent": script})).await;
        let ended = self.wait_for_end(task).await;
        assert_eq!(ended["taskStatus"], 3, "{ended}");
        ended["taskResult"].as_str().unwrap_or_default().to_owned()
    }

    /// Sets the switches of a pad, and turns its other switches off.
    pub(crate) async fn set(&self, pad: &str, switches: Value) {
        self.switch(Some(pad), &switches).await.expect("switches");
    }

    /// Sets the switches for all pads.
    pub(crate) async fn set_all(&self, switches: Value) {
        self.switch(None, &switches).await.expect("switches");
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.inner.put(path, body).await.expect("an answer");
        (answer.status, serde_json::from_str(&answer.body).expect("JSON"))
    }

    pub(crate) async fn post(&self, path: &str) -> Value {
        self.inner.post(path).await.expect("JSON")
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.inner.get(path).await.expect("JSON")
    }

    /// Returns the state of a pad from the control interface.
    pub(crate) async fn truth(&self, pad: &str) -> Value {
        self.get(&format!("pads/{pad}")).await
    }

    /// Waits until the journal has an effect on a pad, for up to a minute.
    pub(crate) async fn wait_for_act(&self, pad: &str) {
        let acted = async { while self.did(pad).await.is_empty() {} };
        tokio::time::timeout(Duration::from_secs(60), acted).await.expect("within a minute");
    }

    /// Returns the operations that took effect on a pad, in order.
    pub(crate) async fn did(&self, pad: &str) -> Vec<String> {
        let entries = self.journal(0).await.expect("as documented");
        let own = entries.iter().filter(|entry| entry["kind"] == "did" && entry["pad"] == pad);
        own.map(|entry| entry["operation"].as_str().expect("as documented").to_owned()).collect()
    }
}

/// An HTTP server that answers with the client's address, and stores the requests.
pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, seen) = (listener.local_addr().expect("as documented"), Arc::new(Mutex::new(Vec::new())));
        let heads = seen.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, peer)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.windows(4).any(|four| four == b"\r\n\r\n") {
                    if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                heads.lock().expect("as documented").push(String::from_utf8_lossy(&head).into_owned());
                let body = peer.ip().to_string();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/once", self.address)
    }
}

pub(crate) async fn json_of(response: Response) -> Value {
    let text = response.text().await.expect("a body");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn armcloud(request: reqwest::RequestBuilder, path: &str, body: &str, time: u64) -> reqwest::RequestBuilder {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    let milliseconds = time * 1_000;
    let mut mac = Hmac::<Sha256>::new_from_slice(b"SKTEST9876543210").expect("as documented");
    mac.update(format!("{milliseconds}{path}{body}").as_bytes());
    request
        .header("authver", "2.0")
        .header("x-ak", "AKTEST0123456789")
        .header("x-timestamp", milliseconds.to_string())
        .header("x-sign", hex(&mac.finalize().into_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
