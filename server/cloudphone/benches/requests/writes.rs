//! Tasks accepted per second when many clients write, and the effect on reads.

use crate::load::{Pace, Stream, load, quantile};
use crate::server::Server;
use crate::wire::{DEVICE, ask, call, get_device, request};
use crate::{Missed, folder};
use anyhow::Result;
use cloudphone::platforms::simulator::{Part, Sim};
use serde_json::json;
use std::cell::RefCell;
use std::time::Duration;
use toolwarrant_base::clock::Clock;

const WRITERS: usize = 64;
const SPAN: Duration = Duration::from_secs(5);

const READS: u32 = 500;
const READERS: usize = 4;

/// Half of them are plain, and must suffice for one write on each.
const DEVICES: u32 = 200_000;

pub(crate) fn run() -> Result<Missed> {
    let home = folder::home()?;
    let (data, key) = folder::one(&home)?;
    let program = Server::program(&data, DEVICES)?;
    let read = request(&key, &get_device(DEVICE));
    let (reads, form) = (|| read.clone(), || ask(&program, &read)?.form());
    let pace = Pace::PerSecond(READS);
    let reader = || Ok::<_, anyhow::Error>(Stream { requests: &reads, form: form()?, connections: READERS, pace });
    let mut alone = load(&program, &[reader()?], SPAN)?;

    let phones: Vec<_> = Sim::new(1, DEVICES, Clock::system(), &[0; 32]).phones_of(Part::Plain).collect();
    let phones = RefCell::new(phones.into_iter().map(|id| id.as_str().to_owned()));
    let writes = || {
        let arguments = json!({"device_id": phones.borrow_mut().next(), "action": "boot"});
        request(&key, &call("set_power", arguments))
    };
    let form = ask(&program, &writes())?.form()?.of_any_length();
    let writer = Stream { requests: &writes, form, connections: WRITERS, pace: Pace::Closed };
    let mut both = load(&program, &[reader()?, writer], SPAN)?;

    let rate = both.waits[1].len() as f64 / both.span.as_secs_f64();
    println!("{:34}    a second  p50 ms  p99 ms", "");
    let row = |what: &str, rate: f64, waits: &mut [Duration]| {
        println!("{what:34}  {rate:10.0}  {:6.2}  {:6.2}", quantile(waits, 0.5) / 1e3, quantile(waits, 0.99) / 1e3);
    };
    row("set_power, 64 clients", rate, &mut both.waits[1]);
    row("get_device, nobody writes", f64::from(READS), &mut alone.waits[0]);
    row("get_device while they write", f64::from(READS), &mut both.waits[0]);
    Ok(Missed::new())
}
