//! The suite that every adapter must pass, run on each adapter of the product, with a table of the
//! ends.

mod adb;
mod armcloud;
mod simulated;

use crate::harness::double::Double as Platform;
use adapter_suite::{CaseEnd, Double, Mishap, Operation, PhoneDeed, run};
use cloudphone::adapter_kit::readings::PhoneReadings;
use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::port::{CheckPort, Direction, PlatformName, ReadPort};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::OnceCell;
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
    name: &'static str,
    platform: Platform,
    codes: Vec<String>,
    /// The readings were proven to follow the truth.
    shown: bool,
    adapter: OnceLock<Arc<A>>,
    addresses: OnceCell<()>,
    staged: Mutex<Vec<(Operation, Mishap, String)>>,
    echo: (CallbackPaths, String),
    background: Mutex<JoinSet<()>>,
}

impl<A: ReadPort + CheckPort> Lab<A> {
    async fn new(name: &'static str, phones: u32, times: &[&str], shown: bool) -> Arc<Self> {
        let platform = Platform::start(phones, times).await;
        let (listener, paths) =
            CallbackListener::bind("127.0.0.1:0".parse().expect("an address"), Random::System).expect("a port");
        let url = format!("http://{}", listener.address().expect("an address"));
        let (codes, echo) = (platform.codes().await, (paths, url));
        let (adapter, addresses, staged, background) = Default::default();
        let lab = Self { name, platform, codes, shown, adapter, addresses, staged, echo, background };
        lab.run(listener.serve(std::future::pending()));
        Arc::new(lab)
    }

    fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.background.lock().expect("no panic").spawn(work);
    }

    fn name(&self) -> PlatformName {
        PlatformName::parse(self.name).expect("a name")
    }

    fn id(&self, code: &str) -> DeviceId {
        DeviceId::new(&format!("{}-{}", self.name, code.to_lowercase())).expect("an id")
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

    /// Returns `None` if the case ends as it does with proven readings.
    fn choose(&self, fault: Mishap) -> Option<()> {
        let depends = matches!(
            fault,
            Mishap::None
                | Mishap::LosesCommand
                | Mishap::Swallows
                | Mishap::GivesUp
                | Mishap::ActsLate
                | Mishap::CannotBeRead
                | Mishap::Rotates
                | Mishap::ChangesPlaces
                | Mishap::IgnoresProxy
        );
        (self.shown || depends).then_some(())
    }

    /// Gives the fault to the first of these phones that has none.
    async fn stage_one(
        &self,
        (operation, fault): (Operation, Mishap),
        switches: &Value,
        phones: impl IntoIterator<Item = &String>,
    ) -> DeviceId {
        let code = {
            let mut staged = self.staged.lock().expect("no panic");
            let is_free = |code: &&String| staged.iter().all(|(.., other)| other != *code);
            let code = phones.into_iter().find(is_free).expect("there are more phones than cases");
            staged.push((operation, fault, code.clone()));
            code
        };
        let (id, adapter) = (self.id(code), self.own_adapter());
        for direction in [Direction::Exit, Direction::Start].into_iter().filter(|_| self.shown) {
            adapter.record(direction, &id).await.expect("recorded");
        }
        if fault == Mishap::ShowsOnly || operation == Operation::BootStopped {
            self.platform.post(&format!("pads/{code}/act/stop")).await.expect("it stops");
        }
        self.platform.switch(Some(code), switches).await;
        // The server uses a reading for two seconds, and so perhaps one from before the fault.
        adapter.read_anew(&id).await.expect("the platform answers");
        id
    }

    async fn list_deeds(&self, id: &DeviceId) -> Vec<PhoneDeed> {
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
        let code = self.codes.iter().find(|code| self.id(code) == *id).expect("a phone of the double");
        self.platform.journal("did", code).await.into_iter().filter_map(deed).collect()
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
        Mishap::ShowsOnly | Mishap::ChangesPlaces | Mishap::IgnoresProxy | Mishap::ProxyIsDead => return None,
        Mishap::ProxyLies | Mishap::Rotates | Mishap::Forwarded | Mishap::SharesProxyAddress => return None,
        Mishap::LeavesThroughNeighbour | Mishap::LeavesThroughApp => return None,
    };
    if operation == Operation::SetSecretProxy {
        set["proxy_login"] = json!("user:open-sesame");
    }
    Some(set)
}

async fn table(double: Arc<dyn Double>, operations: &[Operation]) -> String {
    let rows = run(double, operations).await;
    let broken: Vec<&CaseEnd> = rows.iter().filter(|row| !row.violations.is_empty()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    rows.iter().map(|row| format!("{row}\n")).collect()
}
