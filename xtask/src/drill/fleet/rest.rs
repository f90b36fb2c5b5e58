//! The cost of a platform whose pads are only listed: calls to it, the age of the list, and memory;
//! at rest, and under 50 lists per second.

use super::double;
use super::rig::{FAR, Rig, call, wait_until_listed};
use crate::serving::{self, quantile};
use anyhow::Result;
use driver::{DoubleProcess, Instance, KeyPair};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::time::{interval, sleep};

/// Largest number of calls to a platform per minute at rest.
const CALLS: f64 = 60.0;

/// Greatest age of the list, in seconds.
const AGE: f64 = 60.0;

/// Lists per second that the clients request.
const ASKED: u64 = 50;

/// Time from the first list to the measurement. By then the program reads the second list, as at
/// any later time.
const SETTLE: Duration = Duration::from_secs(35);

/// The measurements of one period.
struct RestFigures {
    name: &'static str,
    /// Calls to the platform per minute, by endpoint.
    called: Value,
    calls: f64,
    /// Greatest age, in seconds.
    age: f64,
    /// Resident memory in KiB, each second, in ascending order.
    memory: Vec<f64>,
    /// Milliseconds for each list, in ascending order.
    took: Vec<f64>,
    failed: Vec<String>,
}

/// Measures it without pads and with all of them. Returns the limits that were missed by far.
pub(super) async fn measure(rig: &Rig) -> Result<Vec<String>> {
    println!("\n{} pads that are only listed, {} s each", rig.pads, rig.seconds.as_secs());
    println!("pads     while            calls/min  age s  p50 ms  p99 ms  failed  MiB usual   most   peak");
    let (mut faults, mut usual) = (Vec::new(), Vec::new());
    for pads in [0, rig.pads] {
        let double = double::start(&rig.double, pads, &[]).await?;
        let began = Instant::now();
        let serving = rig.serve("rest", &[("pads", &double)]).await?;
        let started = began.elapsed();
        let first = wait_until_listed(&serving, "pads", pads).await? + started;
        let key = serving::key(&serving, "fleet", &[]).await?;
        sleep(SETTLE).await;
        let rest = watch(rig, &serving, &double, None).await?;
        usual.push(quantile(&rest.memory, 0.5));
        let mut all = vec![rest];
        if pads > 0 {
            all.push(watch(rig, &serving, &double, Some(&key)).await?);
        }
        for seen in all {
            println!("{pads:7}  {} {:6}", seen.row(), serving.memory("VmHWM")? / 1024);
            println!("         calls: {}", seen.called);
            faults.extend(seen.faults().map(|fault| format!("{pads} pads, {}: {fault}", seen.name)));
        }
        println!("         first list after {} ms, {} of them for the start", first.as_millis(), started.as_millis());
        if serving.log()?.contains("panicked") {
            faults.push("the program panicked".to_owned());
        }
    }
    if let [none, all] = usual[..] {
        println!("{:.0} bytes per pad", (all - none) * 1024.0 / f64::from(rig.pads.max(1)));
    }
    Ok(faults)
}

/// Watches the program for a period. With a key, clients list devices meanwhile.
async fn watch(rig: &Rig, serving: &Instance, double: &DoubleProcess, key: Option<&KeyPair>) -> Result<RestFigures> {
    let (began, before) = (Instant::now(), double::lines(double).await?);
    let (mut age, mut memory) = (0, Vec::new());
    let look = async {
        let mut each = interval(Duration::from_secs(1));
        while began.elapsed() < rig.seconds {
            each.tick().await;
            age = age.max(serving.metric("upstream_age_seconds{upstream=\"pads\"}").await?.unwrap_or(0));
            memory.push(serving.memory("VmRSS")? as f64);
        }
        anyhow::Ok(())
    };
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    let ask = async {
        let Some(key) = key else { return };
        let mut each = interval(Duration::from_micros(1_000_000 / ASKED));
        let mut cursor = Value::Null;
        while began.elapsed() < rig.seconds {
            each.tick().await;
            let arguments =
                if cursor.is_null() { json!({"limit": 100}) } else { json!({"limit": 100, "cursor": cursor}) };
            let asked = Instant::now();
            match call(serving, key, "list_devices", &arguments).await {
                Ok(Ok(page)) => {
                    took.push(asked.elapsed().as_secs_f64() * 1e3);
                    cursor = page["next_cursor"].clone();
                }
                Ok(Err(error)) => failed.push(error),
                Err(error) => failed.push(format!("{error:#}")),
            }
        }
    };
    tokio::join!(look, ask).0?;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let called = double::endpoint_calls(double, before).await?;
    let calls = called.as_object().into_iter().flat_map(|calls| calls.values()).filter_map(Value::as_u64).sum::<u64>();
    took.sort_by(f64::total_cmp);
    memory.sort_by(f64::total_cmp);
    let name = if key.is_some() { "50 lists/s" } else { "at rest" };
    Ok(RestFigures { name, called, calls: calls as f64 / minutes, age: age as f64, memory, took, failed })
}

impl RestFigures {
    fn row(&self) -> String {
        let Self { name, called: _, calls, age, memory, took, failed } = self;
        let [usual, most] = [0.5, 0.999].map(|share| quantile(memory, share) / 1024.0);
        let (half, slow) = (quantile(took, 0.5), quantile(took, 0.99));
        format!("{name:15} {calls:10.1} {age:6.0} {half:7.1} {slow:7.1} {:7} {usual:10.1} {most:6.1}", failed.len())
    }

    fn faults(&self) -> impl Iterator<Item = String> {
        let Self { calls, age, failed, .. } = self;
        let calls = (*calls > FAR * CALLS).then(|| format!("{calls:.0} calls per minute; {CALLS} are allowed"));
        let age = (*age > FAR * AGE).then(|| format!("the list is {age} s old; {AGE} s are allowed"));
        let failed = failed.first().map(|first| format!("{} lists failed, as in: {first}", failed.len()));
        [calls, age, failed].into_iter().flatten()
    }
}
