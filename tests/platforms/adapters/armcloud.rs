//! The adapter of ARMCloud, VMOS Cloud and VSPhone, against the double: a separate program with its
//! own time.

use super::{Lab, files};
use crate::harness::double::KEYS;
use adapter_suite::{Double, Mishap, OPERATIONS, Operation, PhoneDeed};
use async_trait::async_trait;
use cloudphone::adapter_kit::guard::GuardLimits;
use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::port::{Platform, PlatformName};
use cloudphone::platforms::armcloud::api::{READ_WITHIN, WRITE_WITHIN};
use cloudphone::platforms::armcloud::{self, AccountKeys, ApiSettings, Armcloud, Family, Scheme};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::sleep;
use toolwarrant::Clock;
use toolwarrant::text::Secret;

/// Makes the cases end sooner, and leaves a reading some seconds.
const FASTER: u32 = 5;

/// Beside the looks at the platform's tasks. A command that is lost is sent up to three times.
const CALLS_MAX: usize = 24;

const TIMES: [&str; 6] = ["--set", "task_ms=200", "--set", "restart_ms=1000", "--set", "command_ms=50"];

/// A case takes one of eight pads.
type Account = Lab<Armcloud>;

async fn account(pads: u32, shown: bool) -> Arc<Account> {
    Lab::new("pads", pads, &TIMES, shown).await
}

impl Account {
    fn timing(&self) -> impl Iterator<Item = &String> {
        self.codes.iter().skip(6).step_by(8)
    }
}

fn endpoint(operation: Operation) -> &'static str {
    match operation {
        Operation::SetProxy | Operation::SetSecretProxy | Operation::ClearProxy => "setProxy",
        Operation::Restart => "restart",
        Operation::Shutdown => "timingPadOff",
        Operation::Boot | Operation::BootStopped => "timingPadOn",
        Operation::Session => "stsTokenByPadCode",
    }
}

/// Returns `None` if the platform does not have this fault.
fn switches(operation: Operation, fault: Mishap) -> Option<Value> {
    let has_task = matches!(endpoint(operation), "setProxy" | "restart");
    let is_known = operation != Operation::BootStopped || matches!(fault, Mishap::None | Mishap::LosesAnswer);
    let is_of_task = matches!(
        fault,
        Mishap::Swallows
            | Mishap::Fails
            | Mishap::FailsButActs
            | Mishap::Unsure
            | Mishap::GivesUp
            | Mishap::ActsLate
            | Mishap::NeverEnds
    );
    let is_of_phone = matches!(fault, Mishap::ActsAndRefuses | Mishap::CannotBeRead);
    let lacks = !is_known || is_of_task && !has_task || is_of_phone && operation == Operation::Session;
    (!lacks).then(|| super::switches(endpoint(operation), operation, fault)).flatten()
}

/// Sets the clock to the machine's, with which the double compares signatures.
fn keep_wall(clock: &Clock) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    clock.shift_wall(now.as_millis() as i64 - clock.wall().0 as i64);
}

#[async_trait]
impl Double for Account {
    fn adapter(&self, clock: &Clock) -> (PlatformName, Arc<dyn Platform>) {
        keep_wall(clock);
        let made = self.adapter.get_or_init(|| {
            let [(_, access), (_, secret)] = KEYS;
            let settings = ApiSettings {
                base_url: self.platform.url.parse().expect("a URL"),
                prefix: "/vcpcloud/api/padApi".to_owned(),
                family: Family::PadApi,
                scheme: Scheme::V2,
                read_within: READ_WITHIN,
                write_within: WRITE_WITHIN,
            };
            let keys = AccountKeys { access_key: access.to_owned(), secret_key: Secret::new(secret.to_owned()) };
            let account = armcloud::Account {
                settings,
                keys,
                limits: GuardLimits { concurrent: 64, per_second: 1_000, per_minute: 60_000 },
                on_off: Some(self.timing().cloned().collect()),
                power_seconds: 15,
                proxy_seconds: 10,
                shared_address: false,
                reads_through_proxy: false,
            };
            let adapter = Armcloud::new(self.name(), account, self.readings(), &files(), clock.clone());
            let adapter = Arc::new(adapter.expect("an account"));
            self.run(adapter.keep_fresh());
            adapter
        });
        (self.name(), made.clone())
    }

    async fn phones(&self) -> Vec<(DeviceId, String)> {
        self.wait_until_listed().await;
        let state = self.platform.get("state").await;
        let phone = |pad: &Value| {
            let [code, name] = ["pad_code", "name"].map(|key| pad[key].as_str().expect("a text"));
            (self.id(code), name.to_owned())
        };
        state["pads"].as_array().expect("pads").iter().map(phone).collect()
    }

    async fn stage(&self, operation: Operation, fault: Mishap) -> Option<DeviceId> {
        self.choose(fault)?;
        let switches = switches(operation, fault)?;
        self.wait_until_listed().await;
        let is_timing = matches!(operation, Operation::Shutdown | Operation::Boot | Operation::BootStopped);
        let (timing, ordinary) = (self.timing(), self.codes.iter().step_by(8));
        let pads: Vec<&String> = if is_timing { timing.collect() } else { ordinary.collect() };
        Some(self.stage_one((operation, fault), &switches, pads).await)
    }

    async fn deeds(&self, id: &DeviceId) -> Vec<PhoneDeed> {
        self.list_deeds(id).await
    }

    async fn pass(&self, clock: &Clock) {
        const MOMENT: Duration = Duration::from_millis(20);
        sleep(MOMENT).await;
        // While the machine is so busy that scripts on the pads do not end, they have time.
        self.platform.get("rest").await;
        clock.advance(MOMENT * FASTER);
        keep_wall(clock);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_of_armcloud_breaks_a_promise() {
    let account = account(1_024, true).await;
    insta::assert_snapshot!(super::table(account.clone(), OPERATIONS).await);
    // An operation that the platform has given up is final, and so is a refusal.
    let requests = account.platform.requests("").await;
    for (operation, fault, code) in account.staged.lock().expect("no panic").iter() {
        if matches!(fault, Mishap::Refuses | Mishap::ActsAndRefuses | Mishap::GivesUp | Mishap::Unsure) {
            let sent = |line: &&Value| line["pads"] == json!([code]) && line["endpoint"] != "asyncCmd";
            let is_write =
                |line: &&Value| !matches!(line["endpoint"].as_str(), Some("infos" | "userPadList" | "padTaskDetail"));
            let sends = requests.iter().filter(sent).filter(is_write).count();
            assert_eq!(sends, 1, "{operation:?} {fault:?}: {code}");
        }
        let calls = requests.iter().filter(|line| line["pads"] == json!([code])).count();
        assert!(calls <= CALLS_MAX, "{operation:?} {fault:?}: {calls} calls");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_proven_readings_no_missing_effect_is_refunded() {
    let table = super::table(account(128, false).await, &[Operation::SetProxy, Operation::Restart]).await;
    assert!(!table.contains("failed_silent"), "{table}");
    insta::assert_snapshot!(table);
}
