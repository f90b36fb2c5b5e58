//! Failovers to a standby that lacks commits: each replica that was told of one of them must say
//! so before anything more is sent. The replicas say it in their logs. The double's journal shows
//! what was sent.

use super::super::load::CLIENTS;
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

/// Time after which the writes of a burst are being sent.
const BURST: Duration = Duration::from_millis(100);

/// Time in which a request arrives that the former server has still allowed.
const TRANSIT: Duration = Duration::from_secs(1);

/// Time in which a replica does not run, so that commands can use its folder.
const ALONE: Duration = Duration::from_secs(15);

/// Fails over between the writes, loses something each time, and accepts the loss. Returns the
/// number of failovers after which every replica that was told of a lost commit has said so, and
/// nothing was sent before the loss was accepted.
pub(super) async fn lose(cluster: &mut Cluster, options: &ClusterOptions) -> u64 {
    let mut noticed = 0;
    for number in 1..=options.failovers {
        let due = options.writes * number / (options.failovers + 1);
        wait_for_writes(cluster, due).await;
        noticed += u64::from(lose_once(cluster).await);
    }
    wait_for_writes(cluster, options.writes).await;
    noticed
}

/// Waits until clients were told of that many writes, and until each replica serves.
async fn wait_for_writes(cluster: &Cluster, count: u64) {
    while cluster.load.count_acknowledged() < count {
        sleep(Duration::from_millis(100)).await;
    }
    for replica in &cluster.replicas {
        replica.wait_until_it_serves().await;
    }
}

async fn lose_once(cluster: &mut Cluster) -> bool {
    sleep(Duration::from_secs(5)).await;
    cluster.servers.standby_follows().await.expect("the standby follows");
    cluster.servers.cut_replication();
    let before = batches(cluster).await;
    let count = cluster.replicas.len();
    let grown = |now: &Map<String, Value>| {
        now.len() == count && now.iter().all(|(name, batches)| before.get(name) != Some(batches))
    };
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
    // Many writes are about to be sent when the server ends.
    cluster.load.allow(CLIENTS);
    sleep(BURST).await;
    cluster.servers.end_primary().await.expect("it ran");
    sleep(TRANSIT).await;
    let sent = cluster.pads.read_writes().len();
    cluster.servers.promote().await.expect("the standby takes over");
    let kept = batches(cluster).await;
    let lost: Vec<&String> =
        told.iter().filter(|(name, batches)| kept.get(*name) != Some(batches)).map(|(name, _)| name).collect();
    assert_eq!(lost.len(), count, "something of each replica is lost: {told:?}, {kept:?}");
    let has_noticed = || {
        let mut logs = cluster.replicas.iter().zip(&logs);
        logs.all(|(replica, from)| replica.log().get(*from..).is_some_and(|log| log.contains(NOTICED)))
    };
    let all = timeout(PATIENCE, async {
        while !has_noticed() {
            sleep(Duration::from_millis(100)).await;
        }
    });
    let all_have_noticed = all.await.is_ok();
    cluster.servers.remake_standby().await.expect("another standby follows");
    cluster.replicas[0].kill(ALONE).await;
    let sent = cluster.pads.read_writes().split_off(sent);
    println!(
        "a failover lost something that {} replicas were told of; all noticed: {all_have_noticed}; sent before the loss was accepted: {sent:?}",
        lost.len()
    );
    for line in ["cluster accept-loss --yes", "doctor", "key confirm --all"] {
        let (code, said) = cluster.replicas[0].operate_alone(line).await;
        assert_eq!(code, 0, "{line}: {said}");
    }
    // The others were evicted, and end with their next beat.
    sleep(ALONE).await;
    all_have_noticed && sent.is_empty()
}

async fn batches(cluster: &Cluster) -> Map<String, Value> {
    let told = cluster.servers.query(BATCHES).await.expect("the server answers");
    serde_json::from_str(&told).unwrap_or_default()
}
