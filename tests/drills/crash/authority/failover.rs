//! A failover that takes some time, as clients, monitors and operators see it.

use super::PreparedCluster;
use super::client::{ReplicaClient, is_success, list};
use crate::drills::crash::cluster::replica::Outage;
use crate::harness::program::operate;
use driver::get;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Time for which the answers are observed after the failover.
const AFTER: Duration = Duration::from_secs(15);

/// The length of the part of an answer that shows if it is another one.
const DISTINCT: usize = 40;

/// Time that the standby needs at the most to take over.
const PROMOTION: Duration = Duration::from_secs(2);

/// Lets no replica reach a server for that long, and lets the standby take over meanwhile. Prints
/// what the first replica says, whenever it changes.
pub(super) async fn show(site: &mut PreparedCluster, time: Duration) {
    site.wait_until_all_answer().await;
    let begun = Instant::now();
    let mut observers = JoinSet::new();
    let (mut client, request) = (ReplicaClient::new(&site.replicas), list(&site.key));
    let replica = Arc::clone(&site.replicas[0]);
    observers.spawn(observe("client", begun, async move || match client.send(0, &request).await {
        Some(answer) if is_success(&answer) => "success".to_owned(),
        Some(answer) => format!("{} {}", answer.status, answer.body),
        None => "no answer".to_owned(),
    }));
    let ready = Arc::clone(&replica);
    observers.spawn(observe("/readyz", begun, async move || match ready.run() {
        Some(run) => get(&format!("{}/readyz", run.monitor))
            .await
            .map_or_else(|why| why.to_string(), |answer| format!("{} {}", answer.status, answer.body)),
        None => "no run serves".to_owned(),
    }));
    observers.spawn(observe("doctor", begun, async move || {
        let (code, said) = operate(&replica.data, "doctor").await;
        let (said, _) = said.split_once("\nkept\n").unwrap_or((&said, ""));
        let notable = said.lines().filter(|line| !line.is_empty() && !line.contains("  ok  "));
        format!("exit code {code}\n{}", notable.collect::<Vec<_>>().join("\n"))
    }));
    sleep(Duration::from_secs(2)).await;
    println!("{:5.1} s  the server is gone", begun.elapsed().as_secs_f64());
    let mut cuts = JoinSet::new();
    for replica in &site.replicas {
        let replica = Arc::clone(replica);
        cuts.spawn(async move { replica.cut(Outage::Cut, time).await });
    }
    sleep(time.saturating_sub(PROMOTION)).await;
    site.servers.fail_over().await.expect("the standby takes over");
    cuts.join_all().await;
    println!("{:5.1} s  the standby has taken over, and waits for another one", begun.elapsed().as_secs_f64());
    site.servers.remake_standby().await.expect("another standby follows");
    println!("{:5.1} s  another standby follows", begun.elapsed().as_secs_f64());
    sleep(AFTER).await;
}

/// Prints what `look` returns, whenever it changes. Never returns.
async fn observe(what: &str, begun: Instant, mut look: impl AsyncFnMut() -> String) {
    let mut latest = String::new();
    loop {
        let said = look().await;
        // The rest has times and ports.
        if said.get(..DISTINCT) != latest.get(..DISTINCT) {
            println!("{:5.1} s  {what}: {}", begun.elapsed().as_secs_f64(), said.trim_end());
            latest = said;
        }
        sleep(Duration::from_millis(200)).await;
    }
}
