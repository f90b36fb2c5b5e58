//! A server for tests that runs in the process of the test. It has a free port, a clock that the
//! test moves, and a store in memory.

use http::Request;
use serde_json::{Value, json};
use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use toolwarrant::composition::{Core, CoreParts};
use toolwarrant::files::ServiceFiles;
use toolwarrant::{Service, Setup};
use toolwarrant_audit::{AuditHandle, is_chain_line};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::access::Grants;
use toolwarrant_core::act::{Channel, Claims, Origin};
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_core::nonces::dump_reads;
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_core::registry::{NewApplication, NewKey, Registry};
use toolwarrant_http::edge::{self, ConnectionLimiter, HostOriginPolicy, Limits};
use toolwarrant_http::{Endpoint, Router};
use toolwarrant_memory::Memory;
use toolwarrant_operator::data::{AUDIT, DataFolder};
use toolwarrant_operator::keeping::AuditOptions;
use toolwarrant_operator::{Background, Config, Names, OpenedData, local_operator, until};
use toolwarrant_outbound::{HttpClient, HttpLimits};
use toolwarrant_tasks::engine::Engine;

/// The time at which the clock of a test server starts.
pub const START: Timestamp = Timestamp(1_800_000_000_000);

/// Maximum number of tasks in flight.
pub const TASKS_MAX: usize = 200;

/// Time for a part of a test server to stop. Unfinished work is dropped.
const AT_ONCE: Duration = Duration::from_secs(10);

/// The limits of one call.
const EXCHANGE: HttpLimits = HttpLimits { deadline: Duration::from_secs(75), largest_answer: 4 << 20 };

/// A running server. It ends when it is dropped.
pub struct TestServer {
    /// The endpoint: `http://127.0.0.1:PORT/mcp`.
    pub url: String,
    /// The address that it listens on.
    pub address: SocketAddr,
    /// The endpoint as a router, for requests without a connection.
    pub router: Router,
    /// The clock. Unless the test brought its own, it stands still until the test moves it.
    pub clock: Clock,
    /// The engine, which drives tasks.
    pub engine: Arc<Engine>,
    /// The store.
    pub store: Arc<Memory>,
    /// Applications and keys. The n-th tenant has the name `app-n`.
    pub registry: Registry,
    /// The folder of its audit trail.
    pub audit: PathBuf,
    /// Its audit.
    pub audit_handle: AuditHandle,
    edge: Background,
    _beside: [Background; 2],
    _folder: DataFolder,
}

/// A key and its secret.
#[derive(Clone, Debug)]
pub struct Key {
    /// The id of the key.
    pub id: String,
    /// The secret.
    pub secret: String,
}

/// An application of a test server.
pub struct Tenant {
    /// Its permissions.
    pub permissions: PermissionSet,
    /// The targets that it sees.
    pub grants: Grants,
    /// Its budget of requests.
    pub requests_per_minute: u32,
    /// The number of its keys.
    pub keys: usize,
}

impl Tenant {
    /// An application with these permissions, all targets, a large budget and one key.
    #[must_use]
    pub fn with(permissions: PermissionSet) -> Self {
        Self { permissions, grants: Grants::everything(), requests_per_minute: 1_000_000, keys: 1 }
    }
}

/// Returns the origin of the changes that a test makes.
#[must_use]
pub fn test_origin() -> Origin {
    Origin { operator: local_operator(Channel::Offline, Claims::default()), command: "test".to_owned() }
}

/// Starts a server for `tenants`, with its data in `folder`. Returns the server and the keys of
/// each tenant.
///
/// # Panics
/// There is no free port, or the folder cannot be used.
pub async fn serve<H: Handlers, C>(
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    tenants: Vec<Tenant>,
    folder: PathBuf,
) -> (TestServer, Vec<Vec<Key>>) {
    serve_by(Clock::manual(START), compose, tenants, folder).await
}

/// Starts the same server on another clock.
///
/// # Panics
/// There is no free port, or the folder cannot be used.
#[expect(clippy::expect_used, reason = "a test without its server must fail")]
pub async fn serve_by<H: Handlers, C>(
    clock: Clock,
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    tenants: Vec<Tenant>,
    folder: PathBuf,
) -> (TestServer, Vec<Vec<Key>>) {
    let server = start_on(Arc::default(), clock, compose, folder).await;
    let mut keys = Vec::new();
    for (n, Tenant { permissions, grants, requests_per_minute, keys: count }) in tenants.into_iter().enumerate() {
        let name = format!("app-{n}");
        let granted = H::CATALOGUE.permissions.iter().filter(|known| permissions.covers(known.bit));
        let permissions = granted.map(|known| known.name.to_owned()).collect();
        let new = NewApplication { name, permissions, grants, requests_per_minute };
        let application = server.registry.create(new, &test_origin()).await.expect("a new application").object;
        let mut issued = Vec::new();
        for _ in 0..count {
            let key = server.registry.issue_key(&application, None, &test_origin()).await;
            let NewKey { key_id, secret, .. } = key.expect("a new key");
            issued.push(Key { id: key_id, secret: secret.expose().clone() });
        }
        keys.push(issued);
    }
    (server, keys)
}

/// Starts a server on the data of an earlier one.
///
/// # Panics
/// There is no free port, or the folder cannot be used.
#[expect(clippy::expect_used, reason = "a test without its server must fail")]
pub async fn start_on<H: Handlers, C>(
    database: Arc<Memory>,
    clock: Clock,
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    folder: PathBuf,
) -> TestServer {
    let names = Names::of("test", "0");
    let folder = DataFolder::open(&folder, &names).expect("a folder");
    let setup = Setup {
        flags: (),
        config: Config::default(),
        folder: &folder,
        files: ServiceFiles::open(database.clone()).await.expect("the store answers"),
        clock: clock.clone(),
        random: Random::from_seed(3),
    };
    let (handlers, executor, background) = compose(setup).into_parts();
    let random = Random::from_seed(1);
    let keyring = KeyRing::new(&names.salt, &[7; 32], random.clone());
    let directory = (database.clone(), keyring.clone(), clock.clone());
    let registry =
        Registry::open(directory.0, H::CATALOGUE, names.keys, directory.1, directory.2, Random::from_seed(2), None);
    let registry = registry.await.expect("an empty store");
    let data = OpenedData { registry, keyring, database: database.clone(), shared: None, clock };
    let (audit, max_in_flight) = (AuditOptions::default(), TASKS_MAX);
    let parts =
        CoreParts { catalogue: H::CATALOGUE, executor, folder: &folder, data: &data, random, audit, max_in_flight };
    let core = Core::compose(parts).await.expect("an empty store");
    let (pipeline, engine, _) = core.pipeline(handlers, &data);
    let OpenedData { registry, keyring: _, database: _, shared: _, clock } = data;
    let driven = Arc::clone(&engine);
    let runner = Background::start("the engine", AT_ONCE, |stopped| driven.run(stopped));
    let audit_handle = pipeline.audit_handle();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let policy = HostOriginPolicy::new(address, None, &[], &["https://allowed.example".into()]).expect("a policy");
    let endpoint = Arc::new(Endpoint::new(pipeline, policy, Limits::default(), "", 7));
    let limiter = ConnectionLimiter::new(Limits::default());
    let serving = edge::serve(listener, Arc::clone(&endpoint), limiter, None, pending());
    let edge = Background::start("the edge", AT_ONCE, |stopped| until(stopped, serving));
    let url = format!("http://{address}/mcp");
    TestServer {
        url,
        address,
        router: endpoint.router(),
        clock,
        engine,
        store: database,
        registry,
        audit: folder.join(AUDIT),
        audit_handle,
        edge,
        _beside: [runner, Background::of_service(background)],
        _folder: folder,
    }
}

impl TestServer {
    /// Calls a tool over HTTP. Returns its result, or its failure as an error.
    ///
    /// # Panics
    /// The server does not answer as MCP says.
    #[expect(clippy::expect_used, reason = "a test without an answer must fail")]
    pub async fn call(&self, key: &Key, tool: &str, arguments: Value) -> Result<Value, Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let request = Request::post(&self.url).header("content-type", "application/json");
        let request = request.header("x-api-key", &key.id).header("x-api-secret", &key.secret);
        let client = HttpClient::to(&self.url.parse().expect("a URL")).expect("a client");
        let answer = client.exchange(request.body(body).expect("a request"), EXCHANGE).await.expect("an answer");
        let mut answer: Value = serde_json::from_slice(answer.body()).expect("JSON");
        if !answer["error"].is_null() {
            return Err(answer["error"]["data"].take());
        }
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().expect("a result has text");
        let value = serde_json::from_str(text).expect("JSON");
        if result["isError"] == true { Err(value) } else { Ok(value) }
    }

    /// Advances the manual clock second by second until a task has ended. Returns the task as
    /// `reader`, the tool that reads tasks, shows it.
    ///
    /// # Panics
    /// The task cannot be read, or does not end within an hour.
    #[expect(clippy::panic, clippy::expect_used, reason = "a test without the end of its task must fail")]
    pub async fn end(&self, key: &Key, reader: &str, task: &Value) -> Value {
        for _ in 0..3_600 {
            let arguments = json!({"task_id": task["task_id"], "wait_seconds": 0});
            let task = self.call(key, reader, arguments).await.expect("a task");
            if task["terminal"] == true {
                return task;
            }
            self.clock.advance(Duration::from_secs(1));
        }
        panic!("the task does not end: {task}");
    }

    /// Stops the server in order. Returns its data, for [`start_on`].
    ///
    /// # Panics
    /// The data cannot be written.
    #[expect(clippy::expect_used, reason = "a test of a stop must see it")]
    pub async fn stop(self) -> Arc<Memory> {
        let Self { edge, engine, registry, store, .. } = self;
        edge.stop().await;
        engine.keep_reads(dump_reads(&registry.access())).await.expect("stored");
        store
    }

    /// Stops the server and returns its complete audit trail, without the lines that seal it.
    ///
    /// # Panics
    /// The trail cannot be read.
    #[expect(clippy::expect_used, reason = "a test without its audit trail must fail")]
    pub async fn into_audit(self) -> String {
        let Self { edge, router, audit, .. } = self;
        edge.stop().await;
        // The last copy of the endpoint stops the writer of the audit.
        drop(router);
        let mut files: Vec<_> = std::fs::read_dir(audit).expect("a folder").flatten().collect();
        files.sort_by_key(std::fs::DirEntry::path);
        let text: String = files.iter().map(|file| std::fs::read_to_string(file.path()).expect("text")).collect();
        text.split_inclusive('\n').filter(|line| !is_chain_line(line.as_bytes())).collect()
    }
}
