//! Replicas on one PostgreSQL with a standby, under load and faults. The audit compares the
//! answers, the store, and the double's journal; what an operator has taken away must stay away.
//! Then the drill measures for how long clients get no answer when the leader ends.

mod books;
mod replica;
mod takeover;
mod takings;

use super::audit::AuditBooks;
use super::load::{Load, call_at};
use super::platforms::{PAUSE, Pads};
use super::{options, report};
use crate::harness::Key;
use crate::harness::program::{key_of, operate};
use kit::PostgresPair;
use replica::{Outage, Replica};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use takeover::Takeovers;
use takings::Takings;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarrant_base::random::SplitMix;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterOptions {
    replicas: u64,
    writes: u64,
    kills: u64,
    stops: u64,
    cuts: u64,
    restarts: u64,
    failovers: u64,
    rolls: u64,
    gaps: u64,
    /// Runs until the first rolling restart.
    before: Option<PathBuf>,
    takeovers: u64,
    seed: u64,
}

/// Each pad serves several writes, one after the other.
const PADS_MAX: u64 = 2_000;

const PATIENCE: Duration = Duration::from_secs(6);

const ANSWER: Duration = Duration::from_millis(500);

/// No standby follows. The leader's lease ends meanwhile.
const GAP: Duration = Duration::from_secs(30);

/// Then the cluster rests. Before a leader goes on with a task of the former one, it waits for 17
/// s.
const RESTS_AFTER: u64 = 30;

const REST: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReplicaFault {
    Kill,
    Stop,
    Cut,
    Restart,
    Failover,
    Roll,
    Gap,
}

struct Cluster {
    home: PathBuf,
    servers: PostgresPair,
    pads: Pads,
    replicas: Vec<Arc<Replica>>,
    key: Key,
    load: Load,
    random: SplitMix,
    supervisors: JoinSet<()>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: cargo xtask drill cluster"]
async fn no_fault_of_a_replica_or_of_its_store_loses_or_repeats_anything() {
    let options: ClusterOptions = options();
    let ClusterOptions { kills, stops, cuts, restarts, failovers, rolls, gaps, takeovers, writes, .. } = options;
    let faults = kills + stops + cuts + restarts + failovers + rolls + gaps;
    let limit = Duration::from_secs(900 + writes / 2 + 30 * faults + 60 * takeovers);
    timeout(limit, drill(options)).await.unwrap_or_else(|_| panic!("it has not ended after {} s", limit.as_secs()));
}

async fn drill(options: ClusterOptions) {
    let begun = Instant::now();
    let Some(mut cluster) = Cluster::start(&options).await else {
        println!("PostgreSQL is not installed, so there is nothing to do");
        return;
    };
    cluster.load.allow_every(PAUSE);
    let spoilt = cluster.pads.spoil(options.seed).await;
    let (operates, goes_on) = watch::channel(true);
    let operator = tokio::spawn(Takings::new(&cluster, options.seed).work(goes_on));
    let faults = cluster.under_faults(&options).await;
    operates.send_replace(false);
    let mut takings = operator.await.expect("no panic");
    let mut takeovers = Takeovers::default();
    for number in 0..options.takeovers {
        takeovers.measure(&mut cluster, number).await;
    }
    cluster.wait_until_one_leads().await;
    takings.examine(cluster.leader().expect("one leads")).await;
    let told = cluster
        .load
        .finish(async || cluster.servers.query("SELECT count(*) FROM task").await.ok().as_deref() == Some("0"))
        .await;
    let doctors = cluster.stop_all().await;
    let books =
        AuditBooks::compare_with(&books::copy_store(&cluster.servers).await, &[].into(), &told, Some(&cluster.pads));
    println!("seed {}, {} s; {faults:?}", options.seed, begun.elapsed().as_secs());
    takeovers.print();
    let unplanned = cluster.replicas.iter().map(|replica| replica.count_ends_as_leader()).sum();
    let figures = [
        ("pads whose platform misbehaves", spoilt),
        ("ends of a leader by itself", unplanned),
        ("folders in which the doctor finds faults", doctors),
        ("silences that are three times as long as their goal", takeovers.late()),
    ];
    let figures = [&figures[..], &takings.figures()].concat();
    report(&cluster.load, &figures, told.len(), &books);
    assert!(
        takings.returned.is_empty() && takings.revealed.is_empty(),
        "{:#?}, {:?}",
        takings.returned,
        takings.revealed
    );
    assert!(doctors == 0 && takeovers.late() == 0);
    cluster.remove_files();
}

async fn call_any(
    addresses: &[SocketAddr],
    key: &Key,
    call: (&str, &Value),
) -> Option<(SocketAddr, Result<Value, Value>)> {
    for address in addresses.iter().rev() {
        if let Some(answer) = call_at(*address, key, call, ANSWER).await {
            return Some((*address, answer));
        }
    }
    None
}

impl Cluster {
    /// Returns `None` if PostgreSQL is not installed. The clients do not wish yet.
    async fn start(options: &ClusterOptions) -> Option<Self> {
        let ClusterOptions { replicas: count, writes, seed, ref before, .. } = *options;
        let (mut home, mut journal) =
            (TempDir::with_prefix("pg-").expect("a folder"), TempDir::new().expect("a folder"));
        // The servers run as another user.
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        // A drill that fails keeps its logs and the journal.
        home.disable_cleanup(true);
        journal.disable_cleanup(true);
        println!("logs: {}; journal: {}", home.path().display(), journal.path().display());
        let servers = PostgresPair::start(home.path()).await.expect("the servers start")?;
        let pads = Pads::start(writes.min(PADS_MAX), journal).await;
        let config = pads.configure("");
        let mut replicas = Vec::new();
        for number in 1..=count {
            replicas.push(Arc::new(Replica::make(number, home.path(), &servers, (&config, before.clone())).await));
        }
        let first = &replicas[0];
        let init = format!("store init --replica {}", first.name);
        for line in [init.as_str(), "app create load --permission device --requests-per-minute 100000000"] {
            let (code, said) = first.operate(line).await;
            assert_eq!(code, 0, "{line}: {said}");
        }
        for other in &replicas[1..] {
            fs::create_dir(&other.data).expect("a folder");
            fs::set_permissions(&other.data, fs::Permissions::from_mode(0o700)).expect("it is ours");
            fs::copy(first.data.join("master.key"), other.data.join("master.key")).expect("the key of the first");
        }
        // The replicas announce their addresses to the load, whose key one of them makes.
        let mut starting = first.spawn();
        starting.greeting().await.expect("it serves");
        first.operate("device assign load --all").await;
        let key = key_of(&first.data, "load").await;
        pads.prove(&first.data).await;
        starting.stop().await.expect("it ran");
        let (folder, data) = (home.path().to_owned(), first.data.clone());
        let load = Load::with_key(Arc::new(home), data, key.clone(), pads.plan_with_pads_only(seed, PATIENCE));
        let mut supervisors = JoinSet::new();
        for replica in &replicas {
            supervisors.spawn(Arc::clone(replica).supervise(load.announcer()));
        }
        let random = SplitMix(seed);
        let cluster = Self { home: folder, servers, pads, replicas, key, load, random, supervisors };
        cluster.wait_until_one_leads().await;
        Some(cluster)
    }

    fn leader(&self) -> Option<&Arc<Replica>> {
        let leaders = self.replicas.iter().filter(|replica| replica.leads_since().is_some());
        leaders.max_by_key(|replica| replica.leads_since())
    }

    async fn wait_until_one_leads(&self) {
        loop {
            let mut leads = Vec::new();
            for replica in &self.replicas {
                leads.push(replica.leads().await);
            }
            if leads.iter().all(Option::is_some) && leads.contains(&Some(true)) {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Draws the leader two times in three, and otherwise a replica that waits.
    fn draw(&mut self) -> Arc<Replica> {
        let hits_leader = self.random.below(3) > 0;
        let is_leader = |replica: &&Arc<Replica>| self.leader().is_some_and(|leader| leader.name == replica.name);
        let (leader, others): (Vec<_>, Vec<_>) = self.replicas.iter().cloned().partition(|replica| is_leader(&replica));
        let of = if others.is_empty() || hits_leader && !leader.is_empty() { leader } else { others };
        Arc::clone(&of[self.random.below(of.len() as u64) as usize])
    }

    async fn under_faults(&mut self, options: &ClusterOptions) -> BTreeMap<ReplicaFault, u64> {
        let ClusterOptions { kills, stops, cuts, restarts, failovers, rolls, gaps, .. } = *options;
        let mut left = [
            (ReplicaFault::Kill, kills),
            (ReplicaFault::Stop, stops),
            (ReplicaFault::Cut, cuts),
            (ReplicaFault::Restart, restarts),
            (ReplicaFault::Failover, failovers),
            (ReplicaFault::Roll, rolls),
            (ReplicaFault::Gap, gaps),
        ];
        let (mut done, mut outages) = (BTreeMap::new(), JoinSet::new());
        let mut total: u64 = left.iter().map(|(_, count)| count).sum();
        let pause = |random: &mut SplitMix| Duration::from_millis(500 + random.below(2_500));
        while total > 0 {
            sleep(pause(&mut self.random)).await;
            let mut drawn = self.random.below(total);
            let (fault, count) = left
                .iter_mut()
                .find(|(_, count)| {
                    let is_it = drawn < *count;
                    drawn = drawn.saturating_sub(*count);
                    is_it
                })
                .expect("one is left");
            (*count, total) = (*count - 1, total - 1);
            let fault = *fault;
            self.inflict(fault, &mut outages).await;
            *done.entry(fault).or_default() += 1;
            if total.is_multiple_of(RESTS_AFTER) {
                self.wait_until_one_leads().await;
                sleep(REST).await;
            }
        }
        while outages.join_next().await.is_some() {}
        while self.load.count_acknowledged() < options.writes {
            sleep(Duration::from_secs(1)).await;
        }
        done
    }

    async fn inflict(&mut self, fault: ReplicaFault, outages: &mut JoinSet<()>) {
        let replica = self.draw();
        let random = &mut self.random;
        match fault {
            // Its supervisor is as quick as usual, or another replica leads meanwhile.
            ReplicaFault::Kill => {
                let pause = [100, 100, 1_000, 12_000][random.below(4) as usize];
                replica.kill(Duration::from_millis(pause)).await;
            }
            ReplicaFault::Stop => {
                let time = Duration::from_millis(1_000 + random.below(59_000));
                outages.spawn(async move { replica.pause(time).await });
            }
            ReplicaFault::Cut => {
                let time = Duration::from_millis(500 + random.below(14_500));
                let outage = if random.below(2) == 0 { Outage::Cut } else { Outage::Stall };
                outages.spawn(async move { replica.cut(outage, time).await });
            }
            ReplicaFault::Roll => {
                for replica in &self.replicas {
                    replica.upgrade();
                    replica.stop(Duration::ZERO).await;
                    while replica.leads().await.is_none() {
                        sleep(Duration::from_millis(100)).await;
                    }
                }
            }
            ReplicaFault::Gap => {
                self.servers.cut_replication();
                sleep(GAP).await;
                self.servers.remake_standby().await.expect("another standby follows");
            }
            ReplicaFault::Restart => {
                self.servers.restart_immediately().await.expect("the server starts again");
            }
            ReplicaFault::Failover => {
                // The standby may lack commits that the server has, and that became visible when it
                // restarted: nobody may rely on them.
                if random.below(2) == 0 {
                    self.servers.cut_replication();
                    sleep(Duration::from_secs(1)).await;
                    self.servers.restart_immediately().await.expect("the server starts again");
                    sleep(Duration::from_secs(2)).await;
                } else {
                    self.servers.standby_follows().await.expect("the standby follows");
                }
                self.servers.fail_over().await.expect("the standby takes over");
                self.servers.remake_standby().await.expect("another standby follows");
            }
        }
    }

    async fn stop_all(&mut self) -> u64 {
        let mut unsound = 0;
        for replica in &self.replicas {
            let (code, said) = operate(&replica.data, "doctor").await;
            if code != 0 {
                println!("{}: {said}", replica.name);
                unsound += 1;
            }
        }
        for replica in &self.replicas {
            replica.stop(Duration::MAX).await;
        }
        self.supervisors.abort_all();
        unsound
    }

    fn remove_files(&self) {
        let _ = (fs::remove_dir_all(&self.home), fs::remove_file(self.pads.journal()));
    }
}
