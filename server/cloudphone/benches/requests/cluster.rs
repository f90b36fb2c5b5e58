//! A replica on PostgreSQL. Nothing is bound to a core, and the load sleeps.
//!
//! The executor answers at once. So an accepted task ends within moments, and its steps take part
//! in each figure.

mod reads;
mod server;
mod tasks;

use crate::Missed;
use crate::folder::{self, Key};
use crate::replica;
use crate::server::{PROGRAM, Server};
use crate::wire::{call, request};
use anyhow::{Result, ensure};
use cloudphone::platforms::simulator::{Part, Sim};
use serde_json::json;
use server::Postgres;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use toolwarrant_base::clock::Clock;
use toolwarrant_operator::StoreOptions;

const PAUSE: Duration = Duration::from_micros(100);

struct ClusterRig {
    postgres: Postgres,
    home: TempDir,
    keys: Vec<Key>,
}

pub(crate) fn run() -> Result<Missed> {
    let Some(postgres) = Postgres::start()? else {
        println!("PostgreSQL is not installed, so there is nothing to measure");
        return Ok(Missed::new());
    };
    let rig = ClusterRig::make(postgres, TempDir::new()?, 1)?;
    let mut missed = reads::run(&rig)?;
    missed.extend(tasks::run(&rig)?);
    Ok(missed)
}

impl ClusterRig {
    /// Expects `home` on the file system of PostgreSQL.
    fn make(postgres: Postgres, home: TempDir, applications: usize) -> Result<Self> {
        let data = home.path().join("r1");
        let place =
            StoreOptions { store: Some(postgres.url()), replica: Some("r1".to_owned()), ..StoreOptions::default() };
        let mut init = Command::new(PROGRAM);
        init.args(["store", "init", "--replica", "r1", "--store", &postgres.url(), "--data"]).arg(&data);
        let made = init.output()?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let keys = folder::make_at(&data, applications, &place)?;
        Ok(Self { postgres, home, keys })
    }

    fn replica(&self, number: usize, flags: &[&str]) -> Result<Server> {
        let folder = |number: usize| self.home.path().join(format!("r{number}"));
        let (name, data, url) = (format!("r{number}"), folder(number), self.postgres.url());
        if !data.exists() {
            DirBuilder::new().mode(0o700).create(&data)?;
            fs::copy(folder(1).join("master.key"), data.join("master.key"))?;
        }
        replica::start(&data, &[&["--replica", &name, "--store", &url], flags].concat())
    }
}

fn phones() -> impl Iterator<Item = String> {
    let phones: Vec<_> = Sim::new(1, replica::DEVICES, Clock::system(), &[0; 32]).phones_of(Part::Plain).collect();
    phones.into_iter().map(|id| id.as_str().to_owned())
}

fn write(key: &Key, phone: Option<String>, action: &str) -> Vec<u8> {
    request(key, &call("set_power", json!({"device_id": phone, "action": action})))
}

fn check(missed: &mut Missed, is_kept: bool, line: String) {
    if !is_kept {
        missed.push(line);
    }
}
