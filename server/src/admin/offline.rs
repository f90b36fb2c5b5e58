//! Commands where no server runs: whoever asks takes the data folder for as long as it takes.

use super::{Command, Office, Why, execute, socket, tools};
use crate::clock::Clock;
use crate::data::DataFolder;
use crate::framework::registry::Registry;
use crate::phones::contract::CATALOGUE;
use crate::phones::upstream::sim::Sim;
use crate::random::Random;
use crate::store::Store;
use crate::store::sqlite::Sqlite;
use crate::vault::Vault;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The simulated phones that a server would have.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    /// How many.
    pub devices: u32,
    /// Their seed.
    pub seed: u64,
}

/// Carries out `command` on that data folder: through the server that runs there, or without one.
///
/// # Errors
/// What was wrong with it, and what there is instead.
pub async fn run(folder: &Path, fleet: Fleet, command: Command) -> Result<Value, Why> {
    if let Command::Tools { name } = &command {
        return tools(name.as_deref());
    }
    if let Some(answer) = socket::ask(folder, &command).await {
        return answer;
    }
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(format!("there is no data folder {folder}; start a server once, or name another with --data"));
    }
    execute(&open(folder, fleet).await?, command).await
}

async fn open(folder: &Path, Fleet { devices, seed }: Fleet) -> Result<Office, Why> {
    let why = |error: &dyn std::error::Error| error.to_string();
    let (clock, random) = (Clock::system(), Random::System);
    let folder = DataFolder::open(folder).map_err(|error| why(&error))?;
    let vault = Vault::new(&folder.master_key(&random).map_err(|error| why(&error))?, random.clone());
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(&folder).map_err(|error| why(&error))?);
    let registry = Registry::open(store.clone(), &CATALOGUE, vault, clock.clone(), random).await?;
    let sim = Sim::new(seed, devices, clock.clone(), &[0; 32]).journaled(&folder.join("simulated.jsonl"));
    let upstream = Arc::new(sim.map_err(|error| why(&error))?);
    Ok(Office { registry, store, upstream, audit: folder.join("audit"), clock })
}
