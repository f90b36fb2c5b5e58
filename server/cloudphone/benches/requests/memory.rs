//! The memory that each connection, poll, application and device occupies, and the time of a start
//! with many of them.

use crate::folder::{Key, Who};
use crate::growth::{HELD, HOLDING_DEVICES, hold, raise_open_files, rest};
use crate::server::Server;
use crate::wire::{DEVICE, PAGE, ask, call, get_device, request};
use crate::{Missed, folder, median};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// The longest time from a start until the program serves, in seconds.
const READY_WITHIN: f64 = 2.0;
const STARTS: usize = 3;

const CONNECTIONS: usize = 1_000;
const POLLS: usize = 10_000;
const APPLICATIONS: usize = 10_000;
const DEVICES: u32 = 100_000;

/// Measures the time of a start with different numbers of devices and keys.
pub(crate) fn starts() -> Result<Missed> {
    println!("devices    keys     s until ready  at most");
    let mut missed = Missed::new();
    for (devices, keys) in [(PAGE, 1), (1_000_000, 1), (PAGE, 100_000)] {
        let home = folder::home()?;
        let data = home.path().join("data");
        folder::make(&data, Who { known: 1, strangers: keys - 1 })?;
        let took = (0..STARTS).map(|_| Ok(Server::program(&data, devices)?.ready_after.as_secs_f64()));
        let took = median(took.collect::<Result<_>>()?);
        println!("{devices:7}  {keys:7}  {took:13.2}  {READY_WITHIN:7}");
        if took > READY_WITHIN {
            missed.push(format!("a start with {devices} devices and {keys} keys: {took:.2} s, at most {READY_WITHIN}"));
        }
    }
    Ok(missed)
}

/// Measures the resident memory per connection, poll, application and device.
pub(crate) fn run() -> Result<Missed> {
    raise_open_files();
    println!("of each                 number  bytes");
    let home = folder::home()?;
    let row = |of: &str, count: usize, before: u64, after: u64| {
        println!("{of:20}  {count:8}  {:5.0}", (after as f64 - before as f64) / count as f64);
    };
    let known = 1 + POLLS.div_ceil(HELD);
    let (program, keys) = start_rested(&home.path().join("few"), Who { known, strangers: 0 }, HOLDING_DEVICES)?;
    let before = program.memory()?;
    let idle = (0..CONNECTIONS).map(|_| use_connection(&program, &keys[0])).collect::<Result<Vec<_>>>()?;
    rest(&program)?;
    row("idle connection", CONNECTIONS, before, program.memory()?);
    drop(idle);
    drop(program);

    let (program, keys) = start_rested(&home.path().join("polls"), Who { known, strangers: 0 }, HOLDING_DEVICES)?;
    let before = program.memory()?;
    let polls = hold(&program, &keys[1..], POLLS)?;
    row("held poll", POLLS, before, program.memory()?);
    polls.check()?;
    drop(program);

    let few = start_rested(&home.path().join("one"), Who { known: 1, strangers: 0 }, PAGE)?.0.memory()?;
    let many = start_rested(&home.path().join("many"), Who { known: 1, strangers: APPLICATIONS }, PAGE)?.0.memory()?;
    row("application and key", APPLICATIONS, few, many);

    let (program, keys) = start_rested(&home.path().join("devices"), Who { known: 1, strangers: 0 }, DEVICES)?;
    let before = program.memory()?;
    list_all(&program, &keys[0])?;
    rest(&program)?;
    row("listed device", DEVICES as usize, before, program.memory()?);
    Ok(Missed::new())
}

/// Starts a program, asks it for a device, and waits until it rests.
fn start_rested(data: &Path, who: Who, devices: u32) -> Result<(Server, Vec<Key>)> {
    let keys = folder::make(data, who)?;
    let program = Server::program(data, devices)?;
    ask(&program, &request(&keys[0], &get_device(DEVICE)))?;
    rest(&program)?;
    Ok((program, keys))
}

/// Opens a connection, uses it once, and returns it open.
fn use_connection(program: &Server, key: &Key) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(program.address)?;
    stream.write_all(&request(key, &get_device(DEVICE)))?;
    ensure!(stream.read(&mut [0; 16 * 1024])? > 0, "the connection was closed");
    Ok(stream)
}

fn list_all(program: &Server, key: &Key) -> Result<()> {
    let (mut cursor, mut listed) = (Value::Null, 0);
    loop {
        let page = ask(program, &request(key, &call("list_devices", json!({"limit": 200, "cursor": cursor}))))?;
        let mut page = page.result()?;
        listed += page["devices"].as_array().context("devices")?.len();
        cursor = page["next_cursor"].take();
        if cursor.is_null() {
            ensure!(listed == DEVICES as usize, "{listed} devices were listed");
            return Ok(());
        }
    }
}
