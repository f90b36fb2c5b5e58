//! Accepted tasks per second on 1, 2 and 4 replicas, compared with SQLite in turn.

use super::{ClusterRig, PAUSE, check, phones, write};
use crate::folder;
use crate::load::{Pace, Stream, load_all, quantile};
use crate::server::Server;
use crate::wire::ask;
use crate::{Missed, median, replica};
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::time::{Duration, Instant};

const CLIENTS: usize = 64;
const ROUNDS: usize = 3;
const SPAN: Duration = Duration::from_secs(4);

/// The lowest ratio of one replica to SQLite, and of several replicas to one.
const OF_SQLITE_MIN: f64 = 0.45;
const OF_ONE_MIN: f64 = 0.9;
/// The most bytes in the log of PostgreSQL for a whole task.
const LOG_MAX: f64 = 7.0 * 1024.0;

/// The ways to store: SQLite, or this number of replicas.
const WAYS: [(&str, usize); 4] = [("SQLite", 0), ("1 replica", 1), ("2 replicas", 2), ("4 replicas", 4)];

/// The figures of a round. Costs are for a whole task.
struct Accepted {
    rate: f64,
    waits: Vec<Duration>,
    /// The time until all tasks have ended, per second of the load.
    ended_after: f64,
    service_micros: f64,
    server_micros: f64,
    log_bytes: f64,
}

pub(super) fn run(rig: &ClusterRig) -> Result<Missed> {
    let data = rig.home.path().join("alone");
    let key = folder::make(&data, 0)?;
    let alone = replica::start(&data, &[])?;
    let replicas = (1..=4).map(|number| rig.replica(number, &[])).collect::<Result<Vec<_>>>()?;
    let phones = RefCell::new([phones(), phones()]);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let round = WAYS.map(|(name, count)| {
            let (servers, key): (Vec<&Server>, _) = match count {
                0 => (vec![&alone], &key),
                _ => (replicas[..count].iter().collect(), &rig.keys[0]),
            };
            let requests = || write(key, phones.borrow_mut()[count.min(1)].next(), "boot");
            accept(rig, &servers, &requests).context(name)
        });
        rounds.push(round.into_iter().collect::<Result<Vec<_>>>()?);
    }
    Ok(print(&mut rounds))
}

/// Loads the servers, and waits until all tasks have ended.
fn accept(rig: &ClusterRig, servers: &[&Server], requests: &dyn Fn() -> Vec<u8>) -> Result<Accepted> {
    let form = ask(servers[0], &requests())?.form()?.of_any_length();
    let log = || rig.postgres.count("SELECT (pg_current_wal_lsn() - '0/0')::bigint");
    let used = || servers.iter().map(|server| server.cpu()).sum::<Result<Duration>>();
    let (log_before, service_before, server_before, begun) = (log(), used()?, rig.postgres.cpu()?, Instant::now());
    let stream = Stream { requests, form, connections: CLIENTS, pace: Pace::Closed };
    let waits = load_all(servers, &[stream], SPAN, PAUSE)?.waits.remove(0);
    for server in servers {
        server.rest()?;
    }
    let tasks = waits.len() as f64;
    Ok(Accepted {
        rate: tasks / SPAN.as_secs_f64(),
        waits,
        ended_after: begun.elapsed().as_secs_f64() / SPAN.as_secs_f64(),
        service_micros: (used()? - service_before).as_secs_f64() * 1e6 / tasks,
        server_micros: (rig.postgres.cpu()? - server_before).as_secs_f64() * 1e6 / tasks,
        log_bytes: (log() - log_before) as f64 / tasks,
    })
}

fn print(rounds: &mut [Vec<Accepted>]) -> Missed {
    println!("                                     of      of 1  all ended  CPU µs a task:          log bytes");
    println!("             a second  p50 ms  p99 ms  SQLite  replica  after    service  PostgreSQL  a task");
    let mut missed = Missed::new();
    for (n, (name, _)) in WAYS.iter().enumerate() {
        let of = |figure: &dyn Fn(&[Accepted]) -> f64| median(rounds.iter().map(|round| figure(round)).collect());
        let (rate, ended) = (of(&|round| round[n].rate), of(&|round| round[n].ended_after));
        let [of_sqlite, of_one] = [0, 1].map(|base: usize| of(&|round| round[n].rate / round[base].rate));
        let (service, server) = (of(&|round| round[n].service_micros), of(&|round| round[n].server_micros));
        let log = of(&|round| round[n].log_bytes);
        let mut waits: Vec<_> = rounds.iter_mut().flat_map(|round| std::mem::take(&mut round[n].waits)).collect();
        let (p50, p99) = (quantile(&mut waits, 0.5) / 1e3, quantile(&mut waits, 0.99) / 1e3);
        println!(
            "{name:10}  {rate:9.0}  {p50:6.2}  {p99:6.2}  {of_sqlite:6.2}  {of_one:7.2}  {ended:5.2}    {service:7.0}  {server:10.0}  {log:6.0}"
        );
        match n {
            0 => {}
            1 => {
                check(
                    &mut missed,
                    of_sqlite >= OF_SQLITE_MIN,
                    format!("{name}: {of_sqlite:.2} of SQLite, at least {OF_SQLITE_MIN}"),
                );
                check(&mut missed, log <= LOG_MAX, format!("{name}: {log:.0} bytes of log a task, at most {LOG_MAX}"));
            }
            _ => check(
                &mut missed,
                of_one >= OF_ONE_MIN,
                format!("{name}: {of_one:.2} of one replica, at least {OF_ONE_MIN}"),
            ),
        }
    }
    missed
}
