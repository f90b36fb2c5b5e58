//! The schedule of lists, on simulated time.

use super::*;
use crate::adapter_kit::phone_ledger::refresh::{EVERY, FIRST_PAUSE, Refresh, SOONEST, Source};
use crate::phones::port::Unreachable;
use async_trait::async_trait;
use std::sync::Mutex as Lock;

struct Slow {
    clock: Clock,
    takes: Duration,
    told: Lock<SlowState>,
}

#[derive(Default)]
struct SlowState {
    down: bool,
    pauses: Option<Duration>,
    paused_until: Option<Timestamp>,
    /// In seconds since the start.
    lists: Vec<f64>,
}

impl Slow {
    fn lock(&self) -> std::sync::MutexGuard<'_, SlowState> {
        self.told.lock().unwrap()
    }
}

#[async_trait]
impl Source<TestRow> for Slow {
    async fn list(&self) -> Result<Vec<TestRow>, Unreachable> {
        self.lock().lists.push(self.clock.now().since(START).as_secs_f64());
        tokio::time::sleep(self.takes).await;
        let mut state = self.lock();
        let SlowState { down, pauses, .. } = *state;
        state.paused_until = pauses.filter(|_| down).map(|pause| self.clock.now().plus(pause));
        if down { Err(Unreachable("it is down".into())) } else { Ok(rows("A B")) }
    }

    fn pause_end(&self) -> Option<Timestamp> {
        self.lock().paused_until
    }
}

const START: Timestamp = Timestamp(1_000_000_000);

struct Kit {
    clock: Clock,
    ledger: Arc<PhoneLedger<TestRow>>,
    slow: Arc<Slow>,
    refresh: Refresh<TestRow>,
}

async fn kit(takes: Duration) -> Kit {
    let clock = Clock::start_at(START);
    let ledger = open(Arc::new(Memory::default()), &clock).await;
    let slow = Arc::new(Slow { clock: clock.clone(), takes, told: Lock::default() });
    let refresh = Refresh::new(Arc::clone(&ledger), slow.clone());
    Kit { clock, ledger, slow, refresh }
}

impl Kit {
    async fn run(&self, time: Duration, mut meanwhile: impl FnMut()) {
        let end = self.clock.now().plus(time);
        let watch = async {
            while self.clock.now() < end {
                tokio::time::sleep(Duration::from_secs(1)).await;
                meanwhile();
            }
        };
        tokio::select! {
            () = self.refresh.run() => unreachable!("it never ends"),
            () = watch => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_platform_is_listed_each_half_minute_and_no_row_is_shown_that_is_older_than_a_minute() {
    for takes in [0, 5, 25] {
        let kit = kit(Duration::from_secs(takes)).await;
        let mut oldest = Duration::ZERO;
        kit.run(Duration::from_mins(10), || oldest = oldest.max(kit.ledger.age().unwrap_or_default())).await;
        assert!((20..=21).contains(&kit.slow.lock().lists.len()), "{takes}");
        assert!(oldest <= EVERY + Duration::from_secs(takes) && oldest < SHOWN_FOR, "{takes}: {oldest:?}");
        assert!(kit.refresh.is_reachable());
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_needs_a_newer_list_joins_the_running_one() {
    let kit = kit(Duration::from_secs(4)).await;
    let asked = kit.clock.now();
    let ask = |moment| kit.refresh.at_least(moment);
    let late = async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ask(kit.clock.now()).await
    };
    let (one, two, three, four) = tokio::join!(ask(asked), ask(asked), late(), late());
    assert!([one, two, three, four, ask(asked).await].iter().all(Result::is_ok));
    assert_eq!(kit.slow.lock().lists, [0.0, 4.0]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_met_with_growing_pauses_and_its_end_is_seen_within_one() {
    let kit = kit(Duration::ZERO).await;
    kit.run(Duration::from_secs(1), || ()).await;
    kit.slow.lock().down = true;
    kit.refresh.wake();
    let mut asked = 0;
    kit.run(Duration::from_mins(10), || {
        asked += 1;
        kit.refresh.wake();
    })
    .await;
    assert!(!kit.refresh.is_reachable() && asked >= 600);
    let lists = std::mem::take(&mut kit.slow.lock().lists);
    let pauses: Vec<f64> = lists[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, whole) in pauses.iter().zip([2.0, 4.0, 8.0, 16.0, 30.0, 30.0]) {
        assert!((whole..=whole + 1.01).contains(pause), "{pause} of {whole}");
    }
    assert!(pauses.len() < 50, "{pauses:?}");
    kit.slow.lock().down = false;
    kit.run(EVERY + Duration::from_secs(1), || ()).await;
    assert!(kit.refresh.is_reachable());
    assert!(kit.ledger.age().unwrap() < EVERY);
    assert!(FIRST_PAUSE < EVERY);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_pauses_is_listed_as_soon_as_its_pause_ends() {
    for (pause, gap) in [(0, FIRST_PAUSE), (30, EVERY), (300, Duration::from_mins(5))] {
        let kit = kit(Duration::from_secs(10)).await;
        (kit.slow.lock().down, kit.slow.lock().pauses) = (true, Some(Duration::from_secs(pause)));
        kit.run(Duration::from_mins(20), || ()).await;
        let lists = std::mem::take(&mut kit.slow.lock().lists);
        let gap = gap.as_secs_f64() + 10.0;
        assert!(lists.len() > 2 && lists.windows(2).all(|pair| pair[1] - pair[0] == gap), "{pause}: {lists:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_write_the_next_list_comes_sooner_but_not_at_once() {
    let kit = kit(Duration::ZERO).await;
    kit.run(Duration::from_secs(3), || ()).await;
    kit.refresh.wake();
    kit.run(Duration::from_secs(60), || ()).await;
    assert_eq!(kit.slow.lock().lists[..3], [0.0, 3.0, 13.0]);
    kit.slow.lock().lists.clear();
    kit.run(Duration::from_mins(1), || kit.refresh.wake()).await;
    assert!(kit.slow.lock().lists.len() <= 7, "{:?}", kit.slow.lock().lists);
    assert!(SOONEST < EVERY);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_asks_anew_is_answered_in_a_pause_and_the_schedule_goes_on_from_there() {
    let kit = kit(Duration::ZERO).await;
    (kit.slow.lock().down, kit.slow.lock().pauses) = (true, Some(Duration::from_hours(1)));
    let ask = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        kit.refresh.at_least(kit.clock.now()).await.unwrap_err();
        kit.slow.lock().down = false;
        tokio::time::sleep(Duration::from_secs(1)).await;
        kit.refresh.at_least(kit.clock.now()).await.unwrap();
    };
    tokio::join!(kit.run(Duration::from_secs(125), || ()), ask);
    let lists = kit.slow.lock().lists.clone();
    assert_eq!(lists[..3], [0.0, 60.0, 61.0]);
    assert!(lists.len() >= 5, "it is listed each half minute again: {lists:?}");
}
