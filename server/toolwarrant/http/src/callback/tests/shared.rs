//! Tests of callback listeners whose processes share a store.

use super::*;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use tokio::task::yield_now;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_core::budgets::Budgets;
use toolwarrant_core::cluster::{ClusterStore, Membership};
use toolwarrant_core::documents::{Document, DocumentStore};
use toolwarrant_core::store::Stored;
use toolwarrant_memory::Memory;

/// The documents of one replica. Counts the statements, and can stop to answer.
#[derive(Debug)]
struct CountingLink {
    store: Arc<Memory>,
    reads: AtomicU64,
    puts: AtomicU64,
    is_cut: AtomicBool,
}

impl DocumentStore for CountingLink {
    fn documents(&self, space: &'static str, keys: Vec<String>) -> Stored<'_, Vec<Document>> {
        self.reads.fetch_add(1, SeqCst);
        match self.is_cut.load(SeqCst) {
            true => Box::pin(std::future::pending()),
            // So that requests at the same time meet between a read and a put.
            false => Box::pin(async move {
                let found = self.store.documents(space, keys).await;
                yield_now().await;
                found
            }),
        }
    }

    fn put_documents(&self, space: &'static str, documents: Vec<Document>) -> Stored<'_, Vec<bool>> {
        self.puts.fetch_add(1, SeqCst);
        if self.is_cut.load(SeqCst) {
            return Box::pin(std::future::pending());
        }
        self.store.put_documents(space, documents)
    }
}

impl CountingLink {
    fn statements(&self) -> (u64, u64) {
        (self.reads.load(SeqCst), self.puts.load(SeqCst))
    }
}

/// A listener of a replica, and its link to the store.
struct CallbackReplica {
    running: Running,
    link: Arc<CountingLink>,
}

fn join_with(limits: Limits, store: &Memory, name: &str, master: u8) -> CallbackReplica {
    let (store, clock) = (Arc::new(store.replica(name)), Clock::manual(Timestamp(0)));
    let (reads, puts, is_cut) = Default::default();
    let link = Arc::new(CountingLink { store: Arc::clone(&store), reads, puts, is_cut });
    let budgets = Budgets::new(link.clone(), store.epoch(), clock.clone());
    let member = Arc::new(Membership::new(store, clock));
    let keyring = KeyRing::new("test", &[master; 32], Random::from_seed(1));
    let sharing = Sharing::new(link.clone(), member, budgets, keyring);
    CallbackReplica { running: start_with(limits, "127.0.0.1:0", Some(sharing)), link }
}

fn join(store: &Memory, name: &str) -> CallbackReplica {
    join_with(Limits { head: LONG, ..Limits::default() }, store, name, 7)
}

impl CallbackReplica {
    fn expect(&self) -> Expected {
        self.running.echo.expect().expect("a path")
    }

    /// Requests the path. Returns true if the listener answered.
    async fn get(&self, from: [u8; 4], path: &str) -> bool {
        let answer = self.running.get(from, path).await;
        assert!(answer.is_empty() || answer.as_bytes() == ANSWER, "{answer}");
        !answer.is_empty()
    }

    async fn note(&self, from: [u8; 4], path: &str) -> bool {
        self.running.echo.paths.note(path, from.into()).await.is_some()
    }
}

#[tokio::test]
async fn a_request_that_reaches_a_replica_that_did_not_ask_is_seen_by_the_one_that_did() {
    let store = Memory::default();
    let [asks, other] = ["one", "other"].map(|name| join(&store, name));
    let expected = asks.expect();
    let is_safe = |c: char| c == '/' || c == '-' || c.is_ascii_hexdigit();
    assert!(expected.path.len() < 100 && expected.path.chars().all(is_safe), "{}", expected.path);
    assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Nobody);
    assert!(other.get(TWO, &expected.path).await);
    assert_eq!(expected.observe(AT_ONCE).await, one(TWO));

    // A caller that waits learns of it, too, and the own listener needs no statement.
    let waiting = asks.expect();
    let (seen, answered) = tokio::join!(waiting.observe(LONG), other.get(TWO, &waiting.path));
    assert_eq!((seen, answered), (one(TWO), true));
    let own = asks.expect();
    let before = asks.link.statements();
    assert!(asks.get(TWO, &own.path).await);
    assert_eq!(asks.link.statements(), before);
    assert_eq!(own.observe(LONG).await, one(TWO));
}

#[tokio::test]
async fn a_stranger_gets_no_byte_and_causes_no_statement() {
    let store = Memory::default();
    let [asks, other] = ["asks", "other"].map(|name| join(&store, name));
    let foreign = join_with(Limits::default(), &store, "foreign", 8);
    let (expected, own) = (asks.expect(), other.expect().path.clone());
    let path = expected.path.as_str();
    let (signed, code) = path.rsplit_once('-').expect("a code");
    let mut wrong = vec![
        foreign.expect().path.clone(),
        // Its own path, which it does not expect any more.
        own,
        signed.to_owned(),
        format!("{signed}-"),
        format!("{signed}-{}", &code[..31]),
        format!("{signed}-{}", code.to_uppercase()),
        format!("{path}0"),
        format!("{signed}-0-{code}"),
        format!("/{}", "-".repeat(HEAD_BYTES / 2)),
    ];
    for at in 0..path.len() {
        let mut bytes = path.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        wrong.push(String::from_utf8(bytes).expect("text"));
    }
    for path in wrong {
        assert!(!other.get(ONE, &path).await, "{path}");
    }
    assert_eq!(other.link.statements(), (0, 0));
    assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Nobody);
}

#[tokio::test]
async fn two_addresses_are_doubtful_whichever_replicas_they_reach() {
    let store = Memory::default();
    let all = ["asks", "second", "third"].map(|name| join(&store, name));
    for (first, second) in [(0, 1), (1, 0), (1, 1), (1, 2)] {
        let expected = all[0].expect();
        assert!(all[first].get(ONE, &expected.path).await);
        assert!(all[second].get(ONE, &expected.path).await);
        assert_eq!(expected.observe(AT_ONCE).await, one(ONE), "{first} {second}");
        assert!(all[second].get(TWO, &expected.path).await);
        assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Several, "{first} {second}");
    }
    // One address in two forms is one.
    let expected = all[0].expect();
    let mapped = Ipv4Addr::from(ONE).to_ipv6_mapped().into();
    assert!(all[1].running.echo.paths.note(&expected.path, mapped).await.is_some());
    assert!(all[1].note(ONE, &expected.path).await && all[2].note(TWO, &expected.path).await);
    assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Several);
    // At the same time, and from many addresses.
    let expected = all[0].expect();
    let [_, second, third] = &all;
    let path = expected.path.as_str();
    let both = tokio::join!(second.note(ONE, path), third.note(TWO, path));
    assert_eq!((both, expected.observe(AT_ONCE).await), ((true, true), CallbackSource::Several));
    for last in 0..200 {
        assert!(second.note([10, 0, 0, last], path).await && third.note([10, 0, 1, last], path).await);
    }
    let key = path[1..].split('-').take(2).collect::<Vec<_>>().join("-");
    let found = store.documents("callback", vec![key]).await.expect("stored");
    assert!(found[0].body.len() < 160, "{:?}", String::from_utf8_lossy(&found[0].body));
}

#[tokio::test]
async fn an_earlier_path_of_a_slot_neither_counts_for_a_later_one_nor_replaces_its_note() {
    let store = Memory::default();
    let [asks, other] = ["asks", "other"].map(|name| join(&store, name));
    let slot = |path: &str| path.split('-').take(2).collect::<Vec<_>>().join("-");
    let earlier = asks.expect().path.clone();
    assert!(other.get(ONE, &earlier).await, "nobody knows here that it is over");
    let later = asks.expect();
    assert_eq!((slot(&earlier), later.observe(AT_ONCE).await), (slot(&later.path), CallbackSource::Nobody));
    assert!(other.get(TWO, &later.path).await);
    // One replica remembers the later path, and another one reads it.
    let third = join(&store, "third");
    assert!(!other.get(ONE, &earlier).await && !third.get(ONE, &earlier).await);
    assert_eq!(later.observe(AT_ONCE).await, one(TWO));
    // Again without a statement.
    let before = third.link.statements();
    assert!(!third.get(ONE, &earlier).await);
    assert_eq!(third.link.statements(), before);

    // The next run of the name takes the same slots, and its first path is a later one.
    let earlier = later.path.clone();
    let again = join(&store, "asks");
    let later = again.expect();
    assert_eq!((slot(&earlier), later.observe(AT_ONCE).await), (slot(&later.path), CallbackSource::Nobody));
    assert!(third.get(TWO, &later.path).await && !other.get(ONE, &earlier).await);
    assert_eq!(later.observe(AT_ONCE).await, one(TWO));
}

#[tokio::test]
async fn a_repeated_request_costs_no_statement() {
    let store = Memory::default();
    let [asks, other] = ["asks", "other"].map(|name| join(&store, name));
    let expected = asks.expect();
    for (from, statements) in [(ONE, (1, 1)), (TWO, (2, 2)), ([127, 0, 0, 3], (2, 2)), (ONE, (2, 2))] {
        for _ in 0..20 {
            assert!(other.get(from, &expected.path).await);
        }
        assert_eq!(other.link.statements(), statements, "{from:?}");
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_leaves_a_request_without_one_and_the_listener_alive() {
    let store = Memory::default();
    let asks = join(&store, "asks");
    let limits = Limits { head: LONG, connections: 8, ..Limits::default() };
    let other = join_with(limits, &store, "other", 7);
    let brief = Limits { head: Duration::from_millis(100), ..Limits::default() };
    let impatient = join_with(brief, &store, "impatient", 7);
    for replica in [&other, &impatient] {
        replica.link.is_cut.store(true, SeqCst);
    }
    let expected = asks.expect();
    assert!(!impatient.get(ONE, &expected.path).await);
    // Requests that wait for the store do not keep others out.
    let mut held = Vec::new();
    for n in 1..=8 {
        let mut stream = connect(other.running.address, [127, 0, 1, n]).await;
        stream.write_all(format!("GET {} HTTP/1.1\r\n\r\n", expected.path).as_bytes()).await.expect("sent");
        held.push(stream);
        while other.link.statements().0 < n.into() {
            yield_now().await;
        }
    }
    assert!(other.get(TWO, &other.expect().path).await);
    assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Nobody);
}

#[tokio::test(start_paused = true)]
async fn an_address_is_unknown_while_the_store_does_not_answer() {
    let store = Memory::default();
    let [asks, other] = ["asks", "other"].map(|name| join(&store, name));
    let expected = asks.expect();
    asks.link.is_cut.store(true, SeqCst);
    assert!(asks.note(ONE, &expected.path).await);
    let begin = Instant::now();
    assert_eq!(expected.observe(AT_ONCE).await, CallbackSource::Unknown);
    assert!(begin.elapsed() < Duration::from_secs(3));
    // It answers again while somebody waits.
    assert!(other.note(TWO, &expected.path).await);
    let heal = async {
        sleep(LONG / 2).await;
        asks.link.is_cut.store(false, SeqCst);
    };
    assert_eq!(tokio::join!(expected.observe(LONG), heal).0, CallbackSource::Several);

    // A caller that goes away while it reads for others leaves the reading to them.
    let [goes, stays] = [(); 2].map(|()| asks.expect());
    assert!(other.note(TWO, &stays.path).await);
    asks.link.is_cut.store(true, SeqCst);
    let reading = tokio::spawn(async move { goes.observe(AT_ONCE).await });
    yield_now().await;
    let leave = async {
        sleep(Duration::from_secs(1)).await;
        asks.link.is_cut.store(false, SeqCst);
        reading.abort();
    };
    assert_eq!(tokio::join!(stays.observe(AT_ONCE), leave).0, one(TWO));
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_share_a_statement_each_150_ms_and_nobody_else_reads() {
    let store = Memory::default();
    let [asks, other] = ["asks", "other"].map(|name| join(&store, name));
    let [a, b, c] = [(); 3].map(|()| asks.expect());
    tokio::join!(a.observe(AT_ONCE), b.observe(AT_ONCE), c.observe(AT_ONCE));
    assert_eq!(asks.link.statements(), (1, 0));
    sleep(LONG).await;
    assert_eq!(asks.link.statements(), (1, 0));

    let mut waiting = JoinSet::new();
    for n in 0..100 {
        let expected = asks.expect();
        if n % 2 == 0 {
            assert!(other.note(TWO, &expected.path).await);
        }
        waiting.spawn(async move {
            sleep(Duration::from_millis(n)).await;
            expected.observe(Duration::from_secs(3)).await
        });
    }
    let seen = waiting.join_all().await;
    assert_eq!(seen.iter().filter(|seen| **seen == one(TWO)).count(), 50);
    // One for each begin, one for each end of a wait, and one for each interval.
    let (reads, puts) = asks.link.statements();
    assert!(reads <= 1 + 100 + 50 + 3000 / 150 + 1 && puts == 0, "{reads}");
}

#[tokio::test]
async fn a_replica_expects_a_limited_number_of_paths_and_takes_the_lowest_free_slot() {
    let replica = join(&Memory::default(), "one");
    let slot = |expected: &Expected| expected.path.split('-').nth(1).map(str::to_owned);
    let mut all: Vec<_> = (0..4096).map(|_| replica.expect()).collect();
    assert!(replica.running.echo.expect().is_err());
    let freed = slot(&all.swap_remove(17));
    assert_eq!((slot(&replica.expect()), freed), (Some("11".to_owned()), Some("11".to_owned())));
}
