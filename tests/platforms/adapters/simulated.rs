//! The simulated phones, which are their own double.

use adapter_suite::{Double, Mishap, OPERATIONS, Operation, PhoneDeed};
use async_trait::async_trait;
use cloudphone::phones::contract::{Command, DeviceId, PowerAction};
use cloudphone::phones::port::{Platform, PlatformName, ReadPort};
use cloudphone::platforms::simulator::{Part, Sim};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use toolwarrant::{Clock, Timestamp};

const PHONES: u32 = 5_000;

/// A false statement of the double about its platform. To the suite, it looks as if the adapter
/// were wrong.
#[derive(Clone, Copy, Default, PartialEq)]
enum Lie {
    #[default]
    None,
    OneMorePhone,
    OtherName,
    LacksRestart,
}

#[derive(Default)]
struct Simulated {
    lie: Lie,
    sim: OnceLock<Arc<Sim>>,
    taken: Mutex<HashMap<String, usize>>,
}

impl Simulated {
    fn sim(&self) -> &Arc<Sim> {
        self.sim.get().expect("the adapter is made first")
    }
}

fn part(fault: Mishap) -> Option<Part> {
    Some(match fault {
        Mishap::None => Part::Plain,
        Mishap::Refuses => Part::Refusing,
        Mishap::LosesCommand => Part::LosingCommands,
        Mishap::LosesAnswer => Part::LosingAnswers,
        Mishap::Swallows => Part::Swallowing,
        Mishap::Fails => Part::Failing,
        Mishap::FailsButActs => Part::ErringButActing,
        Mishap::ActsLate => Part::Late,
        Mishap::CannotBeRead => Part::Unreadable,
        Mishap::IgnoresProxy => Part::Leaking,
        Mishap::Rotates => Part::Rotating,
        // Their connections never fail.
        Mishap::SaysNothing | Mishap::CutsAnswer => return None,
        Mishap::ActsAndRefuses | Mishap::ShowsOnly => return None,
        Mishap::Unsure | Mishap::GivesUp | Mishap::NeverEnds | Mishap::ProxyLies => return None,
        Mishap::Forwarded | Mishap::SharesProxyAddress => return None,
        Mishap::ChangesPlaces | Mishap::ProxyIsDead => return None,
        Mishap::LeavesThroughNeighbour | Mishap::LeavesThroughApp => return None,
    })
}

#[async_trait]
impl Double for Simulated {
    fn adapter(&self, clock: &Clock) -> (PlatformName, Arc<dyn Platform>) {
        let sim = self.sim.get_or_init(|| Arc::new(Sim::new(1, PHONES, clock.clone(), &[0; 32])));
        (PlatformName::parse("phone").expect("a name"), sim.clone())
    }

    async fn phones(&self) -> Vec<(DeviceId, String)> {
        let ids: Vec<_> = (1..=PHONES).map(|n| format!("phone-{n:07}")).collect();
        let found = self.sim().find_all(&ids.iter().map(String::as_str).collect::<Vec<_>>()).expect("it is not cut");
        let mut phones: Vec<_> = found.iter().map(|phone| (phone.id.clone(), phone.name.as_str().to_owned())).collect();
        match self.lie {
            Lie::OneMorePhone => phones.push((DeviceId::new("phone-9999999").expect("an id"), "one more".to_owned())),
            Lie::OtherName => phones[0].1.push('x'),
            Lie::None | Lie::LacksRestart => {}
        }
        phones
    }

    fn lacks(&self, operation: Operation) -> bool {
        self.lie == Lie::LacksRestart && operation == Operation::Restart
    }

    async fn stage(&self, operation: Operation, fault: Mishap) -> Option<DeviceId> {
        if self.lie != Lie::None && fault != Mishap::None {
            return None;
        }
        // Of the stopped phones, none has another fault.
        let part = match (operation, fault) {
            (Operation::BootStopped, Mishap::None) => Some(Part::Stopped),
            (Operation::BootStopped, _) => None,
            _ => part(fault),
        };
        part.and_then(|part| {
            let mut taken = self.taken.lock().expect("no panic");
            let nth = taken.entry(format!("{part:?}")).or_default();
            *nth += 1;
            self.sim().phones_of(part).nth(*nth - 1)
        })
    }

    async fn deeds(&self, id: &DeviceId) -> Vec<PhoneDeed> {
        let deeds = self.sim().deeds_of(id).into_iter().map(|deed| match deed {
            Command::SetProxy(args) => {
                PhoneDeed::ProxySet { host: args.host.as_str().to_owned(), port: args.port.get() as u16 }
            }
            Command::ClearProxy(_) => PhoneDeed::ProxyCleared,
            Command::SetPower(args) => match args.action {
                PowerAction::Boot => PhoneDeed::Booted,
                PowerAction::Shutdown => PhoneDeed::Stopped,
                PowerAction::Restart => PhoneDeed::Restarted,
            },
        });
        deeds.collect()
    }
}

#[tokio::test]
async fn no_fault_of_simulated_phones_breaks_a_promise() {
    insta::assert_snapshot!(super::table(Arc::new(Simulated::default()), OPERATIONS).await);
}

#[tokio::test]
async fn an_adapter_that_shows_less_than_its_platform_or_something_else_breaks_a_promise() {
    for (lie, promises) in [
        (
            Lie::OneMorePhone,
            vec![
                "list_devices does not show phone-9999999",
                "get_device does not show phone-9999999",
                "a page of 1668 phones has 1664, and 1 are left",
            ],
        ),
        (Lie::OtherName, vec!["list_devices names phone-0000001", "get_device names phone-0000001"]),
        (Lie::LacksRestart, vec!["and a platform that lacks it: true"]),
    ] {
        let rows = adapter_suite::run(Arc::new(Simulated { lie, ..Simulated::default() }), &[Operation::Restart]).await;
        let broken: Vec<_> = rows.into_iter().flat_map(|row| row.violations).collect();
        let are_told = broken.iter().zip(&promises).all(|(told, promise)| told.contains(promise));
        assert!(broken.len() == promises.len() && are_told, "{broken:#?}");
    }
}

#[tokio::test]
async fn a_simulated_phone_keeps_the_promises_of_a_screen() {
    let sim = Sim::new(1, 12, Clock::manual(Timestamp(0)), &[0; 32]);
    let id = sim.phones_of(Part::Plain).next().expect("a phone");
    assert!(adapter_suite::watch(&sim, &id).await.is_empty());
}
