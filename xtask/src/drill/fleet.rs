//! `cargo xtask fleet`: the program beside doubles of a platform with many pads. What such a platform costs at rest and under many
//! lists ([`rest`]), and what one that stalls does to the phones and the clients of another ([`stall`]); Linux.
//!
//! Limits fail the verb where they are missed by far: a machine that does other things, too, is noisy. Start at [`run`].

mod double;
mod rest;
mod stall;

use crate::serving::{self, Key, PATIENCE, Serving, exchange};
use anyhow::{Context, Result, anyhow, ensure};
use double::Double;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// How much.
#[derive(clap::Args)]
pub(crate) struct Fleet {
    /// Pads of the platform
    #[arg(long, default_value_t = 10_000)]
    pads: u32,
    /// For how many seconds it stalls
    #[arg(long, default_value_t = 60)]
    stall_seconds: u64,
    /// Seconds of each other measurement
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Leave out one of the two parts
    #[arg(long, value_name = "PART")]
    without: Option<Part>,
    /// A program that is built already, in place of an optimised one that is built now
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// A double that is built already
    #[arg(long, value_name = "FILE")]
    double: Option<PathBuf>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Rest,
    Stall,
}

/// What is measured with.
struct Rig {
    program: PathBuf,
    double: PathBuf,
    home: PathBuf,
    pads: u32,
    seconds: Duration,
    stall: Duration,
}

/// A limit is missed by far beyond so many times of it.
const FAR: f64 = 2.0;

/// Measures, and prints what came of it.
pub(crate) fn run(root: &Path, fleet: &Fleet) -> Result<()> {
    let rig = Rig {
        program: serving::program(root, fleet.program.as_deref(), "cloudphone")?,
        double: serving::program(root, fleet.double.as_deref(), "armcloud-double")?,
        home: root.join("target/fleet"),
        pads: fleet.pads,
        seconds: Duration::from_secs(fleet.seconds),
        stall: Duration::from_secs(fleet.stall_seconds),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut faults = Vec::new();
    if fleet.without != Some(Part::Rest) {
        faults.extend(runtime.block_on(rest::measure(&rig))?);
    }
    if fleet.without != Some(Part::Stall) {
        faults.extend(runtime.block_on(stall::measure(&rig))?);
    }
    let _ = fs::remove_dir_all(&rig.home);
    ensure!(faults.is_empty(), "what is promised of platforms does not hold:\n{}", faults.join("\n"));
    println!("\nno limit was missed by far, and no promise was broken");
    Ok(())
}

impl Rig {
    /// Starts the program in a folder of this name with these platforms.
    fn serve(&self, name: &str, platforms: &[(&str, &Double)]) -> Result<Serving> {
        let home = self.home.join(name);
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home)?;
        let tables = platforms.iter().map(|(name, double)| double.table(name, &home));
        fs::write(home.join("fleet.toml"), tables.collect::<Result<String>>()?)?;
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(home.join("fleet.toml"));
        Serving::start(command, &self.program, &home)
    }
}

/// Waits until the program knows so many phones of a platform: how long that took.
async fn listed(serving: &Serving, platform: &str, pads: u32) -> Result<Duration> {
    let began = Instant::now();
    let [age, targets] = ["age_seconds", "targets"].map(|what| format!("upstream_{what}{{upstream=\"{platform}\"}}"));
    while serving.metric(&age).await?.is_none() || serving.metric(&targets).await? != Some(pads.into()) {
        ensure!(began.elapsed() < Duration::from_mins(2), "{platform} was not listed in two minutes");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(began.elapsed())
}

/// A request that calls a tool.
fn calling(key: &Key, tool: &str, arguments: &Value) -> String {
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    key.request(&call.to_string(), "connection: close\r\n", 1)
}

/// Calls a tool. A failure of the tool is the inner error: its code.
async fn call(serving: &Serving, key: &Key, tool: &str, arguments: &Value) -> Result<Result<Value, String>> {
    let body = exchange(serving.address, &calling(key, tool, arguments)).await?;
    let answer: Value = serde_json::from_str(&body)?;
    let text = answer["result"]["content"][0]["text"].as_str().with_context(|| answer.to_string())?;
    let result: Value = serde_json::from_str(text)?;
    Ok(match answer["result"]["isError"].as_bool() {
        Some(false) => Ok(result),
        _ => Err(result["code"].as_str().unwrap_or("?").to_owned()),
    })
}

/// Milliseconds that a list of devices took.
async fn listing(serving: &Serving, key: &Key) -> Result<f64> {
    let request = calling(key, "list_devices", &json!({"limit": 100}));
    let began = Instant::now();
    let answer =
        timeout(PATIENCE, exchange(serving.address, &request)).await.map_err(|_| anyhow!("no answer in 10 s"))??;
    let took = began.elapsed().as_secs_f64() * 1e3;
    ensure!(answer.contains(r#""isError":false"#), "{answer}");
    Ok(took)
}
