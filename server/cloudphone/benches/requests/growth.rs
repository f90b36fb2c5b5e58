//! The growth of a request's cost with keys, devices and held polls: one program per size, all
//! loaded in turn.
//!
//! Each is compared with the smallest, and may cost a fifth more. A drawn page of many devices is
//! not in any cache: [`UNCACHED`] is its limit.

use crate::folder::{Key, Who};
use crate::load::{Pace, Stream, load};
use crate::server::Server;
use crate::ways::Requests;
use crate::wire::{DEVICE, PAGE, PATIENCE, ask, call, get_device, list_devices, request};
use crate::{Missed, folder, median};
use anyhow::{Context, Result, ensure};
use cloudphone::platforms::simulator::{Part, Sim};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::cell::Cell;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolwarrant_base::clock::Clock;

/// The highest ratio of CPU time per request to that at the smallest size.
const GATE: f64 = 1.2;
/// The same ratio for a hundred devices that are in main memory and not in a cache.
const UNCACHED: f64 = 3.0;

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 7;
const SPAN: Duration = Duration::from_millis(300);

/// The most held polls of one application.
pub(crate) const HELD: usize = 64;
/// The time for which a poll is held, in seconds. All measurements end within it.
const HOLD_SECONDS: u64 = 50;
/// The number of devices when polls are held. Enough of them lose commands for a task in flight on
/// each.
pub(crate) const HOLDING_DEVICES: u32 = 20_000;

/// A question: its name, its requests for a size, and the highest ratio of its cost.
type GrowthKind = (&'static str, for<'a> fn(&'a Key, u32) -> Requests<'a>, f64);

const SAME: [GrowthKind; 2] = [("get_device", same_device, GATE), ("list_devices", first_page, GATE)];
const DRAWN: [GrowthKind; 2] =
    [("get_device, drawn", random_device, GATE), ("list_devices, drawn", random_page, UNCACHED)];

pub(crate) fn run() -> Result<Missed> {
    println!("of            size     question             CPU µs/req  ratio  at most");
    let home = folder::home()?;
    let mut missed = Missed::new();
    let sizes = [1, 1_000, 100_000].map(|keys| (keys, Who { known: 1, strangers: keys as usize - 1 }, PAGE));
    missed.extend(grow("keys", &servers(&home, "keys", sizes)?, &SAME)?);
    let sizes = [100, 100_000, 1_000_000].map(|devices| (devices, Who { known: 1, strangers: 0 }, devices));
    missed.extend(grow("devices", &servers(&home, "devices", sizes)?, &[SAME, DRAWN].concat())?);
    let known = 1 + 10_000_usize.div_ceil(HELD);
    let sizes = [1, 1_000, 10_000].map(|held| (held, Who { known, strangers: 0 }, HOLDING_DEVICES));
    let servers = servers(&home, "held polls", sizes)?;
    let held = servers.iter().map(|(size, server, keys)| hold(server, &keys[1..], *size as usize));
    let held = held.collect::<Result<Vec<_>>>()?;
    missed.extend(grow("held polls", &servers, &SAME)?);
    for polls in held {
        polls.check()?;
    }
    Ok(missed)
}

/// Starts a program per size, and returns each with its keys.
fn servers(home: &TempDir, of: &str, sizes: [(u32, Who, u32); 3]) -> Result<Vec<(u32, Server, Vec<Key>)>> {
    let start = |(size, who, devices)| {
        let data = home.path().join(format!("{of} {size}"));
        let keys = folder::make(&data, who)?;
        Ok((size, Server::program(&data, devices)?, keys))
    };
    sizes.into_iter().map(start).collect()
}

/// Asks all programs in turn, and prints the cost per size.
fn grow(of: &str, servers: &[(u32, Server, Vec<Key>)], kinds: &[GrowthKind]) -> Result<Missed> {
    let mut missed = Missed::new();
    for (name, kind, most) in kinds {
        let mut rounds = Vec::new();
        // The first round fills the caches, and does not count.
        for _ in 0..=ROUNDS {
            let cost = |(size, server, keys): &(u32, Server, Vec<Key>)| -> Result<f64> {
                let requests = kind(&keys[0], *size);
                let form = ask(server, &requests())?.form()?.of_any_length();
                let stream = Stream { requests: &requests, form, connections: CONNECTIONS, pace: Pace::Closed };
                Ok(load(server, &[stream], SPAN).with_context(|| format!("{name} of {size} {of}"))?.cpu_micros())
            };
            rounds.push(servers.iter().map(cost).collect::<Result<Vec<_>>>()?);
        }
        rounds.remove(0);
        for (n, (size, ..)) in servers.iter().enumerate() {
            let cost = median(rounds.iter().map(|round| round[n]).collect());
            let ratio = median(rounds.iter().map(|round| round[n] / round[0]).collect());
            println!("{of:10}  {size:8}     {name:20}  {cost:9.2}  {ratio:5.2}  {most:7}");
            if ratio > *most {
                missed.push(format!(
                    "{name} with {size} {of}: {ratio:.2} times the CPU time of the smallest, at most {most}"
                ));
            }
        }
    }
    Ok(missed)
}

fn same_device(key: &Key, _: u32) -> Requests<'_> {
    let request = request(key, &get_device(DEVICE));
    Box::new(move || request.clone())
}

fn first_page(key: &Key, _: u32) -> Requests<'_> {
    let request = request(key, &list_devices(0));
    Box::new(move || request.clone())
}

fn random_device(key: &Key, devices: u32) -> Requests<'_> {
    let draw = draw();
    Box::new(move || request(key, &get_device(1 + draw(devices))))
}

/// Returns requests for a full page at a random place.
fn random_page(key: &Key, devices: u32) -> Requests<'_> {
    let draw = draw();
    Box::new(move || request(key, &list_devices(draw(devices - PAGE + 1))))
}

/// Draws numbers below a limit, from the same seed each time: splitmix64.
fn draw() -> impl Fn(u32) -> u32 {
    let state = Cell::new(17_u64);
    move |below| {
        state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut word = state.get();
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % u64::from(below)) as u32
    }
}

/// Held polls, each on its own connection.
pub(crate) struct Polls(Vec<TcpStream>);

/// Makes the server hold `count` polls of tasks on phones that never answer, up to the limit per
/// application.
pub(crate) fn hold(server: &Server, keys: &[Key], count: usize) -> Result<Polls> {
    raise_open_files();
    let phones = Sim::new(1, HOLDING_DEVICES, Clock::system(), &[0; 32]);
    let mut phones = phones.phones_of(Part::LosingCommands);
    let mut polls = Vec::with_capacity(count);
    for key in keys {
        let those = HELD.min(count - polls.len());
        if those == 0 {
            break;
        }
        let phone = phones.next().context("a phone that loses commands")?;
        let write = call("set_power", json!({"device_id": phone.as_str(), "action": "restart"}));
        let task = ask(server, &request(key, &write))?.result()?;
        let poll = call("get_task", json!({"task_id": task["task_id"], "wait_seconds": HOLD_SECONDS}));
        let poll = request(key, &poll);
        for _ in 0..those {
            let mut stream = TcpStream::connect(server.address)?;
            stream.write_all(&poll)?;
            polls.push(stream);
        }
    }
    ensure!(polls.len() == count, "{} applications hold no {count} polls", keys.len());
    rest(server)?;
    Ok(Polls(polls))
}

impl Polls {
    /// Checks that no poll has been answered.
    pub(crate) fn check(&self) -> Result<()> {
        for stream in &self.0 {
            stream.set_nonblocking(true)?;
            let come = stream.peek(&mut [0]);
            ensure!(come.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "a poll was not held");
        }
        Ok(())
    }
}

/// Waits until the server has finished its work.
pub(crate) fn rest(server: &Server) -> Result<()> {
    let (begun, mut before) = (Instant::now(), server.cpu()?);
    loop {
        sleep(Duration::from_millis(250));
        let now = server.cpu()?;
        if now - before < Duration::from_millis(10) {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "it does not come to rest");
        before = now;
    }
}

/// Raises the limit of open files of this process to the maximum.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
