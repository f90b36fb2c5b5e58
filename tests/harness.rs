//! A server in this process, on a free port, with a clock that stands still, and helpers for calls
//! to it.

pub(crate) mod bridge;
pub(crate) mod double;
pub(crate) mod program;
pub(crate) mod revisions;
pub(crate) mod shop;
pub(crate) mod signed;
pub(crate) mod stream;
pub(crate) mod writes;

use crate::harness::shop::Mute;
use crate::house::root;
use cloudphone::OwnFlags;
use cloudphone::phones::contract::{CATALOGUE, Contract};
use cloudphone::phones::devices::Phones;
use cloudphone::phones::platforms::Platforms;
use cloudphone::phones::port::{Platform, PlatformName};
use cloudphone::phones::proxy_hosts::ProxyHosts;
use cloudphone::phones::writes::Writes;
use cloudphone::platforms::simulator::{CAST, Sim};
pub(crate) use kit::KeyPair as Key;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant::contract::{Catalogue, Handlers, PermissionSet, ToolDef};
use toolwarrant::tasks::Executor;
use toolwarrant::{Clock, Service, Setup};
use toolwarrant_reader::model;
use toolwarrant_testing::START;
use toolwarrant_testing::TestServer;
pub(crate) use toolwarrant_testing::{TASKS_MAX, Tenant};

pub(crate) struct Server {
    inner: TestServer,
    pub(crate) http: Client,
    _data: TempDir,
}

impl Deref for Server {
    type Target = TestServer;
    fn deref(&self) -> &TestServer {
        &self.inner
    }
}

pub(crate) async fn serve<H: Handlers>(
    parts: impl FnOnce(&Clock) -> (H, Arc<dyn Executor>),
    tenants: Vec<Tenant>,
) -> (Server, Vec<Vec<Key>>) {
    let compose = |setup: Setup<'_, ()>| {
        let (handlers, executor) = parts(&setup.clock);
        Service::with_executor(handlers, executor)
    };
    serve_service(&[], compose, tenants).await
}

/// Serves simulated phones with their screen page.
pub(crate) async fn serve_screens(tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    serve_page(12, tenants, |service| service).await
}

pub(crate) async fn serve_page(
    devices: u32,
    tenants: Vec<Tenant>,
    adapt: impl FnOnce(Service<Contract<Phones>>) -> Service<Contract<Phones>>,
) -> (Server, Vec<Vec<Key>>) {
    let compose = |Setup { clock, passes, .. }: Setup<'_, ()>| {
        let sim = Arc::new(Sim::new(1, devices, clock.clone(), &[1; 32]));
        let own = OwnFlags { allow_private_proxy: None, screen_minutes: 30 };
        adapt(cloudphone::service(alone(sim), own, clock, passes))
    };
    serve_service(&[], compose, tenants).await
}

pub(crate) async fn serve_service<H: Handlers>(
    toolsets: &[&str],
    compose: impl FnOnce(Setup<'_, ()>) -> Service<H>,
    tenants: Vec<Tenant>,
) -> (Server, Vec<Vec<Key>>) {
    let data = TempDir::new().expect("a temporary folder");
    let (clock, folder) = (Clock::manual(START), data.path().to_owned());
    let (inner, keys) = toolwarrant_testing::serve_toolsets(toolsets, clock, compose, tenants, folder).await;
    // A missing answer shows after a minute; this is the only time limit.
    let http = Client::builder().timeout(Duration::from_secs(60)).build().expect("a client");
    let keys = keys
        .into_iter()
        .map(|keys| keys.into_iter().map(|toolwarrant_testing::Key { id, secret }| Key { id, secret }).collect());
    (Server { inner, http, _data: data }, keys.collect())
}

pub(crate) async fn phones(tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    fleet(12, tenants).await
}

pub(crate) async fn fleet(devices: u32, tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    let (server, keys, _) = serve_simulated(devices, tenants).await;
    (server, keys)
}

/// Serves one phone for each part of the cast, to one key with all permissions.
pub(crate) async fn cast() -> (Server, Key, Arc<Sim>) {
    let (server, keys, sim) = serve_simulated(CAST.len() as u32, vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    (server, keys[0][0].clone(), sim)
}

pub(crate) async fn serve_simulated(devices: u32, tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>, Arc<Sim>) {
    let mut kept = None;
    let parts = |clock: &Clock| {
        let sim = Arc::new(Sim::new(1, devices, clock.clone(), &[1; 32]));
        kept = Some(sim.clone());
        both_sides(sim, clock)
    };
    let (server, keys) = serve(parts, tenants).await;
    (server, keys, kept.expect("it was made"))
}

/// Serves phones that never answer a write.
pub(crate) async fn mute_phones(tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    let sim = |clock: &Clock| Arc::new(Sim::new(1, 12, clock.clone(), &[1; 32]));
    serve(|clock| (both_sides(sim(clock), clock).0, Arc::new(Mute)), tenants).await
}

pub(crate) fn both_sides(platform: Arc<dyn Platform>, clock: &Clock) -> (Contract<Phones>, Arc<dyn Executor>) {
    let platforms = alone(platform);
    let phones = Phones::new(platforms.clone(), ProxyHosts::Public, clock.clone());
    let writes = Arc::new(Writes::new(platforms, phones.views()));
    (Contract(Arc::new(phones)), writes)
}

pub(crate) fn alone(platform: Arc<dyn Platform>) -> Arc<Platforms> {
    Arc::new(Platforms::default().with(PlatformName::parse("phone").expect("a name"), platform))
}

pub(crate) async fn open_phones() -> (Server, Key) {
    let (server, keys) = phones(vec![Tenant::with(PermissionSet(u64::MAX))]).await;
    (server, keys[0][0].clone())
}

impl Server {
    pub(crate) fn post(&self, key: &Key) -> RequestBuilder {
        let request = self.http.post(&self.url).header("content-type", "application/json");
        request.header("x-api-key", &key.id).header("x-api-secret", &key.secret)
    }

    pub(crate) async fn send(&self, key: &Key, body: impl Into<reqwest::Body>) -> (u16, Value) {
        read(self.post(key).body(body).send().await.expect("an answer")).await
    }

    pub(crate) async fn rpc(&self, key: &Key, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, answer) = self.send(key, body.to_string()).await;
        assert_eq!((status, &answer["jsonrpc"], &answer["id"]), (200, &json!("2.0"), &json!(1)), "{answer}");
        answer
    }

    pub(crate) async fn call(&self, key: &Key, tool: &str, arguments: Value) -> Result<Value, Value> {
        let answer = self.rpc(key, "tools/call", json!({"name": tool, "arguments": arguments})).await;
        outcome(&answer)
    }

    pub(crate) async fn audit(self) -> String {
        self.inner.into_audit().await
    }

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

    pub(crate) async fn list(&self, key: &Key) -> Vec<Value> {
        let answer = self.rpc(key, "tools/list", json!({})).await;
        answer["result"]["tools"].as_array().cloned().unwrap_or_default()
    }
}

pub(crate) async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = response.bytes().await.expect("a whole body");
    let json = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).expect("JSON") };
    (status, json)
}

pub(crate) fn outcome(answer: &Value) -> Result<Value, Value> {
    kit::outcome(answer).expect("an answer of a tool")
}

/// Writes each member of an object on a line.
pub(crate) fn members(object: &Value) -> String {
    let members = object.as_object().expect("an object").iter();
    members.map(|(name, value)| format!("{name}: {value}\n")).collect()
}

pub(crate) fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
}

/// Reads the contract in a folder of the repository.
pub(crate) fn contract(folder: &str) -> model::Contract {
    toolwarrant_reader::load(&root().join(folder)).unwrap_or_else(|report| panic!("{report}"))
}

pub(crate) fn tools_with(permission: &str) -> Vec<&'static str> {
    let granted = CATALOGUE.permissions.iter().find(|known| known.name == permission).expect("a permission").grants;
    let callable = base_tools(&CATALOGUE).filter(|tool| granted.covers(tool.permission.bit));
    callable.map(|tool| tool.name).collect()
}

/// Returns the tools that a server without toolsets offers.
pub(crate) fn base_tools(catalogue: &'static Catalogue) -> impl Iterator<Item = &'static ToolDef> {
    catalogue.tools.iter().filter(|tool| tool.toolset.is_none())
}

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
