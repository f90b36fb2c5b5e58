//! Budgets that replicas share, in simulated worlds: the store is slow and loses calls, replicas
//! die, and their clocks differ. Time is tokio's, paused.

mod world;

use std::time::Duration;
use tokio::time::{Instant, sleep};
use toolwarrant_core::documents::DocumentStore;
use toolwarrant_core::limit::Shortage;
use world::{Kind, Nature, World, WorldRandom};

const MINUTE: Duration = Duration::from_mins(1);

/// Clocks that differ as much as they may, in three ways.
const CLOCKS: [[u64; 4]; 3] = [[0, 300, 700, 1_000], [0, 1_000, 1_000, 1_000], [1_000, 0, 0, 0]];

/// Sends random requests for that many milliseconds: few, or more than the budget has. In turns,
/// those come evenly, stay on one replica, and come all at once.
async fn send_random(world: &mut World, random: &mut WorldRandom, is_rush: bool, millis: u64) {
    let end = world.now() + millis;
    let gap = if is_rush { 60 } else { 240_000 / u64::from(world.nature.limit) };
    while world.now() < end {
        let (shape, place) = (random.below(4), random.below(world.replicas.len() as u64) as usize);
        let until = end.min(world.now() + 500 + random.below(20_000));
        while world.now() < until {
            let place = if shape == 0 { place } else { random.below(world.replicas.len() as u64) as usize };
            let most = if is_rush && random.below(20) == 0 { world.nature.limit } else { 3 };
            let n = 1 + random.below(most.into()) as u32;
            let kind = if random.below(4) == 0 { Kind::Head(n, random.below(3_000)) } else { Kind::Alone(n) };
            world.send(place, kind, Duration::from_millis(random.one(&[1, 10, 1_000, 9_000])));
            let is_burst = is_rush && shape == 1 && random.below(30) > 0;
            sleep(Duration::from_millis(if is_burst { 0 } else { random.below(2 * gap + 1) })).await;
        }
    }
}

/// Plays a world in which replicas are cut off or die. Returns its end.
async fn play(seed: u64, counts_from_grant: bool) -> World {
    let mut random = WorldRandom(seed);
    let mut world = World::new(seed, Nature { counts_from_grant, ..Nature::wild(&mut random) });
    for _ in 0..3 {
        let place = random.below(world.replicas.len() as u64) as usize;
        let quiet = 5_000 + random.below(20_000);
        send_random(&mut world, &mut random, false, quiet).await;
        // One replica loses its store, or dies.
        let (event, time) = (random.below(3), random.below(14_000));
        world.cut(place, event > 0);
        let few = random.below(2) == 0;
        send_random(&mut world, &mut random, few, time).await;
        if event == 2 {
            world.kill(place);
        }
        send_random(&mut world, &mut random, true, 66_000).await;
        world.cut(place, false);
        // Long allowances are granted only while half of the budget is free.
        sleep(MINUTE + Duration::from_secs(5)).await;
    }
    world.settle().await;
    world
}

#[tokio::test(start_paused = true)]
async fn no_60_seconds_have_more_than_the_limit_whatever_happens() {
    let mut full = 0;
    for seed in 1..=40 {
        let world = play(seed, false).await;
        let (most, limit) = (world.journal.most(0), world.nature.limit);
        assert!(most <= limit, "seed {seed}: {most} in 60 seconds, {:?}", world.nature);
        full += u32::from(most * 10 >= limit * 9);
    }
    assert!(full > 35, "the budget was nearly spent in {full} worlds alone");
}

#[tokio::test(start_paused = true)]
async fn an_allowance_that_counts_from_its_grant_alone_breaks_the_limit() {
    for seed in 1..=10_000 {
        let world = play(seed, true).await;
        if world.journal.most(0) > world.nature.limit {
            return println!("caught by seed {seed}");
        }
    }
    panic!("no world has more than the limit");
}

#[tokio::test(start_paused = true)]
async fn of_an_even_demand_hardly_less_than_the_limit_is_admitted() {
    for clocks in CLOCKS {
        let mut world = World::new(1, Nature::calm(300, &clocks));
        world.run(300, 6 * MINUTE).await;
        for minute in 1..6 {
            let admitted = world.journal.count_admitted(minute * 60_000..(minute + 1) * 60_000, None);
            assert!((290..=300).contains(&admitted), "{admitted} in minute {minute}, {clocks:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_replica_starves_whatever_its_clock_and_its_way_to_the_store() {
    for (limit, minutes) in [(300, 3), (1, 8)] {
        for (clocks, slowest) in CLOCKS.into_iter().zip([100, 10, 10]) {
            let mut world = World::new(1, Nature { slowest, ..Nature::calm(limit, &clocks) });
            world.run(3 * limit.max(50), 3 * minutes * MINUTE).await;
            for place in 0..4 {
                for part in 1..3 {
                    let [from, until] = [part, part + 1].map(|part| part * 60_000 * u64::from(minutes));
                    let (admitted, fair) =
                        (world.journal.count_admitted(from..until, Some(place)), limit * minutes / 4);
                    assert!(admitted * 3 >= fair, "{admitted} of {fair} at {place}, {clocks:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_when_the_same_requests_fit() {
    let mut refused = 0;
    for seed in 1..=50 {
        let mut random = WorldRandom(seed);
        let mut world = World::new(seed, Nature { loss: 0, ..Nature::wild(&mut random) });
        for _ in 0..6 {
            let is_rush = random.below(2) == 0;
            send_random(&mut world, &mut random, is_rush, 20_000).await;
            world.settle().await;
            // No allowance is on its way.
            sleep(Duration::from_secs(2)).await;
            let place = random.below(world.replicas.len() as u64) as usize;
            let n = 1 + random.below(world.nature.limit.into()) as u32;
            let Err(Shortage::Spent(retry)) = world.ask(place, n).await else { continue };
            assert!((1..=75).contains(&retry.seconds), "seed {seed}: {retry:?}");
            sleep(Duration::from_secs(retry.seconds)).await;
            let again = world.ask(place, n).await;
            assert_eq!(again, Ok(()), "seed {seed}: {n} after {retry:?}, {:?}", world.nature);
            refused += 1;
        }
    }
    assert!(refused > 50, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_a_replica_holds_without_need_is_a_16th_and_comes_back_at_its_end_or_at_a_stop() {
    // Until the end, at a stop, and after a kill: the seconds, and what another one can have.
    for (stops, kills, seconds, free) in [
        (false, false, 0, 280),
        (false, false, 9, 280),
        (false, false, 11, 298),
        (true, false, 0, 298),
        (false, true, 60, 280),
        (false, true, 72, 300),
    ] {
        let mut world = World::new(1, Nature::calm(300, &[0, 0]));
        assert_eq!([world.ask(0, 1).await, world.ask(0, 1).await], [Ok(()), Ok(())]);
        if stops {
            let stopped = world.replicas[0].clone();
            stopped.budgets.give_back().await;
            assert_eq!(world.ask(0, 1).await, Err(Shortage::Unknown));
        }
        if kills {
            world.kill(0);
        }
        sleep(Duration::from_secs(seconds)).await;
        let case = (stops, kills, seconds);
        assert!(matches!(world.ask(1, free + 1).await, Err(Shortage::Spent(_))), "{case:?}");
        assert_eq!(world.ask(1, free).await, Ok(()), "{case:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lower_limit_holds_after_ten_seconds_and_a_higher_one_at_once() {
    for seed in 1..=10 {
        let mut random = WorldRandom(seed);
        let mut world = World::new(seed, Nature { limit: 300, ..Nature::wild(&mut random) });
        send_random(&mut world, &mut random, true, 90_000).await;
        world.set_limit(40);
        let changed = world.now();
        send_random(&mut world, &mut random, true, 90_000).await;
        world.settle().await;
        let most = world.journal.most(changed + 11_000);
        assert!(most <= 40, "seed {seed}: {most}");
        sleep(2 * MINUTE).await;
        assert!(matches!(world.ask(0, 41).await, Err(Shortage::Spent(retry)) if retry.seconds == 60));
        world.set_limit(41);
        assert!(world.nature.loss > 0 || world.ask(0, 41).await.is_ok(), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_store_what_is_held_passes_and_the_rest_is_unknown_after_two_seconds() {
    let world = World::new(1, Nature::calm(300, &[0, 0]));
    assert_eq!([world.ask(0, 1).await, world.ask(0, 1).await], [Ok(()), Ok(())]);
    world.cut(0, true);
    let start = Instant::now();
    assert_eq!(world.ask(0, 18).await, Ok(()));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(world.ask(0, 1).await, Err(Shortage::Unknown));
    assert_eq!(start.elapsed().as_secs(), 2);
    assert!(matches!(world.ask(0, 301).await, Err(Shortage::Spent(retry)) if retry.seconds == 60));
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_share_an_exchange_and_a_busy_application_seldom_waits() {
    let mut world = World::new(1, Nature::calm(300, &[0, 0, 0, 0]));
    (0..100).for_each(|_| world.send(0, Kind::Alone(1), MINUTE));
    world.settle().await;
    assert_eq!((world.journal.count_admitted(0..60_000, None), world.journal.counts().reads), (100, 1));

    let mut world = World::new(1, Nature::calm(6_000, &[0, 0, 0, 0]));
    world.run(1_500, 2 * MINUTE).await;
    assert_eq!(world.journal.counts().waited, 8, "the first two on each replica");
}

#[tokio::test(start_paused = true)]
async fn the_log_is_bounded_and_an_exchange_serves_many_requests() {
    // Reads and puts for 1,000 admitted requests, at most.
    for (limit, per_minute, expected) in [
        (300, 300, 2_100),
        (300, 80, 1_300),
        (300, 20, 2_100),
        (6_000, 6_000, 250),
        (6_000, 1_500, 70),
        (u32::MAX, 20_000, 25),
    ] {
        let mut world = World::new(1, Nature::calm(limit, &CLOCKS[0]));
        world.run(per_minute, MINUTE).await;
        let (before, from) = (world.journal.counts(), world.now());
        world.run(per_minute, 2 * MINUTE).await;
        let (after, admitted) = (world.journal.counts(), world.journal.count_admitted(from..u64::MAX, None));
        let cost = (after.reads - before.reads + after.puts - before.puts) * 1_000 / u64::from(admitted);
        let log = world.store.documents("budget", vec!["app".to_owned()]).await.unwrap().remove(0).body;
        assert!(cost <= expected, "{cost} for {per_minute} of {limit}");
        assert!(log.len() < 8_192, "{} bytes for {per_minute} of {limit}", log.len());
    }
}
