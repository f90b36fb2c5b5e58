//! Several adapters of one account, as replicas of a store in memory, against the double: its
//! journal shows what the platform has seen.

use crate::harness::double::{Double, KEYS};
use cloudphone::adapter_kit::guard::GuardLimits;
use cloudphone::adapter_kit::readings::PhoneReadings;
use cloudphone::adapter_kit::shared::SharedPlatforms;
use cloudphone::phones::contract::DeviceId;
use cloudphone::phones::port::{PlatformName, Upstream};
use cloudphone::platforms::armcloud::{Account, Armcloud, Family, Scheme};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use toolwarrant::sharing::{Budgets, Membership, Sharing};
use toolwarrant::text::Secret;
use toolwarrant::{Clock, Random};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_core::cluster::ClusterStore;
use toolwarrant_memory::Memory;

const LIMITS: GuardLimits = GuardLimits { concurrent: 6, per_second: 5, per_minute: 40 };

/// An adapter of the account. It dies when it is dropped.
struct AdapterReplica {
    adapter: Arc<Armcloud>,
    work: JoinSet<()>,
}

impl AdapterReplica {
    fn join(store: &Memory, name: &str, double: &Double) -> Self {
        let clock = Clock::system();
        let store = Arc::new(store.replica(name).with_clock(clock.clone()));
        let budgets = Budgets::new(store.clone(), store.epoch(), clock.clone());
        let member = Arc::new(Membership::new(store.clone(), clock.clone()));
        let keyring = KeyRing::new("", &[7; 32], Random::System);
        let shared = SharedPlatforms::new(Sharing::new(store, member.clone(), budgets, keyring), clock.clone());
        let [(_, access), (_, secret)] = KEYS;
        let account = Account {
            base_url: double.url.parse().expect("a URL"),
            prefix: "/vcpcloud/api/padApi".to_owned(),
            family: Family::PadApi,
            scheme: Scheme::V2,
            access_key: Secret::new(access.to_owned()),
            secret_key: Secret::new(secret.to_owned()),
            limits: LIMITS,
            on_off: None,
            power_seconds: 15,
            proxy_seconds: 10,
            shared_address: false,
        };
        let readings = PhoneReadings::new(None, Random::System);
        let (platform, time) = (PlatformName::parse("pads").expect("a name"), (clock, &Random::System));
        // Replicas keep nothing in a folder.
        let adapter = Armcloud::new(platform, account, readings, Path::new("/nowhere"), Some(&shared), time);
        let (adapter, mut work) = (Arc::new(adapter.expect("an account")), JoinSet::new());
        work.spawn(async move {
            let _ = member.run().await;
        });
        work.spawn(async move { shared.run().await });
        work.spawn(adapter.keep_fresh());
        Self { adapter, work }
    }

    /// Returns the phones that it shows.
    fn ids(&self) -> Vec<DeviceId> {
        self.adapter.list_page(None, 100).expect("a page").into_iter().map(|phone| phone.id.clone()).collect()
    }

    /// Reads a phone again and again.
    fn load(&mut self, id: &DeviceId) {
        for _ in 0..3 {
            let (adapter, id) = (self.adapter.clone(), id.clone());
            self.work.spawn(async move {
                loop {
                    let _ = adapter.read_anew(&id).await;
                    sleep(Duration::from_millis(20)).await;
                }
            });
        }
    }
}

/// Returns the whole lists among the requests.
fn lists(requests: &[Value]) -> usize {
    requests.iter().filter(|line| line["endpoint"] == "infos" && line["pads"] == json!([])).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_replicas_list_an_account_once_and_call_it_no_more_than_one() {
    let (double, store, begun) = (Double::start(5, &[]).await, Memory::default(), Instant::now());
    let mut replicas = ["a", "b", "c", "d"].map(|name| AdapterReplica::join(&store, name, &double));
    let listed = driver::wait_for(async || {
        let shown = replicas.each_ref().map(|replica| replica.ids().len());
        if shown == [5; 4] { Ok(()) } else { Err(format!("{shown:?}")) }
    });
    listed.await.expect("each shows the phones");
    let ids = replicas[0].ids();
    assert!(replicas.iter().all(|replica| replica.ids() == ids));
    let listed = double.requests("").await.len();
    // A list has a page, and one that brings nothing new. The next one begins half a minute later.
    let most = 2 * (1 + begun.elapsed().as_secs() as usize / 25);
    assert!((1..=most).contains(&lists(&double.requests("").await)));

    // They read until the minute is spent.
    replicas.iter_mut().for_each(|replica| replica.load(&ids[0]));
    let spent = driver::wait_for(async || match double.requests("").await.len() {
        few if few < LIMITS.per_minute as usize => Err(format!("{few} requests")),
        _ => Ok(()),
    });
    spent.await.expect("they spend the minute");
    sleep(Duration::from_secs(3)).await;
    let sent = double.requests("").await.len();
    // A machine that takes longer than the minute has more than one.
    let most = LIMITS.per_minute as usize * (1 + begun.elapsed().as_secs() as usize / 60);
    assert!(listed < sent && sent <= most, "{sent}");
}
