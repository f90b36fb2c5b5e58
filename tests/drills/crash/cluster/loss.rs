//! Failovers to a standby that lacks commits: each replica that was told of one of them must say
//! so before it sends anything more.

use super::{Cluster, ClusterOptions};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The batches of each replica that the server has. The server acknowledges each to its replica.
const BATCHES: &str = "SELECT json_object_agg(name, batches) FROM (SELECT name, sum(batches) AS batches
    FROM writer JOIN replica USING (epoch) WHERE state = 'serving' GROUP BY name) told";

/// The words of a replica that has noticed a loss, in its log.
const NOTICED: &str = "the store has lost acknowledged writes";

/// Time in which replicas are told of something that is lost later, and in which they notice it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time in which a replica does not run, so that commands can use its folder.
const ALONE: Duration = Duration::from_secs(15);

/// Fails over, loses something each time, and accepts the loss. Returns the number of failovers
/// after which every replica that was told of a lost commit has said so.
pub(super) async fn lose(cluster: &mut Cluster, options: &ClusterOptions) -> u64 {
    let mut noticed = 0;
    for _ in 0..options.failovers {
        for replica in &cluster.replicas {
            replica.wait_until_it_serves().await;
        }
        sleep(Duration::from_secs(5)).await;
        cluster.servers.standby_follows().await.expect("the standby follows");
        cluster.servers.cut_replication();
        let before = batches(cluster).await;
        let grown = |now: &Map<String, Value>| now.iter().all(|(name, batches)| before.get(name) != Some(batches));
        let told = timeout(PATIENCE, async {
            loop {
                match batches(cluster).await {
                    now if grown(&now) => break now,
                    _ => sleep(Duration::from_millis(100)).await,
                }
            }
        });
        let told = told.await.expect("each replica writes");
        let logs: Vec<usize> = cluster.replicas.iter().map(|replica| replica.log().len()).collect();
        cluster.servers.fail_over().await.expect("the standby takes over");
        let has_noticed = || {
            cluster.replicas.iter().zip(&logs).all(|(replica, from)| {
                !told.contains_key(&replica.name) || replica.log().get(*from..).is_some_and(|log| log.contains(NOTICED))
            })
        };
        let all = timeout(PATIENCE, async {
            while !has_noticed() {
                sleep(Duration::from_millis(100)).await;
            }
        });
        let all_have_noticed = all.await.is_ok();
        noticed += u64::from(all_have_noticed);
        println!(
            "a failover lost something that {} replicas were told of; all noticed: {all_have_noticed}",
            told.len()
        );
        cluster.servers.remake_standby().await.expect("another standby follows");
        cluster.replicas[0].kill(ALONE).await;
        for line in ["cluster accept-loss --yes", "key confirm --all"] {
            let (code, said) = cluster.replicas[0].operate_alone(line).await;
            assert_eq!(code, 0, "{line}: {said}");
        }
        // The others were evicted, and end with their next beat.
        sleep(ALONE).await;
    }
    for replica in &cluster.replicas {
        replica.wait_until_it_serves().await;
    }
    noticed
}

async fn batches(cluster: &Cluster) -> Map<String, Value> {
    let told = cluster.servers.query(BATCHES).await.expect("the server answers");
    serde_json::from_str(&told).unwrap_or_default()
}
