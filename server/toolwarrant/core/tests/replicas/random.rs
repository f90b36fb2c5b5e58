//! Random schedules: replicas start, are cut off, come back, and are replaced, while keys are made
//! and revoked. After each confirmed revocation, no replica answers the key.

use crate::harness::{TestReplica, in_time, origin, sleep};
use crate::link::{StoreLink, Weather};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::registry::{Durability, NewKey};
use toolwarrant_memory::Memory;

const WORLDS: u64 = 40;

/// Keys whose revocation was confirmed, by id.
type Gone = Arc<Mutex<BTreeMap<String, NewKey>>>;

#[tokio::test(start_paused = true)]
async fn after_a_confirmed_revocation_no_replica_answers_the_key() {
    let (mut confirmed, mut evicted, mut refused) = (0, 0, 0);
    for seed in 0..WORLDS {
        let outcome = play(seed).await;
        confirmed += outcome[0];
        evicted += outcome[1];
        refused += outcome[2];
    }
    // The worlds have what they are made for.
    assert!(confirmed > WORLDS && evicted > WORLDS / 4 && refused > WORLDS / 4, "{confirmed} {evicted} {refused}");
}

/// Plays a world. Returns the numbers of confirmed revocations, of evicted replicas, and of
/// revocations that were not stored.
async fn play(seed: u64) -> [u64; 3] {
    let (store, mut random) = (Memory::default(), SplitMix(seed));
    let (mut runs, gone) = (Vec::new(), Gone::default());
    let count = 2 + random.below(3);
    for n in 0..count {
        runs.push(start(&store, n, &mut random).await);
    }
    let owner = runs[0].create("app").await;
    let (mut keys, mut revoking, mut refused) = (Vec::new(), JoinSet::new(), 0);
    for _ in 0..60 {
        // Also a run that was replaced and still runs.
        let run = Arc::clone(&runs[random.below(runs.len() as u64) as usize]);
        match random.below(12) {
            0..3 => run.set([Weather::Down, Weather::Silent, Weather::Deaf][random.below(3) as usize]),
            3..6 => run.set(Weather::Fair),
            6 => runs.iter().for_each(|run| run.set(Weather::Fair)),
            7 => runs.push(start(&store, random.below(count), &mut random).await),
            8..10 => keys.extend(in_time(run.registry.issue_key(&owner, None, &origin())).await.ok()),
            _ if keys.is_empty() => {}
            _ => {
                let (key, gone) = (keys.swap_remove(random.below(keys.len() as u64) as usize), Arc::clone(&gone));
                revoking.spawn(async move {
                    let changed = run.registry.revoke_key(&key.key_id, &origin()).await.ok()?;
                    if changed.durability != Durability::Stored {
                        return Some(false);
                    }
                    gone.lock().expect("no panic").insert(key.key_id.clone(), key);
                    Some(true)
                });
            }
        }
        for _ in 0..1 + random.below(100) {
            sleep(20).await;
            check(&runs, &gone, seed);
        }
        while let Some(done) = revoking.try_join_next() {
            refused += u64::from(done.expect("no panic") == Some(false));
        }
    }
    let evicted = runs.iter().filter(|run| run.membership.is_finished()).count() as u64;
    let confirmed = gone.lock().expect("no panic").len() as u64;
    [confirmed, evicted, refused]
}

async fn start(store: &Memory, n: u64, random: &mut SplitMix) -> Arc<TestReplica> {
    let link = StoreLink::join(store, &format!("replica {n}"), random.next(), random.below(60));
    Arc::new(TestReplica::join(link).await)
}

fn check(runs: &[Arc<TestReplica>], gone: &Gone, seed: u64) {
    for key in gone.lock().expect("no panic").values() {
        for run in runs {
            assert!(run.answer(key).is_err(), "world {seed}: {} is answered by {:?}", key.key_id, run.link);
        }
    }
}
