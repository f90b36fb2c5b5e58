//! Accepted tasks per second on PostgreSQL, compared with SQLite in turn.

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

const OF_SQLITE_MIN: f64 = 0.45;
/// In the log of PostgreSQL, for a whole task.
const LOG_MAX: f64 = 7.0 * 1024.0;

const WAYS: [&str; 2] = ["SQLite", "PostgreSQL"];

struct Accepted {
    rate: f64,
    waits: Vec<Duration>,
    ended_after: f64,
    service_micros: f64,
    server_micros: f64,
    log_bytes: f64,
}

pub(super) fn run(rig: &ClusterRig) -> Result<Missed> {
    let data = rig.home.path().join("alone");
    let key = folder::make(&data, 0)?;
    let alone = replica::start(&data, &[])?;
    let leader = rig.replica(1, &[])?;
    let phones = RefCell::new([phones(), phones()]);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = Vec::new();
        for (n, (server, key)) in [(&alone, &key), (&leader, &rig.keys[0])].into_iter().enumerate() {
            let requests = || write(key, phones.borrow_mut()[n].next(), "boot");
            round.push(accept(rig, server, &requests).context(WAYS[n])?);
        }
        rounds.push(round);
    }
    Ok(print(&mut rounds))
}

fn accept(rig: &ClusterRig, server: &Server, requests: &dyn Fn() -> Vec<u8>) -> Result<Accepted> {
    let form = ask(server, &requests())?.form()?.of_any_length();
    let log = || rig.postgres.count("SELECT (pg_current_wal_lsn() - '0/0')::bigint");
    let (log_before, service_before, server_before, begun) =
        (log(), server.cpu()?, rig.postgres.cpu()?, Instant::now());
    let stream = Stream { requests, form, connections: CLIENTS, pace: Pace::Closed };
    let waits = load_all(&[server], &[stream], SPAN, PAUSE)?.waits.remove(0);
    server.rest()?;
    let tasks = waits.len() as f64;
    Ok(Accepted {
        rate: tasks / SPAN.as_secs_f64(),
        waits,
        ended_after: begun.elapsed().as_secs_f64() / SPAN.as_secs_f64(),
        service_micros: (server.cpu()? - service_before).as_secs_f64() * 1e6 / tasks,
        server_micros: (rig.postgres.cpu()? - server_before).as_secs_f64() * 1e6 / tasks,
        log_bytes: (log() - log_before) as f64 / tasks,
    })
}

fn print(rounds: &mut [Vec<Accepted>]) -> Missed {
    println!("                                     of      all ended  CPU µs a task:          log bytes");
    println!("             a second  p50 ms  p99 ms  SQLite  after    service  PostgreSQL  a task");
    let mut missed = Missed::new();
    for (n, name) in WAYS.iter().enumerate() {
        let of = |figure: &dyn Fn(&[Accepted]) -> f64| median(rounds.iter().map(|round| figure(round)).collect());
        let (rate, ended) = (of(&|round| round[n].rate), of(&|round| round[n].ended_after));
        let of_sqlite = of(&|round| round[n].rate / round[0].rate);
        let (service, server) = (of(&|round| round[n].service_micros), of(&|round| round[n].server_micros));
        let log = of(&|round| round[n].log_bytes);
        let mut waits: Vec<_> = rounds.iter_mut().flat_map(|round| std::mem::take(&mut round[n].waits)).collect();
        let (p50, p99) = (quantile(&mut waits, 0.5) / 1e3, quantile(&mut waits, 0.99) / 1e3);
        println!(
            "{name:10}  {rate:9.0}  {p50:6.2}  {p99:6.2}  {of_sqlite:6.2}  {ended:5.2}    {service:7.0}  {server:10.0}  {log:6.0}"
        );
        if n == 1 {
            check(
                &mut missed,
                of_sqlite >= OF_SQLITE_MIN,
                format!("{name}: {of_sqlite:.2} of SQLite, at least {OF_SQLITE_MIN}"),
            );
            check(&mut missed, log <= LOG_MAX, format!("{name}: {log:.0} bytes of log a task, at most {LOG_MAX}"));
        }
    }
    missed
}
