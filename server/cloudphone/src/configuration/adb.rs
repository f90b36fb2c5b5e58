//! A table of the kind `adb`.

use super::number::check_number;
use crate::adapter_kit::host_program::HostProgram;
use crate::platforms::adb::{
    AdbAddress, AdbPrograms, AdbSettings, NetworkAddress, PhonePattern, PowerPrograms, ProxyPrograms,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use toolwarrant::config::{Config, ConfigError, Spanned};

const SERVER: &str = "127.0.0.1:5037";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct AdbTable {
    server: Option<Spanned<String>>,
    only: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    names: BTreeMap<Spanned<String>, String>,
    region: Option<String>,
    #[serde(default)]
    connect: Vec<Spanned<String>>,
    power_seconds: Option<Spanned<u32>>,
    proxy_seconds: Option<Spanned<u32>>,
    #[serde(default)]
    shared_address: bool,
    restart: Option<Spanned<Vec<String>>>,
    start: Option<Spanned<Vec<String>>>,
    stop: Option<Spanned<Vec<String>>>,
    status: Option<Spanned<Vec<String>>>,
    set_proxy: Option<Spanned<Vec<String>>>,
    clear_proxy: Option<Spanned<Vec<String>>>,
}

pub(super) fn read(config: &Config, key: &Spanned<String>, table: AdbTable) -> Result<AdbSettings, ConfigError> {
    let programs = read_programs(config, &table)?;
    let (server, span) =
        table.server.map_or((SERVER.to_owned(), key.span()), |server| (server.get_ref().clone(), server.span()));
    let server = server.parse::<AdbAddress>();
    let wrong = "`server` is not an address on this machine";
    let server = server.map_err(|error| config.mistake(span, wrong, Some(error.to_string())))?;
    let only = patterns(config, key, table.only)?;
    let mut named = BTreeMap::new();
    for (phone, name) in table.names {
        if !only.iter().any(|pattern| pattern.admits(phone.get_ref())) {
            let help = "write its serial, or `usb:` and its USB path, as `only` has it".to_owned();
            let message = format!("`only` admits no phone `{}`", phone.get_ref());
            return Err(config.mistake(phone.span(), message, Some(help)));
        }
        named.insert(phone.into_inner(), name);
    }
    let seconds = |name, usual, written| check_number(config, name, (usual, 3_600), written);
    Ok(AdbSettings {
        server,
        connect: table.connect.into_iter().map(|text| address(config, &only, &text)).collect::<Result<_, _>>()?,
        only,
        names: named,
        region: table.region,
        power_seconds: seconds("power-seconds", AdbSettings::POWER_SECONDS, table.power_seconds)?,
        proxy_seconds: seconds("proxy-seconds", AdbSettings::PROXY_SECONDS, table.proxy_seconds)?,
        shared_address: table.shared_address,
        programs,
    })
}

/// Has no default, because a phone that only charges its battery here must not be served.
fn patterns(
    config: &Config,
    key: &Spanned<String>,
    only: Option<Spanned<Vec<Spanned<String>>>>,
) -> Result<Vec<PhonePattern>, ConfigError> {
    let span = only.as_ref().map_or_else(|| key.span(), Spanned::span);
    let written = only.map(Spanned::into_inner).unwrap_or_default();
    if written.is_empty() {
        let help = "list the serials of the phones to serve; `adb devices -l` shows them, and \"*\" stands for all";
        return Err(config.mistake(span, "`only` names no phone", Some(help.to_owned())));
    }
    let read = |text: Spanned<String>| {
        let names_none = |help: &str| {
            config.mistake(text.span(), format!("`{}` names no phone", text.get_ref()), Some(help.to_owned()))
        };
        text.get_ref().parse().map_err(names_none)
    };
    written.into_iter().map(read).collect()
}

fn address(config: &Config, only: &[PhonePattern], text: &Spanned<String>) -> Result<NetworkAddress, ConfigError> {
    let written = text.get_ref();
    let address = written.parse::<NetworkAddress>().map_err(|error| {
        config.mistake(text.span(), format!("`{written}` is not the address of a phone"), Some(error.to_string()))
    })?;
    match only.iter().any(|pattern| pattern.admits(written)) {
        true => Ok(address),
        false => Err(config.mistake(text.span(), format!("`only` admits no phone `{written}`"), None)),
    }
}

/// Requires programs that undo each other: nobody should switch off what he cannot switch on.
fn read_programs(config: &Config, table: &AdbTable) -> Result<AdbPrograms, ConfigError> {
    let read = |keys: &[(&str, &Option<Spanned<Vec<String>>>)]| {
        let Some(span) = keys.iter().find_map(|(_, words)| words.as_ref().map(Spanned::span)) else {
            return Ok(Vec::new());
        };
        let program = |(key, words): &(&str, &Option<Spanned<Vec<String>>>)| {
            let Some(words) = words else {
                let all: Vec<_> = keys.iter().map(|(key, _)| format!("`{key}`")).collect();
                let help = format!("{} go together: what one does, another must undo", all.join(", "));
                return Err(config.mistake(span.clone(), format!("`{key}` is missing"), Some(help)));
            };
            let unusable = |error| config.mistake(words.span(), format!("`{key}` cannot be used: {error}"), None);
            HostProgram::parse(words.get_ref()).map_err(unusable)
        };
        keys.iter().map(program).collect::<Result<Vec<_>, _>>()
    };
    let [restart, power, proxy] = [
        read(&[("restart", &table.restart)])?,
        read(&[("start", &table.start), ("stop", &table.stop), ("status", &table.status)])?,
        read(&[("set-proxy", &table.set_proxy), ("clear-proxy", &table.clear_proxy)])?,
    ];
    Ok(AdbPrograms {
        restart: restart.into_iter().next(),
        power: <[_; 3]>::try_from(power).ok().map(|[start, stop, status]| PowerPrograms { start, stop, status }),
        proxy: <[_; 2]>::try_from(proxy).ok().map(|[set, clear]| ProxyPrograms { set, clear }),
    })
}
