//! Accepted tasks per second on PostgreSQL, compared with SQLite in turn. Nothing is bound to a
//! core, and the load sleeps.
//!
//! The executor answers at once. So an accepted task ends within moments, and its steps take part
//! in each figure.

use crate::load::{Stream, load, quantile};
use crate::postgres::Postgres;
use crate::server::{PROGRAM, Server};
use crate::wire::{ask, call, request};
use crate::{Missed, folder, median, replica};
use anyhow::{Context, Result, ensure};
use cloudphone::platforms::simulator::{Part, Sim};
use serde_json::json;
use std::cell::RefCell;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolwarrant_base::clock::Clock;

const PAUSE: Duration = Duration::from_micros(100);
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

pub(crate) fn run() -> Result<Missed> {
    let Some(postgres) = Postgres::start()? else {
        println!("PostgreSQL is not installed, so there is nothing to measure");
        return Ok(Missed::new());
    };
    // On the file system of PostgreSQL.
    let home = TempDir::new()?;
    let data = home.path().join("alone");
    let alone_key = folder::make(&data, 0)?;
    let alone = replica::start(&data, &[])?;
    let (data, store) = (home.path().join("r1"), format!("--replica r1 --store {}", postgres.url()));
    let store: Vec<&str> = store.split(' ').collect();
    let made = Command::new(PROGRAM).args(["store", "init", "--data"]).arg(&data).args(&store).output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let key = folder::make_at(&data, &store)?;
    let leader = replica::start(&data, &store)?;
    let phones = RefCell::new([phones(), phones()]);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = Vec::new();
        for (n, (server, key)) in [(&alone, &alone_key), (&leader, &key)].into_iter().enumerate() {
            let requests = || {
                let arguments = json!({"device_id": phones.borrow_mut()[n].next(), "action": "boot"});
                request(key, &call("set_power", arguments))
            };
            round.push(accept(&postgres, server, &requests).context(WAYS[n])?);
        }
        rounds.push(round);
    }
    Ok(print(&mut rounds))
}

fn phones() -> impl Iterator<Item = String> {
    let phones: Vec<_> = Sim::new(1, replica::DEVICES, Clock::system(), &[0; 32]).phones_of(Part::Plain).collect();
    phones.into_iter().map(|id| id.as_str().to_owned())
}

fn accept(postgres: &Postgres, server: &Server, requests: &dyn Fn() -> Vec<u8>) -> Result<Accepted> {
    let form = ask(server, &requests())?.form()?.of_any_length();
    let log = || postgres.count("SELECT (pg_current_wal_lsn() - '0/0')::bigint");
    let (log_before, service_before, server_before, begun) = (log(), server.cpu()?, postgres.cpu()?, Instant::now());
    let stream = Stream { requests, form, connections: CLIENTS };
    let waits = load(server, &stream, SPAN, PAUSE)?.waits;
    server.rest()?;
    let tasks = waits.len() as f64;
    Ok(Accepted {
        rate: tasks / SPAN.as_secs_f64(),
        waits,
        ended_after: begun.elapsed().as_secs_f64() / SPAN.as_secs_f64(),
        service_micros: (server.cpu()? - service_before).as_secs_f64() * 1e6 / tasks,
        server_micros: (postgres.cpu()? - server_before).as_secs_f64() * 1e6 / tasks,
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

fn check(missed: &mut Missed, is_kept: bool, line: String) {
    if !is_kept {
        missed.push(line);
    }
}
