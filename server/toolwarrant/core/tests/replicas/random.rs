//! Random schedules: replicas start, are cut off, come back, and are replaced, while keys are made
//! and revoked. After each confirmed revocation, no replica answers the key.

use crate::harness::{Replica, origin, sleep};
use crate::link::{Link, Weather};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::access::Credentials;
use toolwarrant_core::registry::{Durability, NewKey};
use toolwarrant_store::testing::memory::Memory;

const WORLDS: u64 = 40;

/// All runs of replicas, also those that have been replaced and still run.
type Runs = Arc<Mutex<Vec<Arc<Replica>>>>;

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
    let (runs, gone) = (Runs::default(), Arc::new(Mutex::new(BTreeMap::<String, NewKey>::new())));
    let count = 2 + random.below(3);
    for n in 0..count {
        start(&store, &runs, n, &mut random).await;
    }
    let owner = runs.lock().unwrap()[0].create("app").await;
    let (mut keys, mut revoking, mut refused) = (Vec::new(), JoinSet::new(), 0);
    for _ in 0..60 {
        let run = {
            let runs = runs.lock().unwrap();
            Arc::clone(&runs[random.below(runs.len() as u64) as usize])
        };
        match random.below(12) {
            0..3 => run.set([Weather::Down, Weather::Silent, Weather::Deaf][random.below(3) as usize]),
            3..6 => run.set(Weather::Fair),
            6 => runs.lock().unwrap().iter().for_each(|run| run.set(Weather::Fair)),
            7 => start(&store, &runs, random.below(count), &mut random).await,
            8..10 => keys.extend(run.registry.issue_key(&owner, None, &origin()).await.ok()),
            _ if keys.is_empty() => {}
            _ => {
                let (key, gone) = (keys.swap_remove(random.below(keys.len() as u64) as usize), Arc::clone(&gone));
                revoking.spawn(async move {
                    let changed = run.registry.revoke_key(&key.key_id, &origin()).await.ok()?;
                    if changed.durability != Durability::Stored {
                        return Some(false);
                    }
                    gone.lock().unwrap().insert(key.key_id.clone(), key);
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
    let evicted = runs.lock().unwrap().iter().filter(|run| run.membership.is_finished()).count() as u64;
    let confirmed = gone.lock().unwrap().len() as u64;
    [confirmed, evicted, refused]
}

async fn start(store: &Memory, runs: &Runs, n: u64, random: &mut SplitMix) {
    let link = Link::join(store, &format!("replica {n}"), random.next(), random.below(60));
    let run = Replica::join(link).await;
    runs.lock().unwrap().push(Arc::new(run));
}

fn check(runs: &Runs, gone: &Mutex<BTreeMap<String, NewKey>>, seed: u64) {
    for key in gone.lock().unwrap().values() {
        for run in &*runs.lock().unwrap() {
            let shown = Credentials { key_id: &key.key_id, secret: key.secret.expose() };
            let answered = run.registry.access().authenticate(shown, None, &run.clock).is_ok();
            assert!(!answered, "world {seed}: {} is answered by {:?}", key.key_id, run.link);
        }
    }
}
