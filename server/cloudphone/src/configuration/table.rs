//! One table of a platform as written in the file, and a check that kinds share.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toolwarrant::config::{Findings, Spanned};

/// One platform as written in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PlatformTable {
    pub(super) kind: Spanned<String>,
    pub(super) base_url: Option<Spanned<String>>,
    pub(super) prefix: Option<Spanned<String>>,
    pub(super) signing: Option<Spanned<String>>,
    pub(super) access_key_file: Option<Spanned<PathBuf>>,
    pub(super) access_key_env: Option<Spanned<String>>,
    pub(super) secret_key_file: Option<Spanned<PathBuf>>,
    pub(super) secret_key_env: Option<Spanned<String>>,
    pub(super) on_off: Option<Vec<String>>,
    pub(super) power_seconds: Option<Spanned<u32>>,
    pub(super) proxy_seconds: Option<Spanned<u32>>,
    pub(super) concurrent: Option<Spanned<u32>>,
    pub(super) requests_per_second: Option<Spanned<u32>>,
    pub(super) requests_per_minute: Option<Spanned<u32>>,
    pub(super) read_through_proxy: Option<bool>,
    pub(super) shared_address: Option<bool>,
    pub(super) server: Option<Spanned<String>>,
    pub(super) only: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) names: Option<BTreeMap<Spanned<String>, String>>,
    pub(super) region: Option<Spanned<String>>,
    pub(super) connect: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) restart: Option<Spanned<Vec<String>>>,
    pub(super) start: Option<Spanned<Vec<String>>>,
    pub(super) stop: Option<Spanned<Vec<String>>>,
    pub(super) status: Option<Spanned<Vec<String>>>,
    pub(super) set_proxy: Option<Spanned<Vec<String>>>,
    pub(super) clear_proxy: Option<Spanned<Vec<String>>>,
}

/// Returns a number of the table, or the usual one. Reports one that is less than 1 or more than
/// `most`.
pub(super) fn number(
    name: &str,
    (usual, most): (u32, u32),
    written: Option<Spanned<u32>>,
    found: &mut Findings<'_>,
) -> u32 {
    let given = written.as_ref().map_or(usual, |number| *number.get_ref());
    if let Some(number) = written.filter(|number| !(1..=most).contains(number.get_ref())) {
        found.add(number.span(), format!("`{name}` is {given}"), Some(format!("1 to {most} are allowed")));
    }
    given
}
