//! A table of the kind `armcloud`.

use super::number::check_number;
use crate::adapter_kit::guard::GuardLimits;
use crate::platforms::armcloud::api::{READ_WITHIN, WRITE_WITHIN};
use crate::platforms::armcloud::{Account, AccountKeys, ApiSettings, Family, Scheme};
use serde::Deserialize;
use std::path::PathBuf;
use toolwarrant::config::{Config, ConfigError, CredentialSource, Spanned};
use toolwarrant::http::HttpClient;
use toolwarrant::text::Secret;
use url::Url;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ArmcloudTable {
    base_url: Option<Spanned<String>>,
    prefix: Option<Spanned<String>>,
    signing: Option<Spanned<String>>,
    access_key_file: Option<Spanned<PathBuf>>,
    access_key_env: Option<Spanned<String>>,
    secret_key_file: Option<Spanned<PathBuf>>,
    secret_key_env: Option<Spanned<String>>,
    on_off: Option<Vec<String>>,
    power_seconds: Option<Spanned<u32>>,
    proxy_seconds: Option<Spanned<u32>>,
    concurrent: Option<Spanned<u32>>,
    requests_per_second: Option<Spanned<u32>>,
    requests_per_minute: Option<Spanned<u32>>,
    #[serde(default)]
    read_through_proxy: bool,
    #[serde(default)]
    shared_address: bool,
}

pub(super) fn read(config: &Config, key: &Spanned<String>, table: ArmcloudTable) -> Result<Account, ConfigError> {
    let Some(url) = table.base_url else {
        let example = "such as \"https://api.vmoscloud.com\"".to_owned();
        return Err(config.mistake(key.span(), "`base-url` is missing", Some(example)));
    };
    let base_url = Url::parse(url.get_ref()).map_err(|error| error.to_string()).and_then(check_url);
    let base_url =
        base_url.map_err(|why| config.mistake(url.span(), format!("`base-url` cannot be used: {why}"), None))?;
    let family = family(config, table.prefix.as_ref())?;
    let scheme = scheme(config, table.signing.as_ref(), family)?;
    let credential = |name: &str, file: Option<Spanned<PathBuf>>, variable: Option<Spanned<String>>| {
        let (source, span) = match (file, variable) {
            (Some(file), None) => (CredentialSource::File(config.beside(file.get_ref())), file.span()),
            (None, Some(variable)) => (CredentialSource::Environment(variable.get_ref().clone()), variable.span()),
            (file, _) => {
                let span = file.map_or(key.span(), |file| file.span());
                let help = format!(
                    "`{name}-file` names a file that only its owner can read, `{name}-env` an environment variable"
                );
                let message = format!("say in exactly one key where the {} is", name.replace('-', " "));
                return Err(config.mistake(span, message, Some(help)));
            }
        };
        source.read().map_err(|error| config.mistake(span, error.to_string(), None))
    };
    let access_key = credential("access-key", table.access_key_file, table.access_key_env)?;
    let secret_key: Secret<String> = credential("secret-key", table.secret_key_file, table.secret_key_env)?;
    let number = |name, usual_and_most, written| check_number(config, name, usual_and_most, written);
    Ok(Account {
        settings: ApiSettings {
            base_url,
            prefix: table.prefix.map(Spanned::into_inner).unwrap_or_default(),
            family,
            scheme,
            read_within: READ_WITHIN,
            write_within: WRITE_WITHIN,
        },
        keys: AccountKeys { access_key: access_key.expose().clone(), secret_key },
        limits: GuardLimits {
            concurrent: number("concurrent", (8, 1_000), table.concurrent)?,
            per_second: number("requests-per-second", (20, 10_000), table.requests_per_second)?,
            per_minute: number("requests-per-minute", (300, 100_000), table.requests_per_minute)?,
        },
        on_off: table.on_off,
        power_seconds: number("power-seconds", (180, 3_600), table.power_seconds)?,
        proxy_seconds: number("proxy-seconds", (30, 3_600), table.proxy_seconds)?,
        shared_address: table.shared_address,
        reads_through_proxy: table.read_through_proxy,
    })
}

fn family(config: &Config, prefix: Option<&Spanned<String>>) -> Result<Family, ConfigError> {
    let Some(prefix) = prefix else { return Ok(Family::Armcloud) };
    if !["/vcpcloud/api/padApi", "/vsphone/api/padApi"].contains(&prefix.get_ref().as_str()) {
        let help = "expected \"/vcpcloud/api/padApi\" (VMOS Cloud), \"/vsphone/api/padApi\" (VSPhone), or no prefix (ARMCloud)";
        return Err(config.mistake(prefix.span(), "no platform has this prefix", Some(help.to_owned())));
    }
    Ok(Family::PadApi)
}

fn scheme(config: &Config, signing: Option<&Spanned<String>>, family: Family) -> Result<Scheme, ConfigError> {
    let Some(signing) = signing else { return Ok(Scheme::V4) };
    let (what, help) = match signing.get_ref().as_str() {
        "v2" if family == Family::Armcloud => {
            ("ARMCloud does not support v2".to_owned(), "use \"v4\", or set the `prefix` of VMOS Cloud or VSPhone")
        }
        "v2" => return Ok(Scheme::V2),
        "v4" => return Ok(Scheme::V4),
        other => (format!("there is no scheme `{other}`"), "the schemes are \"v2\" and \"v4\""),
    };
    Err(config.mistake(signing.span(), what, Some(help.to_owned())))
}

/// Refuses plain http to another machine, so that credentials never go there.
fn check_url(url: Url) -> Result<Url, String> {
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if !is_bare || !url.username().is_empty() || url.password().is_some() {
        return Err("a base URL has only a scheme and a host; expected one like https://api.vmoscloud.com".to_owned());
    }
    HttpClient::to(&url).map(|_| url).map_err(|error| error.to_string())
}
