//! The suite that every adapter must pass, run on each adapter of the product, with a table of the
//! ends.

mod adb;
mod armcloud;
mod simulated;

use crate::harness::double::Double as Platform;
use adapter_suite::{CaseEnd, Double, Mishap, Operation, PhoneDeed, run};
use cloudphone::adapter_kit::readings::PhoneReadings;
use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::port::{CheckPort, Direction, ReadPort};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolwarrant::Random;
use toolwarrant::files::ServiceFiles;
use toolwarrant::http::{CallbackListener, CallbackPaths};
use toolwarrant_memory::Memory;

/// The double derives it from the proxy of the cases.
const PROXY_EXIT: &str = "127.222.232.120";

/// A double, its adapter, and the callback listener of that.
struct Lab<A> {
    platform: Platform,
    codes: Vec<String>,
    /// The readings were proven to follow the truth.
    shown: bool,
    adapter: OnceLock<Arc<A>>,
    echo: (CallbackPaths, String),
    background: Mutex<JoinSet<()>>,
}

impl<A: ReadPort + CheckPort> Lab<A> {
    async fn new(phones: u32, times: &[&str], shown: bool) -> Self {
        let platform = Platform::start(phones, times).await;
        let (listener, paths) =
            CallbackListener::bind("127.0.0.1:0".parse().expect("an address"), Random::System).expect("a port");
        let url = format!("http://{}", listener.address().expect("an address"));
        let (codes, background) = (platform.codes().await, Mutex::default());
        let lab = Self { platform, codes, shown, adapter: OnceLock::new(), echo: (paths, url), background };
        lab.run(listener.serve(std::future::pending()));
        lab
    }

    fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.background.lock().expect("no panic").spawn(work);
    }

    fn own_adapter(&self) -> &Arc<A> {
        self.adapter.get().expect("the adapter is made first")
    }

    fn readings(&self) -> PhoneReadings {
        let (paths, url) = &self.echo;
        let echo = Some((paths.clone(), url.parse().expect("a URL")));
        PhoneReadings { echo, random: Random::System, by_server: None }
    }

    async fn wait_until_listed(&self) {
        while self.own_adapter().is_unread() {
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn record(&self, id: &DeviceId) {
        for direction in [Direction::Exit, Direction::Start].into_iter().filter(|_| self.shown) {
            self.own_adapter().record(direction, id).await.expect("recorded");
        }
    }
}

fn files() -> ServiceFiles {
    ServiceFiles { store: Arc::new(Memory::default()), found: Arc::default() }
}

/// Returns `None` if phones cannot have this fault.
fn switches(endpoint: &str, operation: Operation, fault: Mishap) -> Option<Value> {
    const FOREVER: u64 = 3_600_000;
    let only = |value: Value| json!({"value": value, "endpoint": endpoint});
    let has_proxy = matches!(operation, Operation::SetProxy | Operation::SetSecretProxy);
    let mut set = match fault {
        Mishap::None => json!({}),
        Mishap::Refuses => json!({"code": only(json!(110_014))}),
        Mishap::ActsAndRefuses => json!({"code_after_acting": only(json!(1_218))}),
        Mishap::SaysNothing => json!({"stall_ms": only(json!(FOREVER))}),
        Mishap::LosesCommand => json!({"drop_before_acting": only(json!(true))}),
        Mishap::LosesAnswer => json!({"drop_after_acting": only(json!(true))}),
        Mishap::CutsAnswer => json!({"half_body": only(json!(true))}),
        Mishap::Swallows => json!({"effect": only(json!("never"))}),
        Mishap::Fails => json!({"task_end": only(json!(-1))}),
        Mishap::FailsButActs => json!({"task_end": only(json!(-1)), "effect": only(json!("always"))}),
        Mishap::Unsure => json!({"task_end": only(json!(-4)), "effect": only(json!("always"))}),
        Mishap::GivesUp => json!({"task_end": only(json!(-4))}),
        Mishap::ShowsOnly if operation == Operation::Boot => json!({"effect": only(json!("show")), "power_ms": 200}),
        Mishap::ActsLate => json!({"effect_late_ms": only(json!(1_500))}),
        Mishap::NeverEnds => json!({"task_never_ends": only(json!(true))}),
        Mishap::CannotBeRead => json!({"shell": "silent"}),
        Mishap::IgnoresProxy if has_proxy => json!({"shell_ignores_proxy": true}),
        Mishap::ProxyIsDead if has_proxy => json!({"proxy_dead": true}),
        Mishap::ProxyLies if has_proxy => json!({"proxy_lies": "203.0.113.7"}),
        Mishap::Rotates if has_proxy => json!({"proxy_rotates": true}),
        Mishap::Forwarded if has_proxy => json!({"forwarder": "127.99.0.1", "effect": only(json!("never"))}),
        Mishap::SharesProxyAddress if has_proxy => {
            json!({"own_address": PROXY_EXIT, "effect": only(json!("never"))})
        }
        // Each of the two operations that set a proxy is the other's neighbour.
        Mishap::LeavesThroughNeighbour if has_proxy => {
            json!({"own_address": "127.99.0.2", "shell_ignores_proxy": true})
        }
        Mishap::LeavesThroughApp if has_proxy => {
            let own = if operation == Operation::SetProxy { "127.99.0.3" } else { "127.99.0.4" };
            json!({"own_address": own, "public_address": "127.99.0.5", "shell_ignores_proxy": true})
        }
        Mishap::ShowsOnly
        | Mishap::ChangesPlaces
        | Mishap::IgnoresProxy
        | Mishap::ProxyIsDead
        | Mishap::ProxyLies
        | Mishap::Rotates
        | Mishap::Forwarded
        | Mishap::SharesProxyAddress
        | Mishap::LeavesThroughNeighbour
        | Mishap::LeavesThroughApp => return None,
    };
    if operation == Operation::SetSecretProxy {
        set["proxy_login"] = json!("user:open-sesame");
    }
    Some(set)
}

async fn deeds(platform: &Platform, code: &str) -> Vec<PhoneDeed> {
    let deed = |line: Value| match (line["operation"].as_str()?, &line["proxy"]) {
        ("restart", _) => Some(PhoneDeed::Restarted),
        ("power_on", _) => Some(PhoneDeed::Booted),
        ("power_off", _) => Some(PhoneDeed::Stopped),
        ("set_proxy", Value::Null) => Some(PhoneDeed::ProxyCleared),
        ("set_proxy", proxy) => {
            let (host, port) = (proxy["host"].as_str()?.to_owned(), proxy["port"].as_u64()?);
            Some(PhoneDeed::ProxySet { host, port: u16::try_from(port).ok()? })
        }
        _ => None,
    };
    platform.journal("did", code).await.into_iter().filter_map(deed).collect()
}

async fn table(double: Arc<dyn Double>, operations: &[Operation]) -> String {
    let rows = run(double, operations).await;
    let broken: Vec<&CaseEnd> = rows.iter().filter(|row| !row.violations.is_empty()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    rows.iter().map(|row| format!("{row}\n")).collect()
}
