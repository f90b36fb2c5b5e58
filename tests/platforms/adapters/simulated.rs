//! The simulated phones, which are their own double.

use adapter_suite::{Double, Mishap, OPERATIONS, Operation, PhoneDeed};
use cloudphone::phones::contract::{Command, DeviceId, PowerAction};
use cloudphone::phones::port::{Platform, PlatformName};
use cloudphone::platforms::simulator::{Part, Sim};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use toolwarrant::{BoxFuture, Clock, Timestamp};

#[derive(Default)]
struct Simulated {
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

impl Double for Simulated {
    fn adapter(&self, clock: &Clock) -> (PlatformName, Arc<dyn Platform>) {
        let sim = self.sim.get_or_init(|| Arc::new(Sim::new(1, 5_000, clock.clone(), &[0; 32])));
        (PlatformName::parse("phone").expect("a name"), sim.clone())
    }

    fn stage(&self, _: Operation, fault: Mishap) -> BoxFuture<'_, Option<DeviceId>> {
        let phone = part(fault).and_then(|part| {
            let mut taken = self.taken.lock().expect("no panic");
            let nth = taken.entry(format!("{part:?}")).or_default();
            *nth += 1;
            self.sim().phones_of(part).nth(*nth - 1)
        });
        Box::pin(async { phone })
    }

    fn deeds<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Vec<PhoneDeed>> {
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
        let deeds = deeds.collect();
        Box::pin(async { deeds })
    }
}

#[tokio::test]
async fn no_fault_of_simulated_phones_breaks_a_promise() {
    insta::assert_snapshot!(super::table(Arc::new(Simulated::default()), &OPERATIONS).await);
}

#[tokio::test]
async fn a_simulated_phone_keeps_the_promises_of_a_screen() {
    let sim = Sim::new(1, 12, Clock::manual(Timestamp(0)), &[0; 32]);
    let id = sim.phones_of(Part::Plain).next().expect("a phone");
    assert!(adapter_suite::watch(&sim, &id).await.is_empty());
}
