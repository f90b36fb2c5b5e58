//! Signed requests that are replayed at other replicas, at the same time and later, and across
//! restarts of the server.

use super::PreparedCluster;
use super::client::ReplicaClient;
use crate::harness::signed::Signed;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;
use tokio::time::sleep;
use toolwarrant_base::random::SplitMix;

/// Replays of each request: one at the same time, two right after it, and one after a restart.
const EACH: usize = 4;

/// Requests between two restarts of the server.
const BATCH: usize = 125;

/// A request and the statuses of its answers.
struct Replayed {
    octets: Vec<u8>,
    method: &'static str,
    statuses: Vec<u16>,
}

/// Replays requests that many times.
pub(super) async fn replay(site: &mut PreparedCluster, count: u64, random: &mut SplitMix) -> Vec<String> {
    let key = site.application("replayed", 1_000_000).await;
    let devices = site.pads.devices();
    let (mut all, mut restarts) = (Vec::<Replayed>::new(), 0);
    while ((all.len() * EACH) as u64) < count {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
        let mut sent = JoinSet::new();
        for number in all.len()..all.len() + BATCH {
            // Each write is on a device of its own, so its task does not end because of another.
            let device = &devices[number / 2 % devices.len()];
            let (method, leaf) = if number % 2 == 0 { ("GET", "") } else { ("DELETE", "/proxy") };
            let request = Signed::at(now, &key, method, &format!("/v1/devices/{device}{leaf}"));
            let octets = request.header("connection", "keep-alive").octets();
            let request = Replayed { octets, method, statuses: Vec::new() };
            let delay = Duration::from_millis(random.below(1_000));
            let clients = [(); 2].map(|()| ReplicaClient::new(&site.replicas));
            sent.spawn(async move {
                sleep(delay).await;
                request.send_everywhere(number, clients).await
            });
        }
        // It is not known then if the nonces of the requests on their way were stored.
        sleep(Duration::from_millis(200 + random.below(600))).await;
        site.servers.restart_immediately().await.expect("the server starts again");
        restarts += 1;
        for mut request in sent.join_all().await {
            let status = send(&request.octets, all.len(), &mut ReplicaClient::new(&site.replicas)).await;
            request.statuses.push(status);
            all.push(request);
        }
    }
    let mut answers = BTreeMap::<_, u64>::new();
    for request in &all {
        request.statuses.iter().for_each(|status| *answers.entry((request.method, *status)).or_default() += 1);
    }
    // Neither 401 nor 429: one replica took it.
    let taken = |request: &&Replayed| request.statuses.iter().filter(|status| !matches!(status, 401 | 429)).count();
    let twice = all.iter().filter(|request| taken(request) > 1).count();
    let tasks = "SELECT target, key_id FROM task UNION ALL SELECT target, key_id FROM ended";
    let repeated = format!("SELECT count(*) - count(DISTINCT target) FROM ({tasks}) made WHERE key_id = '{}'", key.id);
    let repeated = site.servers.query(&repeated).await.expect("a number");
    println!(
        "{} replays of {} signed requests across {restarts} restarts: taken twice {twice}; tasks made twice {repeated}; \
         answers {answers:?}",
        all.len() * EACH,
        all.len()
    );
    let is_broken = twice > 0 || repeated != "0";
    is_broken.then(|| "a signed request was taken twice".to_owned()).into_iter().collect()
}

impl Replayed {
    /// Sends it to two replicas at the same time, and then to the others.
    async fn send_everywhere(mut self, turn: usize, [mut one, mut two]: [ReplicaClient; 2]) -> Self {
        let both = tokio::join!(send(&self.octets, turn, &mut one), send(&self.octets, turn + 1, &mut two));
        self.statuses.extend([both.0, both.1]);
        while self.statuses.len() < EACH {
            self.statuses.push(send(&self.octets, turn + self.statuses.len(), &mut one).await);
        }
        self
    }
}

/// Sends a request until there is an answer that does not ask to repeat it, from replica to
/// replica. Returns its status.
async fn send(octets: &[u8], mut turn: usize, client: &mut ReplicaClient) -> u16 {
    loop {
        match client.send(turn, octets).await {
            Some(answer) if answer.status < 500 => return answer.status,
            _ => turn += 1,
        }
    }
}
