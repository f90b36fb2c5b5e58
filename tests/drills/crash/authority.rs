//! The drill of authority: what replicas on one PostgreSQL allow together, under load and faults.
//! Keys are revoked, signed requests are replayed, and calls go far beyond a budget. The clients
//! know when they sent each request and when they had the answer, and the drill compares these
//! times with the promises.

mod budget;
mod client;
mod failover;
mod replays;
mod revocations;

use super::cluster::PreparedCluster;
use super::options;
use crate::harness::Key;
use crate::harness::program::{json_of, key_of};
use client::{ReplicaClient, is_success, list};
use serde::Deserialize;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolwarrant_base::random::SplitMix;

/// The options of `cargo xtask drill authority`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthorityOptions {
    replicas: u64,
    revocations: u64,
    replays: u64,
    calls: u64,
    failover: u64,
    seed: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes most of an hour: cargo xtask drill authority"]
async fn replicas_together_allow_no_more_than_one_process() {
    let AuthorityOptions { replicas, revocations, replays, calls, failover, seed } = options();
    let Some(mut site) = PreparedCluster::prepare(replicas, 64 + replays / 7, true, None).await else {
        println!("PostgreSQL is not installed, so there is nothing to do");
        return;
    };
    let (mut random, mut broken, mut supervisors) = (SplitMix(seed), Vec::new(), JoinSet::new());
    for replica in &site.replicas {
        supervisors.spawn(Arc::clone(replica).supervise(|_, _| ()));
    }
    site.wait_until_all_answer().await;
    if revocations > 0 {
        broken.extend(revocations::revoke(&site, revocations, &mut random).await);
    }
    if replays > 0 {
        broken.extend(replays::replay(&mut site, replays, &mut random).await);
    }
    if calls > 0 {
        broken.extend(budget::overspend(&mut site, calls).await);
    }
    if failover > 0 {
        failover::show(&mut site, Duration::from_secs(failover)).await;
    }
    assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
    let _ = (fs::remove_dir_all(site.home.path()), fs::remove_file(site.pads.journal()));
}

impl PreparedCluster {
    /// Waits until each replica answers. One that was evicted and has not ended yet does not.
    async fn wait_until_all_answer(&self) {
        let (mut client, request) = (ReplicaClient::new(&self.replicas), list(&self.key));
        for replica in 0..self.replicas.len() {
            while !client.send(replica, &request).await.as_ref().is_some_and(is_success) {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// Makes an application that may use every device, and a key of it.
    async fn application(&self, name: &str, requests_per_minute: u32) -> Key {
        let data = &self.replicas[0].data;
        let limit = format!("--requests-per-minute {requests_per_minute}");
        json_of(data, &format!("app create {name} --permission device {limit}")).await;
        json_of(data, &format!("device assign {name} --all")).await;
        key_of(data, name).await
    }
}
