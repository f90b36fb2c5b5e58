//! The adapter of phones behind an adb server, against the double.

use crate::doubles::adb::{AdbDouble, PhoneMood};
use adapter_suite::{Double, Mishap, OPERATIONS, Operation, PhoneDeed};
use cloudphone::adapter_kit::readings::PhoneReadings;
use cloudphone::phones::contract::{DeviceId, DeviceState};
use cloudphone::phones::port::{Control, Direction, PlatformName, Upstream};
use cloudphone::platforms::adb::{Adb, AdbAddress, AdbPrograms, AdbSettings};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolwarrant::{BoxFuture, Clock, Random};

/// The number of phones, which exceeds the number of cases.
const PHONES: usize = 48;

/// The ratio of the service's time to the double's.
const FASTER: u32 = 5;

struct Rack {
    server: AdbDouble,
    /// True if each phone's start was seen to follow a restart.
    shown: bool,
    adapter: OnceLock<Arc<Adb>>,
    taken: AtomicUsize,
    background: Mutex<JoinSet<()>>,
    folder: TempDir,
}

impl Rack {
    async fn new(shown: bool) -> Arc<Self> {
        Arc::new(Self {
            server: AdbDouble::start((0..PHONES).map(|n| format!("phone-{n}"))).await,
            shown,
            adapter: OnceLock::new(),
            taken: AtomicUsize::new(0),
            background: Mutex::default(),
            folder: TempDir::new().expect("a temporary folder"),
        })
    }
}

/// Returns the behaviour with this fault, or `None` if phones cannot have it.
fn mood(operation: Operation, fault: Mishap) -> Option<PhoneMood> {
    // Everything else is refused before anything is asked.
    if operation != Operation::Restart && fault != Mishap::None {
        return None;
    }
    Some(match fault {
        Mishap::None => PhoneMood::Sound,
        Mishap::Refuses => PhoneMood::SilentToCommands,
        Mishap::LosesCommand => PhoneMood::LosesCommand,
        Mishap::LosesAnswer => PhoneMood::LosesAnswer,
        Mishap::CutsAnswer => PhoneMood::CutsAnswer,
        Mishap::Swallows => PhoneMood::Swallows,
        Mishap::Fails => PhoneMood::Fails,
        Mishap::FailsButActs => PhoneMood::FailsButActs,
        Mishap::ActsLate => PhoneMood::ActsLate,
        Mishap::NeverEnds => PhoneMood::NeverEnds,
        Mishap::CannotBeRead => PhoneMood::Silent,
        Mishap::ActsAndRefuses | Mishap::Unsure | Mishap::GivesUp | Mishap::ShowsOnly => return None,
        Mishap::IgnoresProxy | Mishap::ProxyLies | Mishap::Rotates => return None,
    })
}

impl Double for Rack {
    fn adapter(&self, clock: &Clock) -> Arc<dyn Control> {
        let made = self.adapter.get_or_init(|| {
            let settings = AdbSettings {
                server: AdbAddress::Tcp(self.server.address),
                only: vec!["*".parse().expect("a pattern")],
                names: [].into(),
                connect: Vec::new(),
                region: None,
                power_seconds: 15,
                proxy_seconds: 15,
                programs: AdbPrograms::default(),
            };
            let name = PlatformName::parse("rack").expect("a name");
            let readings = PhoneReadings::new(None, Random::System);
            let adapter = Adb::new(name, settings, readings, self.folder.path(), (clock.clone(), &Random::System));
            let adapter = Arc::new(adapter.expect("a folder"));
            self.background.lock().expect("no panic").spawn(adapter.keep_fresh());
            adapter
        });
        made.clone()
    }

    fn stage(&self, operation: Operation, fault: Mishap) -> BoxFuture<'_, Option<DeviceId>> {
        Box::pin(async move {
            let mood = mood(operation, fault)?;
            let adapter = self.adapter.get().expect("the adapter is made first");
            while !adapter.unread().is_empty() {
                sleep(Duration::from_millis(20)).await;
            }
            let serial = format!("phone-{}", self.taken.fetch_add(1, Relaxed));
            let id = DeviceId::new(&format!("rack-{serial}")).expect("an id");
            self.server.set_mood(&serial, mood);
            if mood == PhoneMood::Silent {
                adapter.read_anew(&id).await.expect("the server answers");
            }
            if self.shown {
                adapter.record(Direction::Start, &id).await.expect("recorded");
            }
            Some(id)
        })
    }

    fn deeds<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Vec<PhoneDeed>> {
        let serial = id.as_str().strip_prefix("rack-").expect("a phone of the rack");
        let deeds = vec![PhoneDeed::Restarted; self.server.restarts(serial) as usize];
        Box::pin(async { deeds })
    }

    fn pass<'a>(&'a self, clock: &'a Clock) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            const MOMENT: Duration = Duration::from_millis(20);
            sleep(MOMENT).await;
            clock.advance(MOMENT * FASTER);
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_behind_an_adb_server_breaks_a_promise() {
    let rack = Rack::new(true).await;
    insta::assert_snapshot!(super::table(rack.clone(), &OPERATIONS).await);
    for service in rack.server.services() {
        assert!(service.len() <= 4_000 && service != "host:transport:", "{service}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_restart_that_was_seen_no_missing_effect_is_refunded() {
    let table = super::table(Rack::new(false).await, &[Operation::Restart]).await;
    assert!(!table.contains("failed_silent"), "{table}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_phones_are_unknown_with_their_reason_and_all_others_run() {
    let rack = Rack::new(false).await;
    for n in (0..PHONES).step_by(4) {
        rack.server.set_mood(&format!("phone-{n}"), PhoneMood::Silent);
    }
    let adapter = rack.adapter(&Clock::system());
    while !adapter.unread().is_empty() {
        sleep(Duration::from_millis(20)).await;
    }
    let phones = adapter.list_page(None, 100).expect("from memory");
    let (running, silent): (Vec<_>, Vec<_>) = phones
        .iter()
        .partition(|phone| phone.state() == DeviceState::Running && phone.offers.power.refusal().is_none());
    assert_eq!((running.len(), silent.len()), (PHONES - PHONES / 4, PHONES / 4));
    for phone in silent {
        assert_eq!((phone.state, phone.offers.power.refusal()), (None, Some("the phone does not answer")));
    }
}
