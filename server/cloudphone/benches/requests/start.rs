//! The time of a start with many devices and keys.

use crate::server::Server;
use crate::wire::PAGE;
use crate::{Missed, folder, median};
use anyhow::Result;

/// In seconds, until the program serves.
const READY_WITHIN: f64 = 2.0;
const STARTS: usize = 3;

pub(crate) fn run() -> Result<Missed> {
    println!("devices    keys     s until ready  at most");
    let mut missed = Missed::new();
    for (devices, keys) in [(PAGE, 1), (1_000_000, 1), (PAGE, 100_000)] {
        let home = folder::home()?;
        let data = home.path().join("data");
        folder::make(&data, keys - 1)?;
        let took = (0..STARTS).map(|_| Ok(Server::program(&data, devices)?.ready_after.as_secs_f64()));
        let took = median(took.collect::<Result<_>>()?);
        println!("{devices:7}  {keys:7}  {took:13.2}  {READY_WITHIN:7}");
        if took > READY_WITHIN {
            missed.push(format!("a start with {devices} devices and {keys} keys: {took:.2} s, at most {READY_WITHIN}"));
        }
    }
    Ok(missed)
}
