//! The program in front of real adb servers and phones, as [`kit::Rack`] runs them.

mod copies;
mod restarts;
mod screens;
mod short;
mod short_programs;
mod simulated;
mod stdio;
mod writes;

use super::crash::audit::rack::ActJournals;
use super::options;
use crate::harness::program::{Program, key_of, operate};
use kit::{Rack, RackPhone, RackServer};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::sleep;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RackOptions {
    roots: PathBuf,
    restarts: Option<u64>,
    writes: Option<u64>,
    screens: Option<u64>,
    simulated: Option<u64>,
    seed: u64,
}

/// Name, release of Debian that has the adb server, and port.
const PLATFORMS: [(&str, &str, u16); 2] = [("twelve", "bookworm", 5_029), ("thirteen", "trixie", 5_034)];

struct RackSite {
    rack: Rack,
    home: Arc<TempDir>,
    servers: [RackServer; 2],
    /// Every other one is at the second server.
    phones: HashMap<String, Arc<RackPhone>>,
}

impl RackSite {
    async fn start(options: &RackOptions, phones: u8, power_seconds: u32) -> Self {
        let home = Arc::new(TempDir::new().expect("a temporary folder"));
        let rack = Rack::new(&options.roots, home.path()).expect("a network: `cargo xtask drill rack` makes it");
        let (mut by_id, mut config) = (HashMap::new(), String::new());
        let mut servers = Vec::new();
        for (at, (name, release, port)) in PLATFORMS.into_iter().enumerate() {
            let mut own = Vec::new();
            for number in (1..=phones).filter(|number| usize::from(number % 2) != at) {
                own.push(rack.start_phone(number).await.expect("a phone"));
            }
            let server = rack.start_server(release, port, &own.iter().collect::<Vec<_>>()).await.expect("a server");
            // A phone that only a pattern names is forgotten once it is not in the server's list.
            let serials: Vec<String> = own.iter().map(RackPhone::serial).collect();
            config += &format!(
                "[platform.{name}]\nkind = \"adb\"\nserver = \"{}\"\nonly = {serials:?}\npower-seconds = {power_seconds}\n",
                server.address
            );
            by_id.extend(own.into_iter().map(|phone| (id(name, &phone), Arc::new(phone))));
            servers.push(server);
        }
        std::fs::write(home.path().join("cloudphone.toml"), config).expect("written");
        Self { rack, home, servers: servers.try_into().expect("two"), phones: by_id }
    }

    fn flags(&self) -> [String; 2] {
        ["--config".to_owned(), self.home.path().join("cloudphone.toml").display().to_string()]
    }

    async fn serve(&self) -> Program {
        serve(&self.home, &self.flags(), self.phones.len()).await
    }

    fn read_journals(&self) -> ActJournals {
        let journals = self.phones.iter();
        journals.map(|(id, phone)| (id.clone(), phone.journal().expect("a journal"))).collect()
    }
}

async fn serve(home: &Arc<TempDir>, flags: &[String], phones: usize) -> Program {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut program = Program::start_at(Arc::clone(home), &flags).await;
    operate(&program.data, "app create rack --permission device --permission stream --requests-per-minute 100000000")
        .await;
    operate(&program.data, "device assign rack --all").await;
    program.keys = vec![key_of(&program.data, "rack").await];
    wait_until_running(&program, phones).await;
    program
}

/// Measures from the return of the servers until all phones run.
async fn measure_return(site: &mut RackSite, program: &Program) -> Duration {
    for server in &mut site.servers {
        server.kill().expect("it ran");
    }
    wait_until_gone(program, site.phones.keys()).await;
    for server in &mut site.servers {
        server.start().await.expect("it starts again");
    }
    wait_until_running(program, site.phones.len()).await
}

async fn wait_until_gone(program: &Program, ids: impl IntoIterator<Item = &String>) {
    for id in ids {
        wait_until_unknown(program, id).await;
    }
    // The list shows a phone for up to a minute after its last answer.
    wait_until_running(program, 0).await;
}

async fn wait_until_unknown(program: &Program, id: &str) {
    while program.call("get_device", json!({"device_id": id})).await.expect("it is known")["state"] != "unknown" {
        sleep(Duration::from_millis(300)).await;
    }
}

fn id(platform: &str, phone: &RackPhone) -> String {
    format!("{platform}-{}", phone.serial().replace(['.', ':'], "-"))
}

fn restart(id: &str) -> Value {
    json!({"device_id": id, "action": "restart"})
}

async fn wait_until_running(program: &Program, phones: usize) -> Duration {
    let begun = tokio::time::Instant::now();
    loop {
        let page = program.call("list_devices", json!({"limit": 200})).await.expect("a page");
        let devices = page["devices"].as_array().expect("phones");
        if devices.iter().filter(|device| device["state"] == "running").count() == phones {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(90), "not all phones run: {page:#}\n{}", program.log());
        sleep(Duration::from_millis(200)).await;
    }
}

fn show(figures: impl IntoIterator<Item = (impl AsRef<str>, u64)>) {
    for (what, figure) in figures {
        println!("{figure:>8}  {}", what.as_ref());
    }
}
