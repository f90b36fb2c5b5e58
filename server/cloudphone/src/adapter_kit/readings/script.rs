//! The scripts of readings, and the parser of their output.
//!
//! They use a shell, and one of curl, wget and nc. Their values are our own URL, and host and port
//! of a proxy that was checked.

use super::Tool;
use crate::adapter_kit::shell::quote;
use crate::phones::port::PhoneStart;
use std::fmt::Write;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;
use strum::VariantArray;
use toolwarrant::http::Expected;
use url::{Host, Url};

/// `http`, a host and a port. No proxy or balancer that terminates connections may stand in front
/// of the callback listener, because the listener would see its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackUrl {
    base: String,
    pub(super) host: String,
    pub(super) port: u16,
}

const NO_URL: &str = "expected a URL like `http://203.0.113.7:8081`: http, a host, and a port unless it is 80";

impl CallbackUrl {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.base
    }

    pub(super) fn authority(&self) -> &str {
        &self.base["http://".len()..]
    }
}

impl FromStr for CallbackUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let url = Url::parse(text).map_err(|_| NO_URL)?;
        let bare = url.username().is_empty() && url.password().is_none();
        let root = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let (Some(host), Some(port), "http", true, true) =
            (url.host(), url.port_or_known_default(), url.scheme(), bare, root)
        else {
            return Err(NO_URL);
        };
        let base = url.as_str().trim_end_matches('/').to_owned();
        let host = match host {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        Ok(Self { base, host, port })
    }
}

/// One URL, or one per family of addresses. With two, a proxy that leaves out a family is no
/// success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackUrls {
    pub(super) first: CallbackUrl,
    pub(super) other: Option<CallbackUrl>,
}

impl FromStr for CallbackUrls {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const NO_FAMILIES: &str = "expected one URL, or two that are separated by a comma: one with an IPv4 address, one with an IPv6 address";
        let Some((first, other)) = text.split_once(',') else { return Ok(text.parse::<CallbackUrl>()?.into()) };
        let (first, other): (CallbackUrl, CallbackUrl) = (first.parse()?, other.parse()?);
        let is_ipv4 = |url: &CallbackUrl| url.host.parse().map(|address: IpAddr| address.is_ipv4());
        match (is_ipv4(&first), is_ipv4(&other)) {
            (Ok(one), Ok(another)) if one != another => Ok(Self { first, other: Some(other) }),
            _ => Err(NO_FAMILIES),
        }
    }
}

impl From<CallbackUrl> for CallbackUrls {
    fn from(first: CallbackUrl) -> Self {
        Self { first, other: None }
    }
}

const SECONDS: u8 = 8;

/// Returns a script that makes an ordinary request and, at the same time, two through a proxy. It
/// prints the program that it used. A missing program ends with 127 or 126. Any other failure comes
/// from the network, and the script does not try the next program.
pub(super) fn requests(url: &CallbackUrl, ordinary: &Expected, explicit: Option<(&str, &[Expected; 2])>) -> String {
    let (own, path) = (quote(&ordinary.url(url.as_str())), quote(ordinary.path()));
    let (authority, host, port) = (quote(url.authority()), quote(&url.host), url.port);
    // A proxy in the environment of the shell is not the phone's proxy.
    let mut script = "unset http_proxy HTTP_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY;".to_owned();
    let _ = write!(script, r#"c() {{ curl -s -m {SECONDS} -o /dev/null "$@"; }};"#);
    let _ = write!(
        script,
        r#"n() {{ printf 'GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' {path} {authority}|"$@" -w {SECONDS} {host} {port}; }};"#
    );
    script += r#"g() { t=$1;shift;"$@" >/dev/null 2>&1;s=$?;[ $s != 126 ]&&[ $s != 127 ]; };"#;
    if let Some((proxy, pair)) = explicit {
        let proxy = quote(proxy);
        for expected in pair {
            let _ = write!(script, "c -x {proxy} {} >/dev/null 2>&1 & ", quote(&expected.url(url.as_str())));
        }
    }
    for &tool in Tool::VARIANTS {
        let request = match tool {
            Tool::Curl => format!("c {own}"),
            // Not every version knows `-q` and `-T`.
            Tool::ToyboxWget => format!("toybox wget -O - {own}"),
            Tool::Wget => format!("wget -O - {own}"),
            Tool::Nc => "n nc".to_owned(),
            Tool::ToyboxNc => "n toybox nc".to_owned(),
            Tool::Missing => ":".to_owned(),
        };
        let (name, next): (&str, _) = (tool.into(), if tool == Tool::Missing { "" } else { "||" });
        let _ = write!(script, "g {name} {request}{next}");
    }
    script + ";wait;echo $t"
}

pub const START: &str = "cat /proc/sys/kernel/random/boot_id;cat /proc/1/stat;echo now;cat /proc/self/stat";

const NOW_FOLLOWS: &str = "now\n";

const BOOT_ID_SHOWN: usize = 8;

/// The start time is field 22 and the name of the process field 2.
const START_AFTER_NAME: usize = 22 - 2 - 1;

const TICK: Duration = Duration::from_millis(10);

/// Takes the age from the starts of two processes, because containers differ in the time since the
/// boot.
pub fn start_of(output: &str) -> Option<PhoneStart> {
    let (first, now) = output.rsplit_once(NOW_FOLLOWS).unwrap_or((output, ""));
    let (boot_id, stat) = first.split_once('\n')?;
    let boot_id = boot_id.trim_end();
    let is_uuid = boot_id.len() == 36
        && boot_id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let (front, start) = start_ticks(stat)?;
    let elapsed = start_ticks(now).and_then(|(_, now)| u32::try_from(now.checked_sub(start)?).ok());
    let age = elapsed.map(|ticks| TICK * ticks);
    let value = || format!("{}:{start}", &boot_id[..BOOT_ID_SHOWN]);
    (is_uuid && front.starts_with("1 (")).then(|| PhoneStart { value: value(), on: None, age })
}

/// Returns the text before the end of a process's name, and its start in ticks since the boot. The
/// name is in brackets, and may itself contain blanks and brackets.
fn start_ticks(stat: &str) -> Option<(&str, u64)> {
    let (front, fields) = stat.rsplit_once(')')?;
    Some((front, fields.split_ascii_whitespace().nth(START_AFTER_NAME)?.parse().ok()?))
}
