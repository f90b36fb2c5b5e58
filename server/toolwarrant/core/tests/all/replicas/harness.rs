//! A replica for tests: a process with a clock of its own, a link, its membership and its registry.

use super::link::{StoreLink, Weather};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::access::{AccessError, Application, Credentials, Grants};
use toolwarrant_core::act::{Channel, Claims, Operator, Origin, Role};
use toolwarrant_core::cluster::{Cluster, Eviction, Membership};
use toolwarrant_core::registry::{Durability, KeyPrefixes, NewApplication, NewKey, Registry};
use toolwarrant_memory::Memory;

pub(crate) const PREFIXES: KeyPrefixes = KeyPrefixes { id: "tk_", secret: "ts_" };

pub(crate) struct TestReplica {
    pub(crate) link: Arc<StoreLink>,
    pub(crate) clock: Clock,
    pub(crate) member: Arc<Membership>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) membership: JoinHandle<Result<(), Eviction>>,
    following: JoinHandle<()>,
}

impl TestReplica {
    /// Starts a replica whose messages take no time.
    pub(crate) async fn start(store: &Memory, name: &str) -> Self {
        Self::join(StoreLink::join(store, name, 0, 0)).await
    }

    /// Starts a replica behind a link. Its clock agrees with no other.
    pub(crate) async fn join(link: StoreLink) -> Self {
        let (link, seed) = (Arc::new(link), link_seed());
        let clock = Clock::start_at(Timestamp(seed * 1_000_000));
        link.set_time(&clock, 0);
        let member = Arc::new(Membership::new(link.clone(), clock.clone()));
        let beating = Arc::clone(&member);
        let membership = tokio::spawn(async move { beating.run().await });
        let keyring = KeyRing::new("test", &[7; 32], Random::System);
        let (store, cluster) = (link.clone(), Some(member.clone() as Arc<dyn Cluster>));
        let registry = Registry::open(
            store,
            &crate::contract::CATALOGUE,
            PREFIXES,
            keyring,
            clock.clone(),
            Random::System,
            cluster,
        );
        let registry = Arc::new(registry.await.expect("a store that can be read"));
        let followed = Arc::clone(&registry);
        let following = tokio::spawn(async move { followed.follow().await });
        Self { link, clock, member, registry, membership, following }
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.link.set(weather);
    }

    pub(crate) fn stands(&self) -> bool {
        self.member.lease().stands()
    }

    /// Returns the application that a request with this key is answered for.
    pub(crate) fn answer(&self, key: &NewKey) -> Result<Arc<Application>, AccessError> {
        let shown = Credentials { key_id: &key.key_id, secret: key.secret.expose() };
        let caller = self.registry.access().authenticate(shown, None, &self.clock);
        caller.map(|caller| Arc::clone(&caller.application))
    }

    pub(crate) async fn create(&self, name: &str) -> String {
        let (name, permissions) = (name.to_owned(), vec!["look".to_owned()]);
        let new = NewApplication { name, permissions, grants: Grants::everything(), requests_per_minute: 300 };
        in_time(self.registry.create(new, &origin())).await.expect("a new name").object
    }

    pub(crate) async fn issue(&self, application: &str) -> NewKey {
        in_time(self.registry.issue_key(application, None, &origin())).await.expect("an application")
    }

    /// Revokes a key. Returns the time until the command has returned.
    pub(crate) async fn revoke(&self, key: &NewKey) -> Duration {
        let since = Instant::now();
        let changed = in_time(self.registry.revoke_key(&key.key_id, &origin())).await.expect("a key");
        assert_eq!(changed.durability, Durability::Stored);
        since.elapsed()
    }
}

impl Drop for TestReplica {
    fn drop(&mut self) {
        self.membership.abort();
        self.following.abort();
    }
}

/// Returns another number each time.
fn link_seed() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// Waits for work that takes at most a minute.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), work).await.expect("it ends within a minute")
}

pub(crate) async fn sleep(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

pub(crate) fn origin() -> Origin {
    let claims = Claims::default();
    let operator = Operator { role: Role::Owner, name: "alice".to_owned(), uid: 7, channel: Channel::Offline, claims };
    Origin { operator, command: "test".to_owned() }
}
