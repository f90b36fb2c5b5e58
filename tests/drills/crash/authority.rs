//! What replicas on one PostgreSQL allow together, under load and faults: keys that are revoked,
//! signed requests that are replayed, and calls far beyond a budget. The clients of this drill know
//! when they sent each request and when they had the answer, and it compares these times with the
//! promises.

mod budget;
mod client;
mod failover;
mod replays;
mod revocations;

use super::cluster::Site;
use super::cluster::replica::Replica;
use super::options;
use crate::harness::Key;
use crate::harness::program::{key_of, operate, send};
use driver::{PostgresPair, call};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
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

/// Replicas that serve, with everything that their clients need.
struct Stage {
    /// The supervisors of the replicas, which never end.
    _supervisors: JoinSet<()>,
    site: Site,
    replicas: Vec<Arc<Replica>>,
    devices: Vec<String>,
    random: SplitMix,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes most of an hour: cargo xtask drill authority"]
async fn replicas_together_allow_no_more_than_one_process() {
    let options: AuthorityOptions = options();
    let Some(mut stage) = Stage::start(&options).await else {
        println!("PostgreSQL is not installed, so there is nothing to do");
        return;
    };
    let mut broken = Vec::new();
    if options.revocations > 0 {
        broken.extend(revocations::revoke(&mut stage, options.revocations).await);
    }
    if options.replays > 0 {
        broken.extend(replays::replay(&mut stage, options.replays).await);
    }
    if options.calls > 0 {
        broken.extend(budget::overspend(&mut stage, options.calls).await);
    }
    if options.failover > 0 {
        failover::show(&mut stage, Duration::from_secs(options.failover)).await;
    }
    assert!(broken.is_empty(), "seed {}: {broken:#?}", options.seed);
    let _ = (fs::remove_dir_all(stage.site.home.path()), fs::remove_file(stage.site.pads.journal()));
}

impl Stage {
    /// Starts everything; `None` if PostgreSQL is not installed.
    async fn start(options: &AuthorityOptions) -> Option<Self> {
        let site = Site::prepare(options.replicas, 64 + options.replays / 8, true, None).await?;
        let (replicas, mut supervisors) = (site.replicas.clone(), JoinSet::new());
        for replica in &replicas {
            supervisors.spawn(Arc::clone(replica).supervise(|_, _| ()));
        }
        let mut stage =
            Self { _supervisors: supervisors, site, replicas, devices: Vec::new(), random: SplitMix(options.seed) };
        stage.wait_until_all_serve().await;
        let (address, mut page) = (stage.replicas[0].wait_until_it_serves().await.address, json!({"limit": 100}));
        while !page["cursor"].is_null() || stage.devices.is_empty() {
            let told = call(address, &stage.site.key, "list_devices", &page).await.expect("an answer");
            let told = told.expect("devices");
            let listed = told["devices"].as_array().expect("a list").iter();
            stage.devices.extend(listed.map(|device| device["device_id"].as_str().expect("an id").to_owned()));
            page["cursor"] = told["next_cursor"].clone();
        }
        Some(stage)
    }

    fn servers(&mut self) -> &mut PostgresPair {
        &mut self.site.servers
    }

    async fn wait_until_all_serve(&self) {
        for replica in &self.replicas {
            replica.wait_until_it_serves().await;
        }
        sleep(Duration::from_secs(2)).await;
    }

    /// Makes an application that may use every device, and a key of it.
    async fn application(&self, name: &str, requests_per_minute: u32) -> Key {
        let data = &self.replicas[0].data;
        for line in [
            format!("app create {name} --permission device --requests-per-minute {requests_per_minute}"),
            format!("device assign {name} --all"),
        ] {
            let (code, said) = operate(data, &line).await;
            assert_eq!(code, 0, "{line}: {said}");
        }
        key_of(data, name).await
    }
}

/// Carries out a command through the socket of a replica. Repeats it if others come between.
async fn command(replica: Arc<Replica>, command: Value) -> Value {
    let request = json!({"program": "cloudphone", "command": command, "claims": {}});
    loop {
        let (socket, asked) = (replica.data.join("admin.sock"), request.clone());
        let mut said = spawn_blocking(move || send(&socket, &asked)).await.expect("no panic").expect("an answer");
        if let Some(done) = said.get_mut("Ok") {
            return done.take();
        }
        assert!(said.to_string().contains("repeat the command"), "{request}: {said}");
    }
}

/// Returns the middle and the largest of these times, in milliseconds.
fn middle_and_largest(times: &mut [Duration]) -> [u128; 2] {
    times.sort_unstable();
    [times.get(times.len() / 2), times.last()].map(|time| time.map_or(0, Duration::as_millis))
}
