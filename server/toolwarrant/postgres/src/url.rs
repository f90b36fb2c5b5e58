//! The parameters of a URL. Each has the meaning that it has for psql, or is refused.

use percent_encoding::percent_decode_str;
use std::path::PathBuf;

#[derive(Debug, Default)]
pub(crate) struct StoreUrl {
    /// With the parameters that the driver takes.
    pub(crate) url: String,
    pub(crate) mode: EncryptionMode,
    /// `None` for the certificate authorities of the system.
    pub(crate) authorities: Option<PathBuf>,
}

/// The connections that are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EncryptionMode {
    /// `sslmode=disable`.
    Never,
    #[default]
    OtherMachines,
    /// All but those to sockets.
    Always,
}

impl StoreUrl {
    /// Names a refused parameter, and what is allowed.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        // A question mark before the `@` is part of the account.
        let account = url.find('@').unwrap_or(0);
        let Some(question) = url[account..].find('?').map(|at| account + at) else {
            return Ok(Self { url: url.to_owned(), ..Self::default() });
        };
        let (mut mode, mut asks, mut authorities) = (EncryptionMode::default(), false, None);
        let mut kept = Vec::new();
        for pair in url[question + 1..].split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            let allow = |values: &str| Err(format!("`{name}` can be {values}"));
            match (name, &*value) {
                ("sslmode", "disable") => mode = EncryptionMode::Never,
                ("sslmode", "allow" | "prefer") => mode = EncryptionMode::OtherMachines,
                ("sslmode", "require" | "verify-ca" | "verify-full") | ("ssl", "true") => mode = EncryptionMode::Always,
                ("sslmode", _) => return allow("disable, allow, prefer, require, verify-ca or verify-full"),
                ("sslrootcert", "") => return allow("a file, or `system`"),
                ("sslrootcert", file) => {
                    authorities = (file != "system").then(|| file.into());
                    asks = true;
                }
                ("target_session_attrs", "any" | "read-write" | "primary") => {}
                ("target_session_attrs", _) => {
                    return allow("any, read-write or primary, because the store needs a server that accepts writes");
                }
                ("channel_binding", "disable" | "prefer") | ("sslnegotiation", "postgres") => kept.push(pair),
                ("channel_binding", "require") | ("sslnegotiation", "direct") => {
                    kept.push(pair);
                    asks = true;
                }
                ("channel_binding", _) => return allow("disable, prefer or require"),
                ("sslnegotiation", _) => return allow("postgres or direct"),
                ("host" | "port" | "user" | "password" | "dbname" | "options" | "connect_timeout", _) => {
                    kept.push(pair)
                }
                _ => {
                    return Err(format!(
                        "it has the parameter `{name}`; allowed are host, port, user, dbname, options, connect_timeout, sslmode, \
                         sslrootcert, sslnegotiation, channel_binding and target_session_attrs"
                    ));
                }
            }
        }
        let mode = if asks && mode == EncryptionMode::OtherMachines { EncryptionMode::Always } else { mode };
        Ok(Self { url: format!("{}?{}", &url[..question], kept.join("&")), mode, authorities })
    }
}

#[cfg(test)]
mod tests {
    use super::EncryptionMode::{Always, Never, OtherMachines};
    use super::*;

    #[test]
    fn a_url_says_which_connections_are_encrypted() {
        for (parameters, expected) in [
            ("", OtherMachines),
            ("?sslmode=disable", Never),
            ("?sslmode=prefer", OtherMachines),
            ("?sslmode=require", Always),
            ("?sslrootcert=system", Always),
        ] {
            let url = StoreUrl::parse(&format!("postgres://u@db.invalid/x{parameters}")).unwrap();
            assert_eq!(url.mode, expected, "{parameters}");
        }
    }
}
