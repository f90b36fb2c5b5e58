//! The adapter of phones behind an adb server, against the double: a separate program with its own
//! time.

mod agent;
mod screen;

use super::{Lab, files};
use adapter_suite::{Double, Mishap, OPERATIONS, Operation, PhoneDeed};
use async_trait::async_trait;
use cloudphone::adapter_kit::host_program::HostProgram;
use cloudphone::phones::contract::{DeviceId, DeviceState};
use cloudphone::phones::port::{CheckPort, Platform, PlatformName, ReadPort, WritePort};
use cloudphone::platforms::adb::{Adb, AdbAddress, AdbPrograms, AdbSettings, PowerPrograms, ProxyPrograms};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;
use toolwarrant::handler::Flag;
use toolwarrant::{Clock, Random, Timestamp};

/// The ratio of the service's time to the double's.
const FASTER: u32 = 5;

const TIMES: [&str; 8] =
    ["--set", "restart_ms=500", "--set", "online_ms=200", "--set", "power_ms=200", "--set", "task_ms=100"];

/// A table needs a phone for each of its cases and its operations, and one more. All are read all
/// the time.
type Rack = Lab<Adb>;

async fn rack(phones: u32, shown: bool) -> Arc<Rack> {
    Lab::new("rack", phones, &TIMES, shown).await
}

impl Rack {
    fn make(&self, clock: &Clock, programs: AdbPrograms) -> Arc<Adb> {
        let adapter = Arc::new(self.build(clock, programs));
        self.run(adapter.keep_fresh());
        adapter
    }

    fn build(&self, clock: &Clock, programs: AdbPrograms) -> Adb {
        let settings = AdbSettings {
            server: AdbAddress::Tcp(self.platform.adb()),
            power_seconds: 15,
            proxy_seconds: 10,
            programs,
            ..AdbSettings::every_phone()
        };
        Adb::new(self.name(), settings, self.readings(), &files(), (clock.clone(), &Random::System))
    }

    /// Runs a command on the first phone that this server does not know of.
    async fn run_on_phone(&self, script: &str) -> String {
        let mut stream = TcpStream::connect(self.platform.adb()).await.expect("the double listens");
        for service in [format!("host:transport:{}", self.codes[0]), format!("shell,v2,raw:{script}")] {
            stream.write_all(format!("{:04x}{service}", service.len()).as_bytes()).await.expect("sent");
            stream.read_exact(&mut [0; 4]).await.expect("accepted");
        }
        let mut frames = Vec::new();
        stream.read_to_end(&mut frames).await.expect("its end");
        String::from_utf8_lossy(&frames).into_owned()
    }

    fn program(&self, action: &str) -> HostProgram {
        HostProgram::parse(&self.platform.program(action)).expect("a program")
    }

    /// Reads the own addresses: until then, an address may be that of any phone.
    async fn read_addresses(&self) {
        for code in &self.codes {
            self.read_address(&self.id(code)).await;
        }
    }

    /// On a busy machine, a request of the phone may miss its time.
    async fn read_address(&self, id: &DeviceId) {
        while self.own_adapter().renew_address(id).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns `None` if phones cannot have this fault.
fn switches(operation: Operation, fault: Mishap) -> Option<Value> {
    let action = match operation {
        Operation::SetProxy | Operation::SetSecretProxy => "set-proxy",
        Operation::ClearProxy => "clear-proxy",
        Operation::Restart => "restart",
        Operation::Shutdown => "stop",
        Operation::BootStopped if !matches!(fault, Mishap::None | Mishap::LosesAnswer | Mishap::Swallows) => {
            return None;
        }
        Operation::Boot | Operation::BootStopped => "start",
        // It is refused before anything is asked.
        Operation::Session if fault == Mishap::None => return Some(json!({})),
        Operation::Session => return None,
    };
    match (fault, operation) {
        // A status of 0 or another one is all that phones and programs report.
        (Mishap::ActsAndRefuses | Mishap::Unsure | Mishap::GivesUp, _) => None,
        // Only a phone has frames that can be cut.
        (Mishap::CutsAnswer, Operation::Restart) => super::switches(action, operation, fault),
        // No platform shows another address.
        (Mishap::CutsAnswer | Mishap::LeavesThroughApp, _) => None,
        (Mishap::NeverEnds, _) => Some(json!({"task_never_ends": true, "effect": "always"})),
        // The phone answers, and cannot make requests.
        (Mishap::CannotBeRead, Operation::SetProxy | Operation::SetSecretProxy | Operation::ClearProxy) => {
            Some(json!({"tools": []}))
        }
        _ => super::switches(action, operation, fault),
    }
}

#[async_trait]
impl Double for Rack {
    fn adapter(&self, clock: &Clock) -> (PlatformName, Arc<dyn Platform>) {
        let programs = || AdbPrograms {
            restart: None,
            power: Some(PowerPrograms {
                start: self.program("start"),
                stop: self.program("stop"),
                status: self.program("status"),
            }),
            proxy: Some(ProxyPrograms { set: self.program("set-proxy"), clear: self.program("clear-proxy") }),
        };
        (self.name(), self.adapter.get_or_init(|| self.make(clock, programs())).clone())
    }

    async fn phones(&self) -> Vec<(DeviceId, String)> {
        self.wait_until_listed().await;
        self.codes.iter().map(|code| (self.id(code), code.clone())).collect()
    }

    fn lacks(&self, operation: Operation) -> bool {
        operation == Operation::Session
    }

    async fn stage(&self, operation: Operation, fault: Mishap) -> Option<DeviceId> {
        self.choose(fault)?;
        let switches = match (fault, operation, self.codes.last()) {
            (Mishap::ChangesPlaces, Operation::Restart, Some(spare)) => {
                json!({"adb_swaps_with": spare, "effect": "never"})
            }
            _ => switches(operation, fault)?,
        };
        self.wait_until_listed().await;
        self.addresses.get_or_init(|| self.read_addresses()).await;
        let (_spare, phones) = self.codes.split_last()?;
        let id = self.stage_one((operation, fault), &switches, phones).await;
        if switches.get("own_address").is_some() {
            self.read_address(&id).await;
        }
        Some(id)
    }

    async fn deeds(&self, id: &DeviceId) -> Vec<PhoneDeed> {
        self.list_deeds(id).await
    }

    async fn pass(&self, clock: &Clock) {
        const MOMENT: Duration = Duration::from_millis(20);
        // While the machine is so busy that phones do not answer, their readings have time.
        let spare = self.id(self.codes.last().expect("a phone"));
        if self.own_adapter().is_unread() {
            return sleep(MOMENT).await;
        }
        let _ = tokio::join!(sleep(MOMENT), self.own_adapter().boot_id(&spare));
        clock.advance(MOMENT * FASTER);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_behind_an_adb_server_breaks_a_promise() {
    let rack = rack(98, true).await;
    insta::assert_snapshot!(super::table(rack.clone(), OPERATIONS).await);
    for line in rack.platform.lines().await {
        let service = line["service"].as_str().unwrap_or_default();
        assert!(service.len() <= 4_000 && service != "host:transport:", "{service}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_proven_readings_no_missing_effect_is_refunded() {
    let operations = [Operation::SetProxy, Operation::Restart];
    let table = super::table(rack(24, false).await, &operations).await;
    assert!(!table.contains("failed_silent"), "{table}");
    insta::assert_snapshot!(table);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_phones_are_unknown_until_they_answer_and_all_others_run() {
    let (rack, clock) = (rack(12, false).await, Clock::manual(Timestamp(1)));
    Double::adapter(&*rack, &clock);
    rack.wait_until_listed().await;
    let (silent, others) = rack.codes.split_at(3);
    let read = |code: &String| rack.own_adapter().find_all(&[rack.id(code).as_str()]).expect("from memory").remove(0);
    let runs =
        |code: &String| read(code).state() == DeviceState::Running && read(code).offers.proxy.refusal().is_none();
    while !rack.codes.iter().all(runs) {
        rack.pass(&clock).await;
    }
    for (switches, answer) in [(json!({"shell": "hangs"}), false), (json!({}), true)] {
        for code in silent {
            rack.platform.switch(Some(code), &switches).await;
        }
        while !silent.iter().all(|code| runs(code) == answer) {
            rack.pass(&clock).await;
            others.iter().for_each(|code| assert!(runs(code), "{:#?}", read(code)));
        }
        for phone in silent.iter().map(read).filter(|_| !answer) {
            assert!(phone.state.is_none() && matches!(phone.offers.proxy, Flag::Passing(_)), "{phone:?}");
        }
    }
}
