//! A table of the kind `adb`: the phones behind an adb server of this machine.

use super::table::{PlatformTable, number};
use crate::platforms::adb::{AdbAddress, AdbSettings, NoPhonePattern, PhonePattern};
use std::collections::BTreeMap;
use toolwarrant::config::{Findings, Spanned};

/// The usual address of an adb server.
const SERVER: &str = "127.0.0.1:5037";

/// Reads the table. Returns `None` if something is missing, and reports it in `found`.
pub(super) fn read(key: &Spanned<String>, table: PlatformTable, found: &mut Findings<'_>) -> Option<AdbSettings> {
    let PlatformTable { server, only, names, region, power_seconds, .. } = table;
    let (server, span) =
        server.map_or((SERVER.to_owned(), key.span()), |server| (server.get_ref().clone(), server.span()));
    let server = server.parse::<AdbAddress>();
    let server = server.map_err(|error| {
        found.add(span, "`server` is not an address on this machine", Some(error.to_string()));
    });
    let only = patterns(key, only, found);
    let mut named = BTreeMap::new();
    for (phone, name) in names.unwrap_or_default() {
        if only.iter().any(|pattern| pattern.admits(phone.get_ref())) {
            named.insert(phone.into_inner(), name);
        } else {
            let help = "write its serial, or `usb:` and its USB path, as `only` has it".to_owned();
            found.add(phone.span(), format!("`only` admits no phone `{}`", phone.get_ref()), Some(help));
        }
    }
    let power_seconds = number("power-seconds", (180, 3_600), power_seconds, found);
    let region = region.map(Spanned::into_inner);
    Some(AdbSettings { server: server.ok()?, only, names: named, region, power_seconds })
}

/// Reads the patterns of phones. There is no default, because a phone that only charges its battery
/// at this machine must not be served.
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
