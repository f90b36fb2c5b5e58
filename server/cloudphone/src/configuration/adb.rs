//! A table of the kind `adb`.

use super::number::check_number;
use crate::adapter_kit::host_program::HostProgram;
use crate::platforms::adb::{
    AdbAddress, AdbPrograms, AdbSettings, NetworkAddress, NoPhonePattern, PhonePattern, PowerPrograms, ProxyPrograms,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use toolwarrant::config::{Findings, Spanned};

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

pub(super) fn read(key: &Spanned<String>, table: AdbTable, found: &mut Findings<'_>) -> Option<AdbSettings> {
    let programs = read_programs(&table, found);
    let (server, span) =
        table.server.map_or((SERVER.to_owned(), key.span()), |server| (server.get_ref().clone(), server.span()));
    let server = server.parse::<AdbAddress>();
    let server = server.map_err(|error| {
        found.add(span, "`server` is not an address on this machine", Some(error.to_string()));
    });
    let only = patterns(key, table.only, found);
    let mut named = BTreeMap::new();
    for (phone, name) in table.names {
        if only.iter().any(|pattern| pattern.admits(phone.get_ref())) {
            named.insert(phone.into_inner(), name);
        } else {
            let help = "write its serial, or `usb:` and its USB path, as `only` has it".to_owned();
            found.add(phone.span(), format!("`only` admits no phone `{}`", phone.get_ref()), Some(help));
        }
    }
    let power_seconds = check_number("power-seconds", (AdbSettings::POWER_SECONDS, 3_600), table.power_seconds, found);
    let proxy_seconds = check_number("proxy-seconds", (AdbSettings::PROXY_SECONDS, 3_600), table.proxy_seconds, found);
    let connect = addresses(table.connect, &only, found);
    Some(AdbSettings {
        server: server.ok()?,
        only,
        connect,
        names: named,
        region: table.region,
        power_seconds,
        proxy_seconds,
        shared_address: table.shared_address,
        programs,
    })
}

/// Has no default, because a phone that only charges its battery here must not be served.
fn patterns(
    key: &Spanned<String>,
    only: Option<Spanned<Vec<Spanned<String>>>>,
    found: &mut Findings<'_>,
) -> Vec<PhonePattern> {
    let span = only.as_ref().map_or_else(|| key.span(), Spanned::span);
    let written = only.map(Spanned::into_inner).unwrap_or_default();
    if written.is_empty() {
        let help = "list the serials of the phones to serve; `adb devices -l` shows them, and \"*\" stands for all";
        found.add(span, "`only` names no phone", Some(help.to_owned()));
    }
    let mut read = |text: Spanned<String>| {
        let pattern = text.get_ref().parse::<PhonePattern>();
        let report = |error: &NoPhonePattern| {
            found.add(text.span(), format!("`{}` names no phone", text.get_ref()), Some(error.to_string()));
        };
        pattern.inspect_err(report).ok()
    };
    written.into_iter().filter_map(&mut read).collect()
}

fn addresses(written: Vec<Spanned<String>>, only: &[PhonePattern], found: &mut Findings<'_>) -> Vec<NetworkAddress> {
    let mut read = |text: Spanned<String>| match text.get_ref().parse::<NetworkAddress>() {
        Ok(address) if only.iter().any(|pattern| pattern.admits(text.get_ref())) => Some(address),
        Ok(_) => {
            found.add(text.span(), format!("`only` admits no phone `{}`", text.get_ref()), None);
            None
        }
        Err(error) => {
            let what = format!("`{}` is not the address of a phone", text.get_ref());
            found.add(text.span(), what, Some(error.to_string()));
            None
        }
    };
    written.into_iter().filter_map(&mut read).collect()
}

/// Requires programs that undo each other: nobody should switch off what he cannot switch on.
fn read_programs(table: &AdbTable, found: &mut Findings<'_>) -> AdbPrograms {
    let mut read = |keys: &[(&str, &Option<Spanned<Vec<String>>>)]| {
        let span = keys.iter().find_map(|(_, words)| words.as_ref().map(Spanned::span));
        let mut programs = Vec::new();
        for (key, words) in keys {
            match (words.as_ref(), &span) {
                (Some(words), _) => match HostProgram::parse(words.get_ref()) {
                    Ok(program) => programs.push(program),
                    Err(error) => found.add(words.span(), format!("`{key}` cannot be used: {error}"), None),
                },
                (None, Some(span)) => {
                    let all: Vec<_> = keys.iter().map(|(key, _)| format!("`{key}`")).collect();
                    let help = format!("{} go together: what one does, another must undo", all.join(", "));
                    found.add(span.clone(), format!("`{key}` is missing"), Some(help));
                }
                (None, None) => {}
            }
        }
        programs
    };
    let [restart, power, proxy] = [
        read(&[("restart", &table.restart)]),
        read(&[("start", &table.start), ("stop", &table.stop), ("status", &table.status)]),
        read(&[("set-proxy", &table.set_proxy), ("clear-proxy", &table.clear_proxy)]),
    ];
    AdbPrograms {
        restart: restart.into_iter().next(),
        power: <[_; 3]>::try_from(power).ok().map(|[start, stop, status]| PowerPrograms { start, stop, status }),
        proxy: <[_; 2]>::try_from(proxy).ok().map(|[set, clear]| ProxyPrograms { set, clear }),
    }
}
