//! Pages, views and calls to the platform.

use super::*;
use crate::phones::port::ReadPort;
use crate::phones::tests::{Staged, name};
use crate::phones::views::MAX_AGE;
use crate::platforms::simulator::Sim;
use async_trait::async_trait;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, yield_now};
use toolwarrant::Timestamp;

struct Watched {
    sim: Sim,
    reads: AtomicUsize,
    examined: AtomicUsize,
    gate: Semaphore,
    down: AtomicBool,
    read_at: Mutex<Option<Timestamp>>,
}

impl Watched {
    fn up(&self) -> Result<(), Unreachable> {
        if self.down.load(Relaxed) { Err(Unreachable("down".into())) } else { Ok(()) }
    }
}

#[async_trait]
impl ReadPort for Watched {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        self.examined.fetch_add(limit.into(), Relaxed);
        self.up()?;
        self.sim.page(after, limit, see)
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        self.examined.fetch_add(ids.len(), Relaxed);
        self.up()?;
        self.sim.read(ids, see)
    }

    fn at_hand(&self, id: &DeviceId) -> AtHand {
        let read_at = *self.read_at.lock().unwrap();
        let listed = self.sim.find_all(&[id.as_str()]).unwrap().pop();
        read_at.zip(listed).map_or(AtHand::Nothing, |(read_at, seen)| AtHand::Then(seen, read_at))
    }

    async fn read_anew(&self, id: &DeviceId) -> Found {
        self.reads.fetch_add(1, Relaxed);
        let _open = self.gate.acquire().await;
        self.up()?;
        // A second reading does not return the value of the lists.
        Ok(self.sim.find_all(&[id.as_str()])?.pop().map(|seen| Arc::new(seen.snapshot.clone().into())))
    }
}

struct Rig {
    phones: Arc<Phones>,
    upstream: Arc<Watched>,
    clock: Clock,
}

fn rig(devices: u32) -> Rig {
    let clock = Clock::manual(Timestamp(1_000_000));
    let upstream = Arc::new(Watched {
        sim: Sim::new(7, devices, clock.clone(), &[0; 32]),
        reads: AtomicUsize::new(0),
        examined: AtomicUsize::new(0),
        gate: Semaphore::new(1),
        down: AtomicBool::new(false),
        read_at: Mutex::default(),
    });
    let staged = Staged { reads: Some(upstream.clone()), ..Staged::default() };
    let platforms = Arc::new(Platforms::default().with(name("phone"), Arc::new(staged)));
    Rig { phones: Arc::new(Phones::new(platforms, ProxyHosts::Public, clock.clone())), upstream, clock }
}

impl Rig {
    async fn start(&self, callers: usize) -> JoinSet<View> {
        let mut set = JoinSet::new();
        for _ in 0..callers {
            let phones = Arc::clone(&self.phones);
            set.spawn(async move { phones.find(&id(1)).await });
        }
        yield_now().await;
        set
    }

    fn reads(&self) -> usize {
        self.upstream.reads.load(Relaxed)
    }

    fn page(&self, grants: &Grants, after: Option<&DeviceId>, limit: u16, filter: Filter) -> Paged {
        let mut devices = Vec::new();
        let see = &mut |phones: &[&Arc<DeviceSnapshot>]| devices.extend(phones.iter().copied().cloned());
        let page = self.phones.page(grants, after, limit, filter, see).unwrap();
        assert_eq!(page.count, devices.len());
        Paged { devices, next: page.next }
    }

    fn pages(&self, grants: &Grants, limit: u16, filter: Filter) -> Vec<Paged> {
        let mut pages: Vec<Paged> = Vec::new();
        loop {
            let after = pages.last().and_then(|page| page.next.as_ref());
            let page = self.page(grants, after, limit, filter);
            let ended = page.next.is_none();
            assert!(ended || page.next.as_ref() > after, "the list goes in a circle");
            pages.push(page);
            if ended {
                return pages;
            }
        }
    }
}

struct Paged {
    devices: Vec<Arc<DeviceSnapshot>>,
    next: Option<DeviceId>,
}

fn id(index: u32) -> DeviceId {
    DeviceId::new(&format!("phone-{index:07}")).ok().unwrap()
}

fn grant(ids: impl Iterator<Item = u32>) -> Grants {
    Grants::nothing().with(RESOURCE, Granted::some(ids.map(id).collect::<Vec<_>>().iter().map(DeviceId::as_str)))
}

#[tokio::test]
async fn unfiltered_pages_are_full_up_to_the_last_which_is_not_empty() {
    let rig = rig(1_000);
    let with_ghosts = grant((1..=1_000).chain(2_000..2_050));
    for grants in [Grants::everything(), with_ghosts] {
        for limit in [1, 7, 50, 200] {
            let pages = rig.pages(&grants, limit, Filter::default());
            assert_eq!(pages.len(), 1_000_usize.div_ceil(limit.into()), "{limit} {grants:?}");
        }
    }
}

#[tokio::test]
async fn a_page_after_a_phone_that_is_gone_goes_on_where_it_was() {
    let rig = rig(10);
    for (after, first) in [("a", 1), ("phone-0000003x", 4), ("phone-00000035", 4)] {
        let after = DeviceId::new(after).ok().unwrap();
        for grants in [Grants::everything(), grant(1..=10)] {
            let page = rig.page(&grants, Some(&after), 2, Filter::default());
            assert_eq!(page.devices[0].id, id(first), "{after}");
        }
    }
    let page = rig.page(&Grants::everything(), Some(&id(11)), 2, Filter::default());
    assert!(page.devices.is_empty() && page.next.is_none());
}

#[tokio::test]
async fn a_page_of_a_million_costs_what_it_examines() {
    let none = Filter { state: Some(DeviceState::Stopping), capability: None };
    for grants in [Grants::everything(), grant(1..=5_000)] {
        let rig = rig(1_000_000);
        let page = rig.page(&grants, None, 50, Filter::default());
        assert_eq!((page.devices.len(), rig.upstream.examined.swap(0, Relaxed)), (50, 51));

        let page = rig.page(&grants, None, 50, none);
        assert!(page.devices.is_empty() && page.next.is_some());
        assert_eq!(rig.upstream.examined.load(Relaxed), usize::from(EXAMINED_MAX));
    }
}

#[tokio::test]
async fn grants_that_outlived_their_phones_do_not_make_a_page_expensive() {
    let rig = rig(1);
    let gone = (0..2_500).map(|index| format!("phone-0-{index:04}"));
    let ids: Vec<_> = gone.chain([id(1).to_string()]).collect();
    let grants = Grants::nothing().with(RESOURCE, Granted::some(ids.iter().map(String::as_str)));
    let pages = rig.pages(&grants, 50, Filter::default());
    assert_eq!(pages.iter().map(|page| page.devices.len()).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!(rig.upstream.examined.load(Relaxed), 2_501);
}

#[tokio::test]
async fn a_hundred_callers_share_one_read_and_if_the_one_that_reads_goes_away_another_does() {
    for (goes_away, reads) in [(false, 1), (true, 2)] {
        let rig = rig(12);
        let gate = rig.upstream.gate.acquire().await;
        let (mut first, others) = (rig.start(1).await, rig.start(99).await);
        if goes_away {
            first.shutdown().await;
        }
        drop(gate);
        assert!(others.join_all().await.into_iter().all(|view| view.is_ok_and(|phone| phone.id == id(1))));
        assert_eq!(rig.reads(), reads);
    }
}

#[tokio::test]
async fn an_outage_is_reported_to_all_waiting_callers_and_to_no_later_one() {
    let rig = rig(12);
    rig.upstream.down.store(true, Relaxed);
    let gate = rig.upstream.gate.acquire().await;
    let callers = rig.start(100).await;
    drop(gate);
    assert!(callers.join_all().await.iter().all(|view| matches!(view, Err(Unresolved::Unavailable(_)))));
    assert_eq!(rig.reads(), 1);
    assert!(rig.phones.page(&Grants::everything(), None, 5, Filter::default(), &mut |_| ()).is_err());

    rig.upstream.down.store(false, Relaxed);
    assert!(rig.phones.find(&id(1)).await.is_ok());
}

#[tokio::test]
async fn a_view_found_or_missing_is_kept_for_two_seconds() {
    let rig = rig(12);
    for (index, found) in [(1, true), (13, false)] {
        let before = rig.reads();
        for (wait, reads) in [(Duration::ZERO, 1), (MAX_AGE, 1), (Duration::from_millis(1), 2)] {
            rig.clock.advance(wait);
            assert_eq!(rig.phones.find(&id(index)).await.is_ok(), found);
            assert_eq!(rig.reads() - before, reads, "{index} {wait:?}");
        }
    }
}

#[tokio::test]
async fn a_phone_that_lists_show_as_it_was_a_moment_ago_is_not_read_again() {
    let rig = rig(12);
    for (wait, reads) in [(Duration::ZERO, 0), (MAX_AGE, 0), (Duration::from_millis(1), 1)] {
        rig.upstream.read_at.lock().unwrap().get_or_insert(rig.clock.now());
        rig.clock.advance(wait);
        let page = rig.page(&Grants::everything(), None, 5, Filter::default());
        let found = rig.phones.find(&id(5)).await.unwrap();
        assert_eq!((Arc::ptr_eq(&found, &page.devices[4]), rig.reads()), (reads == 0, reads), "{wait:?}");
    }
}

#[tokio::test]
async fn a_phone_whose_lists_are_never_old_is_neither_read_again_nor_cached() {
    let clock = Clock::manual(Timestamp(1_000_000));
    let sim = Arc::new(Sim::new(7, 12, clock.clone(), &[0; 32]));
    let platforms = Platforms::default().with(name("phone"), sim.clone());
    let phones = Phones::new(Arc::new(platforms), ProxyHosts::Public, clock);
    assert!(phones.find(&id(5)).await.is_ok());
    sim.cut();
    assert!(matches!(phones.find(&id(5)).await, Err(Unresolved::Unavailable(_))));
    sim.mend();
    assert!(phones.find(&id(5)).await.is_ok());
    assert_eq!(phones.find(&id(13)).await.err(), Some(Unresolved::NotFound));
}

#[tokio::test]
async fn pages_of_any_size_show_each_phone_once_that_the_grants_cover_and_the_filter_admits() {
    let rig = rig(2_500);
    let all = rig.upstream.sim.list_page(None, 2_500).unwrap();
    let granted = |prefixes: &[&str], ids: &[u32], except: &[u32]| {
        let mut granted = Granted::default();
        prefixes.iter().for_each(|prefix| granted.add_prefix(prefix));
        ids.iter().for_each(|index| granted.add(id(*index).as_str()));
        except.iter().for_each(|index| granted.remove(id(*index).as_str()));
        granted
    };
    let (exceptions, some): (Vec<_>, Vec<_>) = ((1..=1_200).collect(), (1..=2_600).step_by(3).collect());
    let filters = [
        Filter::default(),
        Filter { state: Some(DeviceState::Stopped), capability: None },
        Filter { state: None, capability: Some(DeviceCapability::Proxy) },
        Filter { state: Some(DeviceState::Unknown), capability: Some(DeviceCapability::Power) },
        Filter { state: Some(DeviceState::Stopping), capability: None },
    ];
    for granted in [
        granted(&[""], &[], &[]),
        granted(&[""], &[], &[1, 2, 2_500]),
        granted(&[""], &[], &exceptions),
        granted(&["phone-00001", "phone-0000123", "phone-00020"], &[5, 300, 1_999, 2_400], &[100, 123, 199]),
        granted(&["phone-0000007", "a", "phone-0000008", "z"], &[], &[]),
        granted(&["phone-000000"], &[], &[]),
        granted(&[], &some, &[]),
    ] {
        let grants = Grants::nothing().with(RESOURCE, granted.clone());
        for filter in filters {
            let admits = |phone: &&Arc<DeviceSnapshot>| granted.covers(phone.id.as_str()) && filter.admits(phone);
            let expected: Vec<_> = all.iter().filter(admits).map(|phone| &phone.id).collect();
            for limit in [1, 7, 200] {
                let pages = rig.pages(&grants, limit, filter);
                let shown: Vec<_> = pages.iter().flat_map(|page| &page.devices).map(|phone| &phone.id).collect();
                assert_eq!(shown, expected, "{limit} {filter:?} {granted:?}");
                assert!(pages.iter().all(|page| page.devices.len() <= limit.into()));
            }
        }
    }
}

#[test]
fn a_caller_waits_whole_seconds_and_never_less_than_the_pause() {
    for (pause, expected) in [(2_000, 2), (2_001, 3), (1, 1)] {
        let staged = Staged { pause: Some(Duration::from_millis(pause)), ..Staged::default() };
        let platforms = Platforms::default().with(name("phone"), Arc::new(staged));
        let phones = Phones::new(Arc::new(platforms), ProxyHosts::Public, Clock::manual(Timestamp(0)));
        assert_eq!(phones.retry_after_seconds(&id(1)), Some(expected), "{pause} ms");
    }
}
