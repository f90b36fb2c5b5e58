//! A server for tests that runs in the process of the test. It has a free port, a clock that the test moves, and a store in memory.

use crate::service::{Service, Setup, required};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use toolwarrant_core::access::Grants;
use toolwarrant_core::audit::{Audit, AuditHandle, AuditParts, is_chain_line};
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_core::clock::{Clock, Timestamp};
use toolwarrant_core::keyring::KeyRing;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Pipeline};
use toolwarrant_core::random::Random;
use toolwarrant_core::registry::{NewApplication, NewKey, Registry};
use toolwarrant_http::edge::{self, ConnectionLimiter, HostOriginPolicy, Limits};
use toolwarrant_http::{Endpoint, Router};
use toolwarrant_operator::data::{AUDIT, DataFolder};
use toolwarrant_operator::{Background, Config, Names};
use toolwarrant_store::memory::Memory;
use toolwarrant_tasks::engine::{Engine, Parts};

/// The time at which the clock of a test server starts.
pub const START: Timestamp = Timestamp(1_800_000_000_000);

/// Maximum number of tasks in flight.
pub const TASKS_MAX: usize = 200;

/// A running server. It ends when it is dropped.
pub struct TestServer {
    /// The endpoint: `http://127.0.0.1:PORT/mcp`.
    pub url: String,
    /// The address that it listens on.
    pub address: SocketAddr,
    /// What it serves, for requests that need no connection.
    pub router: Router,
    /// The clock, which stands still until the test moves it.
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
    _background: Background,
    task: JoinHandle<()>,
    runner: JoinHandle<()>,
    _folder: DataFolder,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
        self.runner.abort();
    }
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

/// Starts a server for `tenants`, with its data in `folder`. Returns the server and the keys of each tenant.
///
/// # Panics
/// There is no free port, or the folder cannot be used.
#[expect(clippy::expect_used, reason = "a test without its server must fail")]
pub async fn serve<H: Handlers, C>(
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H, C>,
    tenants: Vec<Tenant>,
    folder: PathBuf,
) -> (TestServer, Vec<Vec<Key>>) {
    let clock = Clock::manual(START);
    let names = Names::of("test", "0");
    let folder = DataFolder::open(&folder, &names).expect("a folder");
    let setup = Setup {
        flags: (),
        config: Config::default(),
        folder: &folder,
        clock: clock.clone(),
        random: Random::seeded(3),
    };
    let Service { handlers, executor, background, .. } = compose(setup);
    let (store, random) = (Arc::new(Memory::default()), Random::seeded(1));
    let keyring = KeyRing::new(&names.salt, &[7; 32], random.clone());
    let parts = Parts {
        store: store.clone(),
        executor: required(executor, H::CATALOGUE).expect("an executor"),
        keyring: keyring.clone(),
        clock: clock.clone(),
        random,
        max_in_flight: TASKS_MAX,
    };
    let engine = Engine::start(parts).await.expect("an empty store");
    let runner = tokio::spawn(Arc::clone(&engine).run(std::future::pending()));
    let trail = folder.join(AUDIT);
    let (key, anchor) = (keyring.chain_key(), None);
    let parts = AuditParts { folder: &trail, key, clock: clock.clone(), anchor };
    let audit = Audit::start(parts).expect("an audit");
    let audit_handle = audit.handle();
    let registry = Registry::open(store.clone(), H::CATALOGUE, names.keys, keyring, clock.clone(), Random::seeded(2));
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
    let policy = HostOriginPolicy::new(address, None, &[], &["https://allowed.example".into()]).expect("a policy");
    let nonces = Nonces::starting(clock.clone(), []);
    let pipeline = Pipeline::new(handlers, registry.access(), audit, engine.clone(), nonces, clock.clone());
    let endpoint = Arc::new(Endpoint::new(pipeline, policy, Limits::default(), "", 7));
    let task = tokio::spawn(edge::serve(
        listener,
        Arc::clone(&endpoint),
        ConnectionLimiter::new(Limits::default()),
        None,
        std::future::pending(),
    ));
    let url = format!("http://{address}/mcp");
    let server = TestServer {
        url,
        address,
        router: endpoint.router(),
        clock,
        engine,
        store,
        registry,
        audit: trail,
        audit_handle,
        _background: Background::start(background),
        task,
        runner,
        _folder: folder,
    };
    (server, keys)
}

impl TestServer {
    /// Stops the server and returns its complete audit trail, without the lines that seal it.
    ///
    /// # Panics
    /// The trail cannot be read.
    #[expect(clippy::expect_used, reason = "a test without its audit trail must fail")]
    pub async fn into_audit(mut self) -> String {
        self.task.abort();
        let _ = (&mut self.task).await;
        // The last copy of the endpoint stops the writer of the audit.
        self.router = Router::new();
        let mut files: Vec<_> = std::fs::read_dir(&self.audit).expect("a folder").flatten().collect();
        files.sort_by_key(std::fs::DirEntry::path);
        let text: String = files.iter().map(|file| std::fs::read_to_string(file.path()).expect("text")).collect();
        text.split_inclusive('\n').filter(|line| !is_chain_line(line.as_bytes())).collect()
    }
}
