//! The simulated phones, which are their own double.

use adapter_suite::{Deed, Double, Fault, OPERATIONS, Operation};
use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::upstream::Control;
use cloudphone::phones::upstream::sim::{Change, Part, Sim};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use toolwarrant::{BoxFuture, Clock};

#[derive(Default)]
struct Simulated {
    sim: OnceLock<Arc<Sim>>,
    /// How many phones of each part are taken.
    taken: Mutex<HashMap<String, usize>>,
}

impl Simulated {
    fn sim(&self) -> &Arc<Sim> {
        self.sim.get().expect("the adapter is made first")
    }
}

/// The part that fails so.
fn part(fault: Fault) -> Option<Part> {
    Some(match fault {
        Fault::None => Part::Plain,
        Fault::Refuses => Part::Refusing,
        Fault::LosesCommand => Part::LosingCommands,
        Fault::LosesAnswer => Part::LosingAnswers,
        Fault::Swallows => Part::Swallowing,
        Fault::Fails => Part::Failing,
        Fault::FailsButActs => Part::ErringButActing,
        Fault::ActsLate => Part::Late,
        Fault::CannotBeRead => Part::Unreadable,
        Fault::IgnoresProxy => Part::Leaking,
        Fault::Rotates => Part::Rotating,
        Fault::CutsAnswer | Fault::Unsure | Fault::NeverEnds | Fault::ProxyLies => return None,
    })
}

impl Double for Simulated {
    fn adapter(&self, clock: &Clock) -> Arc<dyn Control> {
        self.sim.get_or_init(|| Arc::new(Sim::new(1, 5_000, clock.clone(), &[0; 32]))).clone()
    }

    fn stage(&self, _: Operation, fault: Fault) -> BoxFuture<'_, Option<DeviceId>> {
        let phone = part(fault).and_then(|part| {
            let mut taken = self.taken.lock().expect("no panic");
            let nth = taken.entry(format!("{part:?}")).or_default();
            *nth += 1;
            self.sim().playing(part).nth(*nth - 1)
        });
        Box::pin(async { phone })
    }

    fn deeds<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Vec<Deed>> {
        let deeds = self.sim().deeds_of(id).into_iter().map(|deed| match deed.change {
            Change::SetProxy(proxy) => Deed::ProxySet { host: proxy.host, port: proxy.port.get() as u16 },
            Change::ClearProxy => Deed::ProxyCleared,
            Change::Boot => Deed::Booted,
            Change::Shutdown => Deed::Stopped,
            Change::Restart => Deed::Restarted,
        });
        let deeds = deeds.collect();
        Box::pin(async { deeds })
    }
}

#[tokio::test]
async fn whatever_goes_wrong_on_simulated_phones_no_promise_is_broken() {
    insta::assert_snapshot!(super::table(Arc::new(Simulated::default()), &OPERATIONS).await);
}
