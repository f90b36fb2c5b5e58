//! The table `[platform.NAME]` of the configuration file: the platforms that run the phones, and
//! the way to reach each of them.
//!
//! The table is accepted as a whole or refused. Each mistake is reported with its place in the
//! file. The table names the source of the credentials and never contains them. Start at
//! [`platforms`].

mod adb;
mod table;

use crate::adapter_kit::guard::GuardLimits;
use crate::phones::port::PlatformName;
use crate::platforms::adb::AdbSettings;
use crate::platforms::armcloud::api::judge_base_url;
use crate::platforms::armcloud::{Account, Family, Scheme};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use table::{PlatformTable, number};
use toolwarrant::config::{Config, ConfigError, ConfigTable, CredentialSource, Findings, Spanned};
use toolwarrant::http::HttpClient;
use toolwarrant::text::Secret;
use url::Url;

/// The table of the configuration file.
pub(crate) const TABLE: ConfigTable = ConfigTable { name: "platform", judge };

/// A platform that the file names.
pub(crate) enum PlatformConfig {
    /// The built-in phones.
    Simulator,
    /// An account at ARMCloud, VMOS Cloud or VSPhone.
    Armcloud {
        /// The account.
        account: Box<Account>,
        /// True if this server may make requests through proxies itself.
        reads_through_proxy: bool,
    },
    /// The phones behind an adb server of this machine.
    Adb(Box<AdbSettings>),
}

/// The name of the simulated platform. The ids of its phones begin with it.
pub(crate) const SIMULATOR: &str = "phone";

/// Reads all platforms of the file, sorted by name. Returns an empty list if the file has no such
/// table.
///
/// # Errors
/// All mistakes in the table.
pub(crate) fn platforms(config: &Config) -> Result<Vec<(PlatformName, PlatformConfig)>, ConfigError> {
    let written: BTreeMap<Spanned<String>, PlatformTable> = config.table(TABLE.name)?.unwrap_or_default();
    let mut found = config.findings();
    let mut platforms = Vec::new();
    for (key, written) in written {
        let name = match PlatformName::parse(key.get_ref()) {
            Ok(name) => Some(name),
            Err(error) => {
                found.add(key.span(), format!("`{}` is not a platform name", key.get_ref()), Some(error.to_string()));
                None
            }
        };
        let platform = match written.kind.get_ref().as_str() {
            "simulator" => {
                if name.as_ref().is_some_and(|name| name.as_str() != SIMULATOR) {
                    let help = format!("call it [platform.{SIMULATOR}]: the ids of its phones begin with that name");
                    found.add(key.span(), "the platform of the simulated phones has a fixed name", Some(help));
                }
                Some(PlatformConfig::Simulator)
            }
            kind @ ("adb" | "armcloud") => {
                if key.get_ref() == SIMULATOR {
                    let help = "choose another: the ids of simulated phones begin with this one".to_owned();
                    found.add(key.span(), format!("`{SIMULATOR}` is the simulator's name"), Some(help));
                }
                match kind {
                    "adb" => {
                        adb::read(&key, written, &mut found).map(|settings| PlatformConfig::Adb(Box::new(settings)))
                    }
                    _ => armcloud(config, &key, written, &mut found),
                }
            }
            other => {
                let help = "the kinds are \"adb\", \"armcloud\" and \"simulator\"".to_owned();
                found.add(written.kind.span(), format!("there is no kind `{other}`"), Some(help));
                None
            }
        };
        platforms.extend(name.zip(platform));
    }
    found.finish()?;
    platforms.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(platforms)
}

/// Reads one account. Returns `None` if something is missing, and reports it in `found`.
fn armcloud(
    config: &Config,
    key: &Spanned<String>,
    table: PlatformTable,
    found: &mut Findings<'_>,
) -> Option<PlatformConfig> {
    let PlatformTable {
        kind: _,
        base_url,
        prefix,
        signing,
        access_key_file,
        access_key_env,
        secret_key_file,
        secret_key_env,
        on_off,
        power_seconds,
        proxy_seconds,
        concurrent,
        requests_per_second,
        requests_per_minute,
        read_through_proxy,
        shared_address,
        ..
    } = table;
    if base_url.is_none() {
        let example = "such as \"https://api.vmoscloud.com\"".to_owned();
        found.add(key.span(), "`base-url` is missing", Some(example));
    }
    let base_url = base_url.and_then(|url| {
        let read = Url::parse(url.get_ref()).map_err(|error| error.to_string()).and_then(check_url);
        read.map_err(|why| found.add(url.span(), format!("`base-url` cannot be used: {why}"), None)).ok()
    });
    let family = family(prefix.as_ref(), found);
    let scheme = scheme(signing.as_ref(), family, found);
    let mut credential = |name: &str, file: Option<Spanned<PathBuf>>, variable: Option<Spanned<String>>| {
        let (source, span) = match (file, variable) {
            (Some(file), None) => (CredentialSource::File(config.beside(file.get_ref())), file.span()),
            (None, Some(variable)) => (CredentialSource::Environment(variable.get_ref().clone()), variable.span()),
            (file, _) => {
                let span = file.map_or(key.span(), |file| file.span());
                let help = format!(
                    "`{name}-file` names a file that only its owner can read, `{name}-env` an environment variable"
                );
                found.add(span, format!("say in exactly one key where the {} is", name.replace('-', " ")), Some(help));
                return None;
            }
        };
        source.read().map_err(|error| found.add(span, error.to_string(), None)).ok()
    };
    let access_key = credential("access-key", access_key_file, access_key_env);
    let secret_key: Option<Secret<String>> = credential("secret-key", secret_key_file, secret_key_env);
    let mut number = |name: &str, usual, most, written| number(name, (usual, most), written, found);
    let limits = GuardLimits {
        concurrent: number("concurrent", 8, 1_000, concurrent),
        per_second: number("requests-per-second", 20, 10_000, requests_per_second),
        per_minute: number("requests-per-minute", 300, 100_000, requests_per_minute),
    };
    let power_seconds = number("power-seconds", 180, 3_600, power_seconds);
    let proxy_seconds = number("proxy-seconds", 30, 3_600, proxy_seconds);
    let account = Account {
        base_url: base_url?,
        prefix: prefix.map(Spanned::into_inner).unwrap_or_default(),
        family,
        scheme: scheme?,
        access_key: access_key?,
        secret_key: secret_key?,
        limits,
        on_off,
        power_seconds,
        proxy_seconds,
        shared_address: shared_address.unwrap_or(false),
    };
    let reads_through_proxy = read_through_proxy.unwrap_or(false);
    Some(PlatformConfig::Armcloud { account: Box::new(account), reads_through_proxy })
}

/// Returns the family of calls that a prefix stands for.
fn family(prefix: Option<&Spanned<String>>, found: &mut Findings<'_>) -> Family {
    let Some(prefix) = prefix else { return Family::Armcloud };
    if !["/vcpcloud/api/padApi", "/vsphone/api/padApi"].contains(&prefix.get_ref().as_str()) {
        let help = "expected \"/vcpcloud/api/padApi\" (VMOS Cloud), \"/vsphone/api/padApi\" (VSPhone), or no prefix (ARMCloud)";
        found.add(prefix.span(), "no platform has this prefix", Some(help.to_owned()));
    }
    Family::PadApi
}

/// Returns the scheme that signs requests to this family. Returns `None` for a scheme that the
/// family does not accept, and reports it in `found`.
fn scheme(signing: Option<&Spanned<String>>, family: Family, found: &mut Findings<'_>) -> Option<Scheme> {
    let Some(signing) = signing else { return Some(Scheme::V4) };
    let (what, help) = match signing.get_ref().as_str() {
        "v2" if family == Family::Armcloud => {
            ("ARMCloud does not support v2".to_owned(), "use \"v4\", or set the `prefix` of VMOS Cloud or VSPhone")
        }
        "v2" => return Some(Scheme::V2),
        "v4" => return Some(Scheme::V4),
        other => (format!("there is no scheme `{other}`"), "the schemes are \"v2\" and \"v4\""),
    };
    found.add(signing.span(), what, Some(help.to_owned()));
    None
}

/// Refuses a base URL that the HTTP client would refuse: credentials never go to another machine
/// without TLS.
fn check_url(url: Url) -> Result<Url, String> {
    judge_base_url(&url)?;
    HttpClient::to(&url).map(|_| url).map_err(|error| error.to_string())
}

/// Returns the platforms that the configuration would give, without credentials.
fn judge(config: &Config) -> Result<Value, ConfigError> {
    let shown = |(name, platform): (PlatformName, PlatformConfig)| match platform {
        PlatformConfig::Adb(settings) => {
            json!({"name": name.as_str(), "kind": "adb", "server": settings.server.to_string()})
        }
        PlatformConfig::Simulator => json!({"name": name.as_str(), "kind": "simulator"}),
        PlatformConfig::Armcloud { account, .. } => {
            json!({"name": name.as_str(), "kind": "armcloud", "base_url": account.base_url.as_str()})
        }
    };
    Ok(platforms(config)?.into_iter().map(shown).collect())
}
