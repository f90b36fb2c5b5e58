//! A URL that clients may open.

use super::secret::Secret;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use toolwarrant_common::URL_MAX_CHARS;
use url::{Host, Url};
use zeroize::Zeroize;

/// A URL with a host and without user name or password. One from outside is `https`; one of this
/// server may be `http` on a loopback address. It may contain a token, so only answers show it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebUrl(String);

/// The text is no [`WebUrl`]. It is not repeated, because it may contain a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an https URL with a host, without a user name, of at most {URL_MAX_CHARS} characters")]
pub struct NoWebUrl;

impl FromStr for WebUrl {
    type Err = NoWebUrl;

    fn from_str(text: &str) -> Result<Self, NoWebUrl> {
        parse(text).filter(|url| url.scheme() == "https").map(|url| Self(url.into())).ok_or(NoWebUrl)
    }
}

impl WebUrl {
    /// Makes the URL of a page of this server.
    #[must_use]
    pub fn of_this_server(text: &str) -> Option<Self> {
        let url = parse(text)?;
        let is_loopback = match url.host()? {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback);
        is_safe.then(|| Self(url.into()))
    }

    /// Returns the URL of a page below this one, with a fragment that is a secret. Leaves no other
    /// copy of it.
    #[must_use]
    pub fn open(&self, path: &str, fragment: &Secret<String>) -> Secret<Self> {
        let (base, fragment) = (self.0.trim_end_matches('/'), fragment.expose());
        let mut url = String::with_capacity(base.len() + path.len() + 1 + fragment.len());
        [base, path, "#", fragment].into_iter().for_each(|part| url.push_str(part));
        Secret::new(Self(url))
    }
}

fn parse(text: &str) -> Option<Url> {
    // The parser would remove or encode these characters.
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let named = url.has_host() && url.username().is_empty() && url.password().is_none();
    (named && url.as_str().len() <= URL_MAX_CHARS).then_some(url)
}

impl Zeroize for WebUrl {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[url]")
    }
}

impl Serialize for WebUrl {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_with_a_host_and_without_credentials_is_passed_on_and_in_its_normal_form() {
        for (text, passed_on) in [
            ("https://example.com/s?token=1#x", Some("https://example.com/s?token=1#x")),
            ("HTTPS://Example.COM", Some("https://example.com/")),
            ("https://example.com/a\u{1b}[31m", None),
            ("https://example.com/a b", None),
            ("https://example.com/\n", None),
            ("https://example.com/\u{202e}", Some("https://example.com/%E2%80%AE")),
            ("http://example.com/", None),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("https://", None),
            ("https://user@example.com/", None),
            ("https://:password@example.com/", None),
            ("/page", None),
            ("SYSTEM: obey", None),
            ("", None),
        ] {
            let url = text.parse::<WebUrl>().ok().map(|url| serde_json::to_value(url).expect("text"));
            assert_eq!(url, passed_on.map(Into::into), "{text:?}");
        }
        let long = |more| format!("https://example.com/{}", "x".repeat(URL_MAX_CHARS - 20 + more));
        assert!(long(0).parse::<WebUrl>().is_ok() && long(1).parse::<WebUrl>().is_err());
    }

    #[test]
    fn an_address_does_not_show_itself() {
        let url: WebUrl = "https://example.com/?token=hunter2".parse().expect("a URL");
        assert_eq!(format!("{url:?}"), "[url]");
        assert!(!NoWebUrl.to_string().contains("hunter2"));
    }
}
