//! Failovers to a standby that lacks commits. The leader was told of one of them. The next leader
//! must say so, in its log and at `/readyz`, before anything more is sent.

use super::super::load::CLIENTS;
use super::{Cluster, ClusterOptions};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const BATCHES: &str = "SELECT sum(batches) FROM writer JOIN replica USING (epoch) WHERE state = 'serving'";

const NOTICED: &str = "the store has lost acknowledged writes";

/// The server acknowledges a write that is lost later, and the next leader notices the loss.
const PATIENCE: Duration = Duration::from_secs(60);

/// The writes of a burst are then being sent.
const BURST: Duration = Duration::from_millis(100);

/// A request arrives that the former server has still allowed.
const TRANSIT: Duration = Duration::from_secs(1);

/// A replica does not run, so that commands can use its folder.
const ALONE: Duration = Duration::from_secs(15);

/// Returns the number of failovers after which the next leader has noticed the loss before anything
/// was sent.
pub(super) async fn lose(cluster: &mut Cluster, options: &ClusterOptions) -> u64 {
    let mut noticed = 0;
    for number in 1..=options.failovers {
        wait_for_writes(cluster, options.writes * number / (options.failovers + 1)).await;
        noticed += u64::from(lose_once(cluster).await);
    }
    wait_for_writes(cluster, options.writes).await;
    noticed
}

async fn wait_for_writes(cluster: &Cluster, count: u64) {
    while cluster.load.count_acknowledged() < count {
        sleep(Duration::from_millis(100)).await;
    }
    cluster.wait_until_one_leads().await;
}

async fn lose_once(cluster: &mut Cluster) -> bool {
    sleep(Duration::from_secs(5)).await;
    cluster.servers.standby_follows().await.expect("the standby follows");
    cluster.servers.cut_replication();
    let before = count_batches(cluster).await;
    let told = wait_for(async || Some(count_batches(cluster).await).filter(|now| *now > before)).await;
    let told = told.expect("the leader writes");
    let logs: Vec<usize> = cluster.replicas.iter().map(|replica| replica.log().len()).collect();
    // Many writes are about to be sent when the server ends.
    cluster.load.allow(CLIENTS);
    sleep(BURST).await;
    cluster.servers.end_primary().expect("it ran");
    sleep(TRANSIT).await;
    let sent = cluster.pads.read_writes().len();
    cluster.servers.promote().await.expect("the standby takes over");
    let noticed = wait_for(async || {
        for (replica, from) in cluster.replicas.iter().zip(&logs) {
            let is_logged = replica.log().get(*from..).is_some_and(|log| log.contains(NOTICED));
            let readiness = replica.readiness().await.map(|answer| answer.body).unwrap_or_default();
            if is_logged && readiness.contains(NOTICED) {
                return Some(format!("{}: {}", replica.name, readiness.trim_end()));
            }
        }
        None
    });
    let noticed = noticed.await;
    cluster.servers.remake_standby().await.expect("another standby follows");
    let first = &cluster.replicas[0];
    first.kill(ALONE).await;
    let sent = cluster.pads.read_writes().split_off(sent);
    println!("a failover lost something of {told} batches; {noticed:?}; sent before the loss was accepted: {sent:?}");
    for line in ["cluster accept-loss --yes", "doctor"] {
        let (code, said) = first.operate(line).await;
        assert_eq!(code, 0, "{line}: {said}");
    }
    // A leader that the loss has ended notices that with its next beat.
    sleep(ALONE).await;
    cluster.wait_until_one_leads().await;
    let leader = cluster.leader().expect("one leads");
    let (code, said) = leader.operate("key confirm --all").await;
    assert_eq!(code, 0, "{said}");
    noticed.is_some() && sent.is_empty()
}

async fn wait_for<T>(find: impl AsyncFn() -> Option<T>) -> Option<T> {
    let found = timeout(PATIENCE, async {
        loop {
            match find().await {
                Some(found) => break found,
                None => sleep(Duration::from_millis(100)).await,
            }
        }
    });
    found.await.ok()
}

async fn count_batches(cluster: &Cluster) -> u64 {
    let told = cluster.servers.query(BATCHES).await.expect("the server answers");
    told.parse().unwrap_or_default()
}
