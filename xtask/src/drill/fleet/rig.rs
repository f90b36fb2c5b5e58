//! The setup that both parts share: the program with its doubles, and calls to it.

use crate::serving::{PATIENCE, WATCHED};
use anyhow::{Context, Result, anyhow, ensure};
use driver::{DoubleProcess, Instance, KeyPair, Start};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// The setup of a measurement.
pub(super) struct Rig {
    pub(super) program: PathBuf,
    pub(super) double: PathBuf,
    pub(super) home: PathBuf,
    pub(super) pads: u32,
    pub(super) seconds: Duration,
    pub(super) stall: Duration,
}

/// A limit is missed by far if a value is more than this many times the limit.
pub(super) const FAR: f64 = 2.0;

impl Rig {
    /// Starts the program in a folder of this name with these platforms.
    pub(super) async fn serve(&self, name: &str, platforms: &[(&str, &DoubleProcess)]) -> Result<Instance> {
        self.serve_tables(name, |home| platforms.iter().map(|(name, double)| double.table(name, home)).collect()).await
    }

    /// Starts the program in a folder of this name with the tables that are made for the folder.
    pub(super) async fn serve_tables(
        &self,
        name: &str,
        tables: impl FnOnce(&Path) -> Result<String>,
    ) -> Result<Instance> {
        let home = self.home.join(name);
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home)?;
        let config = home.join("fleet.toml");
        fs::write(&config, tables(&home)?)?;
        let config = config.display().to_string();
        Start::new(&self.program, &home).flags(&WATCHED).flags(&["--config", &config]).ready().await
    }
}

/// Waits until the program knows this number of phones of a platform. Returns the time that it
/// took.
pub(super) async fn wait_until_listed(serving: &Instance, platform: &str, pads: u32) -> Result<Duration> {
    let began = Instant::now();
    let [age, targets] = ["age_seconds", "targets"].map(|what| format!("upstream_{what}{{upstream=\"{platform}\"}}"));
    while serving.metric(&age).await?.is_none() || serving.metric(&targets).await? != Some(pads.into()) {
        ensure!(began.elapsed() < Duration::from_mins(2), "{platform} was not listed in two minutes");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(began.elapsed())
}

/// Calls a tool. A failure of the tool is the inner error: its code.
pub(super) async fn call(
    serving: &Instance,
    key: &KeyPair,
    tool: &str,
    arguments: &Value,
) -> Result<Result<Value, String>> {
    let answer = driver::call(serving.address, key, tool, arguments).await?;
    Ok(answer.map_err(|failure| failure["code"].as_str().unwrap_or("?").to_owned()))
}

/// Lists devices. Returns the time in milliseconds.
pub(super) async fn time_list(serving: &Instance, key: &KeyPair) -> Result<f64> {
    let (limit, began) = (json!({"limit": 100}), Instant::now());
    let answer = timeout(PATIENCE, call(serving, key, "list_devices", &limit)).await.context("no answer in 10 s")??;
    let took = began.elapsed().as_secs_f64() * 1e3;
    answer.map_err(|code| anyhow!(code))?;
    Ok(took)
}
