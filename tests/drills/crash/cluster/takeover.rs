//! Ends of the leader under load, one at a time, and the time for which a client gets no answer.

use super::{Cluster, call_any};
use crate::harness::Key;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::sleep;

/// Goals in seconds. After a failover, the silence begins when the server can commit.
const ENDS: [(&str, u64); 5] = [
    ("kill, and a start at once", 2),
    ("kill, and no start", 7),
    ("stop of the process", 7),
    ("planned stop", 2),
    ("failover of PostgreSQL", 3),
];

const TOLERANCE: u64 = 3;

const AWAY: Duration = Duration::from_secs(25);

/// A run that has taken over still leads after this time, unless it loses its claim at once.
const STEADY: Duration = Duration::from_secs(5);

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Takeovers([Vec<Duration>; ENDS.len()]);

impl Takeovers {
    pub(super) async fn measure(&mut self, cluster: &mut Cluster, number: u64) {
        let way = number as usize % ENDS.len();
        cluster.wait_until_one_leads().await;
        let leader = cluster.leader().expect("one leads").clone();
        let answers = tokio::spawn(call_until_another_answers(
            cluster.load.addresses(),
            cluster.key.clone(),
            // The store alone knows a task that has ended.
            json!({"task_id": cluster.load.first_task(), "wait_seconds": 0}),
        ));
        sleep(Duration::from_secs(1)).await;
        let mut begun = Instant::now();
        match way {
            0 => leader.kill(Duration::ZERO).await,
            1 => leader.kill(AWAY).await,
            2 => leader.pause(AWAY).await,
            3 => leader.stop(AWAY).await,
            _ => {
                cluster.servers.fail_over().await.expect("the standby takes over");
                // Without a standby, no commit ends.
                cluster.servers.remake_standby().await.expect("another standby follows");
                begun = Instant::now();
            }
        }
        let mut answers = answers.await.expect("no panic");
        answers.retain(|at| *at > begun);
        let starts = [begun].into_iter().chain(answers.iter().copied());
        let silences = starts.zip(&answers).map(|(from, to)| to.duration_since(from));
        self.0[way].push(silences.max().unwrap_or_default());
    }

    pub(super) fn late(&self) -> u64 {
        let is_late = |goal: u64, silence: &Duration| *silence > Duration::from_secs(TOLERANCE * goal);
        let late =
            self.0.iter().zip(ENDS).map(|(times, (_, goal))| times.iter().filter(|time| is_late(goal, time)).count());
        late.sum::<usize>() as u64
    }

    pub(super) fn print(&self) {
        for (times, (name, goal)) in self.0.iter().zip(ENDS) {
            let mut times: Vec<_> = times.iter().map(Duration::as_secs_f64).collect();
            times.sort_unstable_by(f64::total_cmp);
            if let Some(slowest) = times.last() {
                let (count, p50) = (times.len(), times[(times.len() - 1) / 2]);
                println!("{name}: {count} times, no answer for p50 {p50:.1} s, maximum {slowest:.1} s, goal {goal} s");
            }
        }
    }
}

/// Reads until another run than at the first time has answered for a while. Returns the times of
/// the answers, and at last the present time.
async fn call_until_another_answers(
    addresses: watch::Receiver<Vec<SocketAddr>>,
    key: Key,
    task: Value,
) -> Vec<Instant> {
    let (begun, mut answers, mut first, mut answered_at) = (Instant::now(), Vec::new(), None, None);
    while begun.elapsed() < PATIENCE {
        let known = addresses.borrow().clone();
        if let Some((address, _)) = call_any(&known, &key, ("get_task", &task)).await {
            answers.push(Instant::now());
            if *first.get_or_insert(address) != address
                && answered_at.get_or_insert_with(Instant::now).elapsed() > STEADY
            {
                break;
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    answers.push(Instant::now());
    answers
}
