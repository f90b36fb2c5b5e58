//! A server in the process of a test, with a free port, a clock that the test moves, and a store in
//! memory. Start at [`serve`].

use http::Request;
use serde_json::{Value, json};
use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use toolwarrant::composition::Core;
use toolwarrant::files::ServiceFiles;
use toolwarrant::{Service, Setup};
use toolwarrant_audit::{AuditHandle, is_chain_line};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::json;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::access::Grants;
use toolwarrant_core::act::{Channel, Claims, Origin};
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_core::passes::Passes;
use toolwarrant_core::pipeline::{Handlers, keep_passes};
use toolwarrant_core::registry::{NewApplication, NewKey, Registry};
use toolwarrant_core::toolsets::{Offer, Toolsets};
use toolwarrant_http::edge::{self, ConnectionLimiter, HostOriginPolicy, Limits};
use toolwarrant_http::{Endpoint, OfferedPage, Router, ServerProcess};
use toolwarrant_memory::Memory;
use toolwarrant_operator::data::{AUDIT, DataFolder};
use toolwarrant_operator::keeping::AuditOptions;
use toolwarrant_operator::{Background, Config, Names, OpenedData, local_operator, until};
use toolwarrant_outbound::{HttpClient, HttpLimits};
use toolwarrant_tasks::engine::{Engine, OwnTasks};

pub const START: Timestamp = Timestamp(1_800_000_000_000);

pub const TASKS_MAX: usize = 200;

/// Unfinished work is dropped then.
const AT_ONCE: Duration = Duration::from_secs(10);

const SECOND: Duration = Duration::from_secs(1);

const LOOK_AGAIN: Duration = Duration::from_millis(1);

const EXCHANGE: HttpLimits = HttpLimits { deadline: Duration::from_secs(75), largest_answer: 4 << 20 };

pub struct TestServer {
    /// `http://127.0.0.1:PORT/mcp`.
    pub url: String,
    pub address: SocketAddr,
    pub router: Router,
    /// Stands still until the test moves it, unless the test brought its own.
    pub clock: Clock,
    pub engine: Arc<Engine>,
    pub store: Arc<Memory>,
    /// The n-th tenant has the name `app-n`.
    pub registry: Registry,
    pub audit: PathBuf,
    pub audit_handle: AuditHandle,
    edge: Background,
    _beside: [Background; 2],
    _folder: DataFolder,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub id: String,
    pub secret: String,
}

pub struct Tenant {
    pub permissions: PermissionSet,
    pub grants: Grants,
    pub requests_per_minute: u32,
    pub keys: usize,
}

impl Tenant {
    /// Makes an application with all targets, a large budget and one key.
    #[must_use]
    pub fn with(permissions: PermissionSet) -> Self {
        Self { permissions, grants: Grants::everything(), requests_per_minute: 1_000_000, keys: 1 }
    }
}

#[must_use]
pub fn test_origin() -> Origin {
    Origin { operator: local_operator(Channel::Offline, Claims::default()), command: "test".to_owned() }
}

/// Returns the keys of each tenant as well.
pub async fn serve<H: Handlers, C>(
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    tenants: Vec<Tenant>,
    folder: PathBuf,
) -> (TestServer, Vec<Vec<Key>>) {
    serve_by(Clock::manual(START), compose, tenants, folder).await
}

/// Runs on another clock.
pub async fn serve_by<H: Handlers, C>(
    clock: Clock,
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    tenants: Vec<Tenant>,
    folder: PathBuf,
) -> (TestServer, Vec<Vec<Key>>) {
    serve_toolsets(&[], clock, compose, tenants, folder).await
}

/// Offers these toolsets as well.
#[expect(clippy::expect_used, reason = "a test without its server must fail")]
pub async fn serve_toolsets<H: Handlers, C>(
    toolsets: &[&str],
    clock: Clock,
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    tenants: Vec<Tenant>,
    folder: PathBuf,
) -> (TestServer, Vec<Vec<Key>>) {
    let toolsets = Toolsets::find(H::CATALOGUE, toolsets.iter().copied()).expect("toolsets of the contract");
    let server = start(toolsets, Arc::default(), clock, compose, folder).await;
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
pub async fn start_on<H: Handlers, C>(
    database: Arc<Memory>,
    clock: Clock,
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    folder: PathBuf,
) -> TestServer {
    start(Toolsets::default(), database, clock, compose, folder).await
}

#[expect(clippy::expect_used, reason = "a test without its server must fail")]
async fn start<H: Handlers, C>(
    toolsets: Toolsets,
    database: Arc<Memory>,
    clock: Clock,
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    folder: PathBuf,
) -> TestServer {
    let names = Names::of("test", "0");
    let folder = DataFolder::open(&folder, &names).expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let passes = Passes::new(clock.clone(), Random::from_seed(4), &format!("http://{address}"), None);
    let tasks = OwnTasks::default();
    let setup = Setup {
        flags: (),
        fleet: None,
        config: Config::default(),
        folder: &folder,
        files: ServiceFiles::open(database.clone()).await.expect("the store answers"),
        clock: clock.clone(),
        random: Random::from_seed(3),
        passes: passes.clone(),
        tasks: tasks.clone(),
    };
    let (handlers, executor, mut background, page) = compose(setup).into_parts();
    let random = Random::from_seed(1);
    let keyring = KeyRing::new(&names.salt, &[7; 32], random.clone());
    let directory = (database.clone(), keyring.clone(), clock.clone());
    let registry = Registry::open(
        directory.0,
        Offer { catalogue: H::CATALOGUE, toolsets, answers_bridges: false },
        names.keys,
        directory.1,
        directory.2,
        Random::from_seed(2),
        None,
    );
    let registry = registry.await.expect("an empty store");
    let data = OpenedData { registry, keyring, database: database.clone(), shared: None, clock };
    let (audit, max_in_flight) = (AuditOptions::default(), TASKS_MAX);
    let core = Core { executor, folder: &folder, data: &data, random, audit, max_in_flight };
    let (pipeline, engine, _) = core.compose(handlers).await.expect("an empty store");
    tasks.begin(&engine);
    let OpenedData { registry, keyring: _, database: _, shared: _, clock } = data;
    let driven = Arc::clone(&engine);
    let runner = Background::start("the engine", AT_ONCE, |stopped| driven.run(stopped));
    let audit_handle = pipeline.audit_handle();
    let judge = (registry.access(), H::CATALOGUE, clock.clone());
    let keeping = keep_passes(passes.clone(), judge, audit_handle.clone(), Box::pin(pending()));
    let page = page.map(|page| OfferedPage { page, passes });
    let process = ServerProcess { version: names.version, base: "", id: 7, toolsets };
    let policy = HostOriginPolicy::new(address, None, &[], &["https://allowed.example".into()]).expect("a policy");
    let endpoint = Arc::new(Endpoint::new(pipeline, policy, Limits::default(), process).with_page(page));
    let limiter = ConnectionLimiter::new(Limits::default());
    let serving = edge::serve(listener, Arc::clone(&endpoint), limiter, None, pending());
    let edge = Background::start("the edge", AT_ONCE, |stopped| until(stopped, serving));
    background.push(Box::pin(keeping));
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
    #[expect(clippy::expect_used, reason = "a test without an answer must fail")]
    pub async fn call(&self, key: &Key, tool: &str, arguments: Value) -> Result<Value, Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let request = Request::post(&self.url).header("content-type", "application/json");
        let request = request.header("x-api-key", &key.id).header("x-api-secret", &key.secret);
        let client = HttpClient::to(&self.url.parse().expect("a URL")).expect("a client");
        let answer = client.exchange(request.body(body).expect("a request"), EXCHANGE).await.expect("an answer");
        let mut answer: Value = json::read_bytes(answer.body()).expect("JSON");
        if !answer["error"].is_null() {
            return Err(answer["error"]["data"].take());
        }
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().expect("a result has text");
        let value = json::read(text).expect("JSON");
        if result["isError"] == true { Err(value) } else { Ok(value) }
    }

    /// Advances the manual clock second by second. `reader` is the tool that reads tasks.
    ///
    /// While the executor works, such as on an exchange with an upstream, the clock goes no faster
    /// than the real one.
    #[expect(clippy::panic, clippy::expect_used, reason = "a test without the end of its task must fail")]
    pub async fn end(&self, key: &Key, reader: &str, task: &Value) -> Value {
        for _ in 0..3_600 {
            let arguments = json!({"task_id": task["task_id"], "wait_seconds": 0});
            let task = self.call(key, reader, arguments).await.expect("a task");
            if task["terminal"] == true {
                return task;
            }
            let rest = async {
                while !self.engine.rests() {
                    sleep(LOOK_AGAIN).await;
                }
            };
            let _ = timeout(SECOND, rest).await;
            self.clock.advance(SECOND);
        }
        panic!("the task does not end: {task}");
    }

    /// Stops in order. Returns its data, for [`start_on`].
    pub async fn stop(self) -> Arc<Memory> {
        let Self { edge, store, .. } = self;
        edge.stop().await;
        store
    }

    /// Returns the audit trail after a stop, without the lines that seal it.
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
