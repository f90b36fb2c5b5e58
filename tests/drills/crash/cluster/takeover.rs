//! Replicas that end under load without another fault, and the time until the tasks of each were
//! stepped by others.

use super::Cluster;
use super::replica::Replica;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// A way in which a replica ends. The name and the limits in seconds, for tasks that were not
/// being sent, and for those that were.
const ENDS: [(&str, u64, u64); 3] =
    [("kill", 8, 25), ("kill, and a start under its name", 2, 19), ("planned stop", 2, 19)];

/// Time in which all tasks of a replica that has ended must go on.
const PATIENCE: Duration = Duration::from_secs(40);

/// The times of all takeovers.
#[derive(Default)]
pub(super) struct Takeovers {
    /// For each way, the times of tasks that were not being sent, and of others.
    times: [[Vec<Duration>; 2]; 3],
    /// Tasks that did not go on.
    stuck: u64,
}

impl Takeovers {
    /// Ends a replica, and waits until others have taken its tasks over: drive them, and have
    /// stepped those that were being sent.
    pub(super) async fn measure(&mut self, cluster: &Cluster, number: u64) {
        let (way, servers) = (number as usize % 3, &cluster.servers);
        let replica = &cluster.replicas[number as usize % cluster.replicas.len()];
        replica.wait_until_it_serves().await;
        // Lists of an earlier start are over, and it has tasks. Some of them are being sent.
        sleep(Duration::from_secs(6)).await;
        cluster.pads.delay_answers(Duration::from_secs(3)).await;
        sleep(Duration::from_secs(3)).await;
        let query = async |sql: String| servers.query(&sql).await.expect("the server answers");
        let epoch = query(format!("SELECT max(epoch) FROM replica WHERE name = '{}'", replica.name)).await;
        let ended_at = end(replica, way).await;
        cluster.pads.delay_answers(Duration::ZERO).await;
        let tasks = "SELECT id, version, coalesce(state::json ->> 'phase' = 'sending', false) AS is_sent FROM task";
        let mut left = rows(&query(format!("SELECT json_agg(kept) FROM ({tasks} WHERE owner = {epoch}) kept")).await);
        while !left.is_empty() && ended_at.elapsed() < PATIENCE {
            sleep(Duration::from_millis(200)).await;
            let still = format!(
                "SELECT json_agg(kept) FROM json_to_recordset('{}') AS kept (id uuid, version integer, is_sent boolean)
                 WHERE CASE WHEN is_sent THEN NOT EXISTS (SELECT FROM event WHERE task = id AND event.version > kept.version
                                                          AND what NOT LIKE '%\"adopted\"%')
                       ELSE EXISTS (SELECT FROM task WHERE task.id = kept.id AND owner = {epoch}) END",
                Value::from(left.clone())
            );
            let still = rows(&query(still).await);
            for task in left.iter().filter(|task| !still.contains(task)) {
                self.times[way][usize::from(task["is_sent"] == true)].push(ended_at.elapsed());
            }
            left = still;
        }
        self.stuck += left.len() as u64;
        for task in left {
            println!("after {}, nobody has taken {task} over", ENDS[way].0);
        }
    }

    /// Returns the number of tasks that went on too late, or not at all.
    pub(super) fn late(&self) -> u64 {
        let late =
            |times: &[Duration], limit| times.iter().filter(|time| **time > Duration::from_secs(limit)).count() as u64;
        let ways = self.times.iter().zip(ENDS);
        self.stuck
            + ways.map(|([others, sent], (_, limit, of_sent))| late(others, limit) + late(sent, of_sent)).sum::<u64>()
    }

    pub(super) fn print(&self) {
        for (ways, (name, limit, of_sent)) in self.times.iter().zip(ENDS) {
            for ((times, limit), class) in ways.iter().zip([limit, of_sent]).zip(["not being sent", "being sent"]) {
                let mut times = times.clone();
                times.sort_unstable();
                let [p50, slowest] =
                    [times.get(times.len() / 2), times.last()].map(|time| time.map_or(0, Duration::as_millis));
                let count = times.len();
                println!("after a {name}: {count} tasks {class}, p50 {p50} ms, maximum {slowest} ms, limit {limit} s");
            }
        }
    }
}

/// Ends a replica. Returns the moment from which its takeover counts.
async fn end(replica: &Replica, way: usize) -> Instant {
    let begun = Instant::now();
    match way {
        0 => replica.kill(Duration::from_secs(20)).await,
        1 => replica.kill(Duration::ZERO).await,
        _ => replica.stop(Duration::from_secs(10)).await,
    }
    if way == 0 { begun } else { Instant::now() }
}

/// Parses rows; the text is empty if there are none.
fn rows(told: &str) -> Vec<Value> {
    if told.is_empty() { Vec::new() } else { serde_json::from_str(told).expect("rows") }
}
