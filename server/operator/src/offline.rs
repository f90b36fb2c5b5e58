//! Commands where no server runs: whoever asks takes the data folder for as long as it takes.

use super::{Command, Fleet, Opened, Why, doctor, execute, socket, tools};
use crate::clock::Clock;
use crate::data::{self, DataFolder};
use crate::random::Random;
use serde_json::Value;
use std::path::Path;

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
    // To open it would make one, and take whatever lies there for a data folder.
    if !data::has_database(folder) {
        let folder = folder.display();
        return Err(format!("there is no database in {folder}; start a server once, or name another with --data"));
    }
    if let Command::Doctor = command {
        return doctor::alone(folder).await;
    }
    let office = async {
        let (clock, random) = (Clock::system(), Random::System);
        Opened::open(&DataFolder::open(folder)?, fleet, clock, &random).await
    };
    let Opened { office, .. } = office.await.map_err(|error| format!("{error:#}"))?;
    execute(&office, command).await
}
