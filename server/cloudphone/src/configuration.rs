//! The table `[platform.NAME]` of the configuration file: the platforms, and the way to reach each.
//!
//! It is accepted as a whole or refused. It names the source of the credentials and never contains
//! them. Start at [`platforms`].

mod adb;
mod armcloud;
mod number;

use crate::phones::port::PlatformName;
use crate::platforms::adb::AdbSettings;
use crate::platforms::armcloud::Account;
use adb::AdbTable;
use armcloud::ArmcloudTable;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwarrant::config::{Config, ConfigError, ConfigTable};

pub(crate) const TABLE: ConfigTable = ConfigTable { name: "platform", judge };

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PlatformTable {
    Adb(AdbTable),
    Armcloud(ArmcloudTable),
    Simulator(SimulatorTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulatorTable {}

pub(crate) enum PlatformConfig {
    Simulator,
    Armcloud(Box<Account>),
    Adb(Box<AdbSettings>),
}

/// The ids of simulated phones begin with it.
pub(crate) const SIMULATOR: &str = "phone";

pub(crate) fn platforms(config: &Config) -> Result<Vec<(PlatformName, PlatformConfig)>, ConfigError> {
    let mut platforms = Vec::new();
    for (key, table) in config.entries_by_kind::<PlatformTable>(TABLE.name)? {
        let mistake = |message: String, help: String| config.mistake(key.span(), message, Some(help));
        let name = PlatformName::parse(key.get_ref());
        let named = |error| mistake(format!("`{}` is not a platform name", key.get_ref()), format!("{error}"));
        let name = name.map_err(named)?;
        let simulates = matches!(table, PlatformTable::Simulator(_));
        if simulates && name.as_str() != SIMULATOR {
            let help = format!("call it [platform.{SIMULATOR}]: the ids of its phones begin with that name");
            return Err(mistake("the platform of the simulated phones has a fixed name".to_owned(), help));
        }
        if !simulates && name.as_str() == SIMULATOR {
            let help = "choose another: the ids of simulated phones begin with this one".to_owned();
            return Err(mistake(format!("`{SIMULATOR}` is the simulator's name"), help));
        }
        let platform = match table {
            PlatformTable::Simulator(_) => PlatformConfig::Simulator,
            PlatformTable::Adb(table) => PlatformConfig::Adb(Box::new(adb::read(config, &key, table)?)),
            PlatformTable::Armcloud(table) => PlatformConfig::Armcloud(Box::new(armcloud::read(config, &key, table)?)),
        };
        let has_server = |other: &PlatformConfig| match (&platform, other) {
            (PlatformConfig::Adb(one), PlatformConfig::Adb(other)) => one.server == other.server,
            _ => false,
        };
        if platforms.iter().any(|(_, other)| has_server(other)) {
            let help = "name the phones of both in one `only`, or start a second adb server".to_owned();
            let message = "another platform has this adb server, so each phone would have two ids".to_owned();
            return Err(mistake(message, help));
        }
        platforms.push((name, platform));
    }
    platforms.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(platforms)
}

/// Shows no credentials.
fn judge(config: &Config) -> Result<Value, ConfigError> {
    let shown = |(name, platform): (PlatformName, PlatformConfig)| match platform {
        PlatformConfig::Adb(settings) => {
            json!({"name": name.as_str(), "kind": "adb", "server": settings.server.to_string()})
        }
        PlatformConfig::Simulator => json!({"name": name.as_str(), "kind": "simulator"}),
        PlatformConfig::Armcloud(account) => {
            json!({"name": name.as_str(), "kind": "armcloud", "base_url": account.settings.base_url.as_str()})
        }
    };
    Ok(platforms(config)?.into_iter().map(shown).collect())
}
