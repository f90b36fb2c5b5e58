//! A server in this process, on a free port, with a clock that stands still; and what a test asks of it.

use crate::print_shop::Mute;
use cloudphone::clock::{Clock, Timestamp};
use cloudphone::framework::access::Grants;
use cloudphone::framework::audit::Audit;
use cloudphone::framework::catalogue::{Catalogue, PermissionSet};
use cloudphone::framework::pipeline::{Handlers, Pipeline};
use cloudphone::framework::registry::{NewApplication, NewKey, Registry};
use cloudphone::framework::transport::Endpoint;
use cloudphone::framework::transport::edge::{self, Crowd, Doorkeeper, Limits};
use cloudphone::phones::contract::Contract;
use cloudphone::phones::devices::Phones;
use cloudphone::phones::proxy_hosts::ProxyHosts;
use cloudphone::phones::upstream::sim::{CAST, Sim};
use cloudphone::phones::writes::Writes;
use cloudphone::random::Random;
use cloudphone::store::memory::Memory;
use cloudphone::tasks::engine::{Engine, Parts};
use cloudphone::tasks::executor::Executor;
use cloudphone::vault::Vault;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Tasks that are in flight at most.
pub(crate) const ROOM: usize = 200;

/// A running server. It ends with the test.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
    pub(crate) http: Client,
    /// Holds the audit trail.
    pub(crate) data: TempDir,
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<Memory>,
    task: JoinHandle<()>,
    runner: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        self.runner.abort();
    }
}

/// A key and its secret.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) secret: String,
}

/// An application to serve: its permissions, what it sees, its budget, and how many keys it has.
pub(crate) struct Tenant {
    pub(crate) permissions: PermissionSet,
    pub(crate) grants: Grants,
    pub(crate) requests_per_minute: u32,
    pub(crate) keys: usize,
}

impl Tenant {
    /// Sees everything, may call often, has one key.
    pub(crate) fn with(permissions: PermissionSet) -> Self {
        Self { permissions, grants: Grants::All, requests_per_minute: 1_000_000, keys: 1 }
    }
}

/// Serves handlers, and who carries their writes out, to `tenants`; answers with the keys of each.
pub(crate) async fn serve<H: Handlers>(
    parts: impl FnOnce(&Clock) -> (H, Arc<dyn Executor>),
    tenants: Vec<Tenant>,
) -> (Server, Vec<Vec<Key>>) {
    let clock = Clock::manual(Timestamp(1_800_000_000_000));
    let (handlers, executor) = parts(&clock);
    let (store, random) = (Arc::new(Memory::default()), Random::seeded(1));
    let vault = Vault::new(&[7; 32], random.clone());
    let engine = Engine::start(Parts {
        store: store.clone(),
        executor,
        vault: vault.clone(),
        clock: clock.clone(),
        random,
        room: ROOM,
    });
    let engine = engine.await.expect("an empty store");
    let runner = tokio::spawn(Arc::clone(&engine).run(std::future::pending()));
    let data = TempDir::new().expect("a temporary folder");
    let audit = Audit::start(&data.path().join("audit")).expect("an audit");
    let registry = Registry::open(store.clone(), H::CATALOGUE, vault, clock.clone(), Random::seeded(2));
    let registry = registry.await.expect("an empty store");
    let mut keys = Vec::new();
    for (n, Tenant { permissions, grants, requests_per_minute, keys: count }) in tenants.into_iter().enumerate() {
        let name = format!("app-{n}");
        let granted = H::CATALOGUE.permissions.iter().filter(|known| permissions.covers(known.bit));
        let permissions = granted.map(|known| known.name.to_owned()).collect();
        let new = NewApplication { name, permissions, grants, requests_per_minute };
        let application = registry.create(new).await.expect("a new application");
        let mut issued = Vec::new();
        for _ in 0..count {
            let NewKey { key_id, secret } = registry.issue_key(&application, None).await.expect("a new key");
            issued.push(Key { id: key_id, secret: secret.expose().clone() });
        }
        keys.push(issued);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let door = Doorkeeper::new(address, None, &[], &["https://allowed.example".into()]).expect("a policy");
    let pipeline = Pipeline::new(handlers, registry.access(), audit, engine.clone(), clock.clone());
    let router = Endpoint::new(pipeline, door, Limits::default(), 7).router();
    let task = tokio::spawn(edge::serve(listener, router, Crowd::new(Limits::default()), std::future::pending()));
    // An answer that never comes shows in a minute; no other time is measured.
    let http = Client::builder().timeout(Duration::from_secs(60)).build().expect("a client");
    (Server { url: format!("http://{address}/mcp"), address, clock, http, data, engine, store, task, runner }, keys)
}

/// Serves twelve simulated phones.
pub(crate) async fn phones(tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    fleet(12, tenants).await
}

/// Serves that many simulated phones.
pub(crate) async fn fleet(devices: u32, tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    let parts = |clock: &Clock| {
        let sim = Arc::new(Sim::new(1, devices, clock.clone(), &[1; 32]));
        both_sides(sim, clock)
    };
    serve(parts, tenants).await
}

/// Serves one phone for each part of the cast, to one key that may do everything; with the truth about them.
pub(crate) async fn cast() -> (Server, Key, Arc<Sim>) {
    let mut kept = None;
    let parts = |clock: &Clock| {
        let sim = Arc::new(Sim::new(1, CAST.len() as u32, clock.clone(), &[1; 32]));
        kept = Some(sim.clone());
        both_sides(sim, clock)
    };
    let (server, keys) = serve(parts, vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    (server, keys[0][0].clone(), kept.expect("it was made"))
}

/// Serves twelve simulated phones that never answer a write.
pub(crate) async fn mute_phones(tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    let sim = |clock: &Clock| Arc::new(Sim::new(1, 12, clock.clone(), &[1; 32]));
    serve(|clock| (both_sides(sim(clock), clock).0, Arc::new(Mute)), tenants).await
}

/// The handlers of those phones, and who carries their writes out.
fn both_sides(sim: Arc<Sim>, clock: &Clock) -> (Contract<Phones>, Arc<dyn Executor>) {
    let phones = Phones::new(sim.clone(), ProxyHosts::Public, clock.clone());
    let writes = Arc::new(Writes::new(sim, phones.views()));
    (Contract(Arc::new(phones)), writes)
}

/// One key that may do everything, on twelve phones.
pub(crate) async fn open_phones() -> (Server, Key) {
    let (server, keys) = phones(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    (server, keys[0][0].clone())
}

impl Server {
    /// A POST to /mcp with that key's headers; the body is to come.
    pub(crate) fn post(&self, key: &Key) -> RequestBuilder {
        let request = self.http.post(&self.url).header("content-type", "application/json");
        request.header("x-api-key", &key.id).header("x-api-secret", &key.secret)
    }

    /// The answer to that body: status and JSON, null where it is empty.
    pub(crate) async fn send(&self, key: &Key, body: impl Into<reqwest::Body>) -> (u16, Value) {
        read(self.post(key).body(body).send().await.expect("an answer")).await
    }

    /// The whole answer to a request with id 1.
    pub(crate) async fn rpc(&self, key: &Key, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, answer) = self.send(key, body.to_string()).await;
        assert_eq!((status, &answer["jsonrpc"], &answer["id"]), (200, &json!("2.0"), &json!(1)), "{answer}");
        answer
    }

    /// What a tool answered: its result, or its failure.
    pub(crate) async fn call(&self, key: &Key, tool: &str, arguments: Value) -> Result<Value, Value> {
        let answer = self.rpc(key, "tools/call", json!({"name": tool, "arguments": arguments})).await;
        outcome(&answer)
    }

    /// The audit trail once its writer has flushed all that was written before.
    pub(crate) async fn audit(mut self) -> String {
        self.task.abort();
        let _ = (&mut self.task).await;
        let mut files: Vec<_> =
            std::fs::read_dir(self.data.path().join("audit")).expect("a folder").flatten().collect();
        files.sort_by_key(std::fs::DirEntry::path);
        files.iter().map(|file| std::fs::read_to_string(file.path()).expect("text")).collect()
    }

    /// Lets time go by until a task has ended: what it is then.
    pub(crate) async fn end(&self, key: &Key, task_id: &Value) -> Value {
        for _ in 0..200 {
            let task =
                self.call(key, "get_task", json!({"task_id": task_id, "wait_seconds": 0})).await.expect("a task");
            if task["terminal"] == true {
                return task;
            }
            self.clock.advance(Duration::from_secs(1));
        }
        panic!("{task_id} never ends");
    }

    /// The tools that a key is shown.
    pub(crate) async fn list(&self, key: &Key) -> Vec<Value> {
        let answer = self.rpc(key, "tools/list", json!({})).await;
        answer["result"]["tools"].as_array().cloned().unwrap_or_default()
    }
}

/// Status and JSON of a response.
pub(crate) async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = response.bytes().await.expect("a whole body");
    let json = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("JSON") };
    (status, json)
}

/// The one text item of a tool's answer, as JSON: the result, or the failure.
pub(crate) fn outcome(answer: &Value) -> Result<Value, Value> {
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("no result: {answer}"));
    assert_eq!(content.len(), 1, "{answer}");
    let value = serde_json::from_str(content[0]["text"].as_str().expect("text")).expect("JSON in the text");
    match &answer["result"]["isError"] {
        Value::Bool(true) => Err(value),
        Value::Bool(false) => Ok(value),
        other => panic!("isError is {other}"),
    }
}

/// Every set of permissions that can be granted, with the names that were granted.
pub(crate) fn every_permission_set(catalogue: &'static Catalogue) -> Vec<(String, PermissionSet)> {
    let all = catalogue.permissions;
    let subset = |bits: usize| {
        let granted = all.iter().enumerate().filter(move |(n, _)| bits >> n & 1 == 1).map(|(_, permission)| permission);
        let names = granted.clone().map(|permission| permission.name).collect::<Vec<_>>().join("+");
        let set = granted.fold(PermissionSet::default(), |set, permission| set.and(permission.grants));
        (if names.is_empty() { "none".to_owned() } else { names }, set)
    };
    (0..1 << all.len()).map(subset).collect()
}
