//! A world of replicas that share the budget of one application, as a seed decides.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::access::{Application, Grants};
use toolwarrant_core::budgets::Budgets;
use toolwarrant_core::catalogue::PermissionSet;
use toolwarrant_core::cluster::ClusterStore;
use toolwarrant_core::documents::{Document, DocumentStore};
use toolwarrant_core::limit::{Shortage, Window};
use toolwarrant_core::store::{StoreError, Stored};
use toolwarrant_memory::Memory;

const START: u64 = 1_790_000_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(crate) limit: u32,
    /// How far the clock of each replica is ahead of the slowest, in milliseconds.
    pub(crate) clocks: Vec<u64>,
    /// Longest time of a call on its way to the store, and of its answer, in milliseconds.
    pub(crate) delay: u64,
    /// The same for the first replica.
    pub(crate) slowest: u64,
    /// One call or answer in that many is lost; 0 for no loss.
    pub(crate) loss: u64,
    /// A mutant: the others count an allowance as if it ended at its grant.
    pub(crate) counts_from_grant: bool,
}

impl Nature {
    pub(crate) fn calm(limit: u32, clocks: &[u64]) -> Self {
        Self { limit, clocks: clocks.to_vec(), delay: 10, slowest: 10, loss: 0, counts_from_grant: false }
    }

    pub(crate) fn wild(random: &mut WorldRandom) -> Self {
        let clocks = (0..2 + random.below(3)).map(|_| random.one(&[0, 0, 1_000, 1_000, random.clone().below(1_001)]));
        Self {
            clocks: clocks.collect(),
            limit: random.one(&[1, 7, 40, 120, 300]),
            delay: random.one(&[0, 2, 30, 400]),
            slowest: random.one(&[0, 2, 30, 400]),
            loss: random.one(&[0, 100, 8]),
            counts_from_grant: false,
        }
    }
}

pub(crate) struct World {
    pub(crate) nature: Nature,
    seed: u64,
    pub(crate) store: Memory,
    start: Instant,
    pub(crate) replicas: Vec<BudgetReplica>,
    requests: JoinSet<()>,
    pub(crate) journal: Arc<Journal>,
}

/// The events of a world.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// The time, the replica and the number of admitted requests.
    admitted: Mutex<Vec<(u64, usize, u32)>>,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) reads: u64,
    pub(crate) puts: u64,
    /// Admitted requests that waited.
    pub(crate) waited: u64,
}

#[derive(Clone)]
pub(crate) struct BudgetReplica {
    place: usize,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) application: Arc<Application>,
    link: Arc<BudgetLink>,
}

impl World {
    pub(crate) fn new(seed: u64, nature: Nature) -> Self {
        let mut world = Self {
            nature,
            seed,
            store: Memory::default(),
            start: Instant::now(),
            replicas: Vec::new(),
            requests: JoinSet::new(),
            journal: Arc::default(),
        };
        world.replicas = (0..world.nature.clocks.len()).map(|place| world.join(place)).collect();
        world
    }

    fn join(&self, place: usize) -> BudgetReplica {
        let store = self.store.replica(&place.to_string());
        let (Nature { delay, slowest, loss, counts_from_grant, .. }, epoch) = (self.nature.clone(), store.epoch());
        let delay = if place == 0 { slowest } else { delay };
        let random = Mutex::new(WorldRandom(self.seed * 1000 + epoch.0));
        let (journal, is_cut) = (Arc::clone(&self.journal), AtomicBool::new(false));
        let link = Arc::new(BudgetLink { store, delay, loss, counts_from_grant, random, is_cut, journal });
        let clock = Clock::start_at(Timestamp(START + self.nature.clocks[place] + self.now()));
        let budgets = Budgets::new(link.clone(), epoch, clock);
        let window = Arc::new(Window::new(self.nature.limit));
        let application = Arc::new(Application::new("app", "app", PermissionSet(1), Grants::everything(), window));
        BudgetReplica { place, budgets, application, link }
    }

    /// Cuts a replica from the store, or connects it again.
    pub(crate) fn cut(&self, place: usize, is_cut: bool) {
        self.replicas[place].link.is_cut.store(is_cut, Relaxed);
    }

    /// Ends a replica with what it holds, and starts the next run.
    pub(crate) fn kill(&mut self, place: usize) {
        self.cut(place, true);
        self.replicas[place] = self.join(place);
    }

    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.nature.limit = limit;
        self.replicas.iter().for_each(|replica| replica.application.window.set_limit(limit));
    }

    /// Sends requests to a replica, and waits for the answer.
    pub(crate) async fn ask(&self, place: usize, n: u32) -> Result<(), Shortage> {
        self.replicas[place].answer(Kind::Alone(n), &self.journal, self.start).await
    }

    /// Milliseconds since the start, by the true time.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    /// Sends requests to a replica. The client leaves after `patience`.
    pub(crate) fn send(&mut self, place: usize, kind: Kind, patience: Duration) {
        while self.requests.try_join_next().is_some() {}
        let (replica, journal, start) = (self.replicas[place].clone(), Arc::clone(&self.journal), self.start);
        self.requests.spawn(async move {
            let _ = timeout(patience, replica.answer(kind, &journal, start)).await;
        });
    }

    /// Waits until all requests have their answers.
    pub(crate) async fn settle(&mut self) {
        while self.requests.join_next().await.is_some() {}
    }

    /// Sends a request to each replica in turn.
    pub(crate) async fn run(&mut self, per_minute: u32, time: Duration) {
        let (gap, end) = (Duration::from_mins(1) / per_minute, Instant::now() + time);
        for n in 0.. {
            self.send(n % self.replicas.len(), Kind::Alone(1), Duration::from_mins(1));
            sleep(gap).await;
            if Instant::now() >= end {
                break;
            }
        }
    }
}

/// How requests come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// All at once.
    Alone(u32),
    /// One first, and that many with it some milliseconds later.
    Head(u32, u64),
}

impl BudgetReplica {
    async fn answer(&self, kind: Kind, journal: &Journal, start: Instant) -> Result<(), Shortage> {
        let admit = async |head, n| self.budgets.admit(&self.application, head, n).await;
        let (sent, millis) = (Instant::now(), || start.elapsed().as_millis() as u64);
        let answer = match kind {
            Kind::Alone(n) => admit(None, n).await.map(|_| journal.note(millis(), self.place, n)),
            Kind::Head(n, later) => match admit(None, 1).await {
                Ok(head) => {
                    let at = millis();
                    sleep(Duration::from_millis(later)).await;
                    let rest = admit(Some(head), n).await;
                    rest.map(|_| {
                        journal.note(at, self.place, 1);
                        journal.note(millis(), self.place, n - 1);
                    })
                }
                Err(shortage) => Err(shortage),
            },
        };
        let mut counts = journal.counts.lock().expect("no panic");
        counts.waited += u64::from(answer.is_ok() && sent.elapsed() > Duration::ZERO);
        answer
    }
}

impl Journal {
    fn note(&self, at: u64, place: usize, n: u32) {
        self.admitted.lock().expect("no panic").push((at, place, n));
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().expect("no panic")
    }

    /// Returns the admitted requests of that time, of one replica or all.
    pub(crate) fn count_admitted(&self, time: Range<u64>, place: Option<usize>) -> u32 {
        let admitted = self.admitted.lock().expect("no panic");
        let is_of = |other: usize| place.is_none_or(|place| place == other);
        admitted.iter().filter(|(at, other, _)| time.contains(at) && is_of(*other)).map(|(_, _, n)| n).sum()
    }

    /// Returns the most requests in any 60 seconds, ends included, that end after `from`.
    pub(crate) fn most(&self, from: u64) -> u32 {
        let mut admitted = self.admitted.lock().expect("no panic").clone();
        admitted.sort_unstable();
        let (mut first, mut sum, mut most) = (0, 0, 0);
        for (at, _, n) in &admitted {
            sum += n;
            while admitted[first].0 + 60_000 < *at {
                sum -= admitted[first].2;
                first += 1;
            }
            most = if *at >= from { most.max(sum) } else { most };
        }
        most
    }
}

/// The way of one replica to the store.
#[derive(Debug)]
struct BudgetLink {
    store: Memory,
    delay: u64,
    loss: u64,
    counts_from_grant: bool,
    random: Mutex<WorldRandom>,
    is_cut: AtomicBool,
    journal: Arc<Journal>,
}

impl BudgetLink {
    async fn travel(&self) -> Result<(), StoreError> {
        let (millis, fate) = {
            let mut random = self.random.lock().expect("no panic");
            (random.below(self.delay + 1), if self.loss > 0 { random.below(2 * self.loss) } else { 2 })
        };
        if millis > 0 {
            sleep(Duration::from_millis(millis)).await;
        }
        match fate {
            _ if self.is_cut.load(Relaxed) => std::future::pending().await,
            0 => std::future::pending().await,
            1 => Err(StoreError::Unavailable("lost".to_owned())),
            _ => Ok(()),
        }
    }
}

impl DocumentStore for BudgetLink {
    fn documents(&self, space: &'static str, keys: Vec<String>) -> Stored<'_, Vec<Document>> {
        Box::pin(async move {
            self.journal.counts.lock().expect("no panic").reads += 1;
            self.travel().await?;
            let found = self.store.documents(space, keys).await;
            self.travel().await?;
            found
        })
    }

    fn put_documents(&self, space: &'static str, documents: Vec<Document>) -> Stored<'_, Vec<bool>> {
        Box::pin(async move {
            self.journal.counts.lock().expect("no panic").puts += 1;
            self.travel().await?;
            let documents = documents.into_iter().map(|document| match self.counts_from_grant {
                true => Document { body: end_at_grant(&document.body, self.store.epoch().0), ..document },
                false => document,
            });
            let put = self.store.put_documents(space, documents.collect()).await;
            self.travel().await?;
            put
        })
    }
}

/// Returns a log in which the allowance of this replica ends ten seconds earlier: at its grant, or
/// before.
fn end_at_grant(log: &[u8], holder: u64) -> Vec<u8> {
    let mut log: serde_json::Value = serde_json::from_slice(log).expect("a log");
    let records = log[1].as_array_mut().expect("records").iter_mut();
    for record in records.filter(|record| record["holder"] == holder) {
        let until: Timestamp = serde_json::from_value(record["until"].clone()).expect("a time");
        record["until"] = serde_json::json!(until.minus(Duration::from_secs(10)));
    }
    serde_json::to_vec(&log).expect("JSON")
}

#[derive(Clone, Debug)]
pub(crate) struct WorldRandom(pub(crate) u64);

impl WorldRandom {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
