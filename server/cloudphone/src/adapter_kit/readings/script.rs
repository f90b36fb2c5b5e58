//! The scripts of readings, and what their output is worth.
//!
//! They use what phones have: a shell, and one of curl, wget and nc. The values in them are our own URL and the host and port of a proxy
//! that was judged.

use super::Tool;
use crate::adapter_kit::shell::quoted;
use std::fmt::Write;
use std::str::FromStr;
use toolwarrant::Expected;
use url::{Host, Url};

/// How phones reach the echo: an `http` URL of a host and a port, and nothing more. No proxy for TLS can stand in front of the echo, because
/// its address would be the one that is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EchoUrl {
    base: String,
    pub(super) host: String,
    pub(super) port: u16,
}

/// A text is no [`EchoUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an echo is reached at a URL like `http://203.0.113.7:8081`: http, a host, and a port unless it is 80")]
pub struct NoEchoUrl;

impl EchoUrl {
    /// The URL without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.base
    }

    /// Host and port, as they stand in the URL.
    pub(super) fn authority(&self) -> &str {
        &self.base["http://".len()..]
    }
}

impl FromStr for EchoUrl {
    type Err = NoEchoUrl;

    fn from_str(text: &str) -> Result<Self, NoEchoUrl> {
        let url = Url::parse(text).map_err(|_| NoEchoUrl)?;
        let bare = url.username().is_empty() && url.password().is_none();
        let root = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let (Some(host), Some(port), "http", true, true) =
            (url.host(), url.port_or_known_default(), url.scheme(), bare, root)
        else {
            return Err(NoEchoUrl);
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

/// Seconds that a phone's request may take.
const SECONDS: u8 = 8;

/// Makes an ordinary request and, at the same time, two through a proxy. Prints the name of the program that was found.
///
/// A program that is not there ends with 127, or 126. Any other failure is that of the network, and no reason to try the next one.
pub(super) fn requests(url: &EchoUrl, ordinary: &Expected, explicit: Option<(&str, &[Expected; 2])>) -> String {
    let (own, path) = (quoted(&ordinary.url(url.as_str())), quoted(ordinary.path()));
    let (authority, host, port) = (quoted(url.authority()), quoted(&url.host), url.port);
    // A proxy in the shell's environment is not the phone's.
    let mut script = "unset http_proxy HTTP_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY;".to_owned();
    let _ = write!(script, r#"c() {{ curl -s -m {SECONDS} -o /dev/null "$@"; }};"#);
    let _ = write!(
        script,
        r#"n() {{ printf 'GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' {path} {authority}|"$@" -w {SECONDS} {host} {port}; }};"#
    );
    script += r#"g() { t=$1;shift;"$@" >/dev/null 2>&1;s=$?;[ $s != 126 ]&&[ $s != 127 ]; };"#;
    if let Some((proxy, pair)) = explicit {
        let proxy = quoted(proxy);
        for expected in pair {
            let _ = write!(script, "c -x {proxy} {} >/dev/null 2>&1 & ", quoted(&expected.url(url.as_str())));
        }
    }
    for tool in Tool::ALL {
        let request = match tool {
            Tool::Curl => format!("c {own}"),
            // Not all of them know `-q` and `-T`.
            Tool::ToyboxWget => format!("toybox wget -O - {own}"),
            Tool::Wget => format!("wget -O - {own}"),
            Tool::Nc => "n nc".to_owned(),
            Tool::ToyboxNc => "n toybox nc".to_owned(),
            Tool::Missing => ":".to_owned(),
        };
        let next = if tool == Tool::Missing { "" } else { "||" };
        let _ = write!(script, "g {} {request}{next}", tool.as_str());
    }
    script + ";wait;echo $t"
}

/// Prints the boot id of the kernel, and the state of the first process.
pub(super) const START: &str = "cat /proc/sys/kernel/random/boot_id;cat /proc/1/stat";

/// Characters of a boot id that tell it from another.
const BOOT_ID_SHOWN: usize = 8;

/// Which field after the name of a process is its start: the 22nd in all, of which the name is the second.
const START_AFTER_NAME: usize = 22 - 2 - 1;

/// What [`START`] printed, as one short text. `None` if it is not both, or nonsense.
pub(super) fn start_of(output: &str) -> Option<String> {
    let (boot_id, stat) = output.split_once('\n')?;
    let boot_id = boot_id.trim_end();
    let is_uuid = boot_id.len() == 36
        && boot_id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    // The name is in brackets, and may contain blanks and brackets itself.
    let (front, fields) = stat.rsplit_once(')')?;
    let start: u64 = fields.split_ascii_whitespace().nth(START_AFTER_NAME)?.parse().ok()?;
    (is_uuid && front.starts_with("1 (")).then(|| format!("{}:{start}", &boot_id[..BOOT_ID_SHOWN]))
}
