//! The URL of a server's endpoint: https, or plain http to this machine only. A key that crosses a
//! network in plain text is compromised, so no flag allows that.

use std::fmt;
use std::str::FromStr;
use toolwarrant_outbound::is_loopback;
use url::Url;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl(Url);

const ENDPOINT: &str = "/mcp";

impl ServerUrl {
    pub const USUAL: &str = "http://127.0.0.1:8080/mcp";

    pub(crate) fn as_url(&self) -> &Url {
        &self.0
    }

    /// Returns `None` if the endpoint's path does not end in `/mcp`.
    pub(crate) fn beside(&self, path: &str, query: &str) -> Option<Url> {
        let base = self.0.path().trim_end_matches('/').strip_suffix(ENDPOINT)?;
        let mut url = self.0.clone();
        url.set_path(&format!("{base}{path}"));
        url.set_query((!query.is_empty()).then_some(query));
        Some(url)
    }
}

impl FromStr for ServerUrl {
    type Err = String;

    /// Adds the path of the endpoint if there is none. An empty text, which is common in compose
    /// files, means [`Self::USUAL`].
    fn from_str(text: &str) -> Result<Self, String> {
        let text = if text.is_empty() { Self::USUAL } else { text };
        let mut url = Url::parse(text).map_err(|error| format!("{error}; expected a URL like {}", Self::USUAL))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a URL is shown in many places; put the key into the environment or a key file".to_owned());
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&url) => {}
            "http" => {
                return Err("plain http would show the key to the network: use https; http is for 127.0.0.1, ::1 and \
                            localhost (`ssh -L` forwards a port to a remote server)"
                    .to_owned());
            }
            scheme => return Err(format!("`{scheme}` is not supported here; expected https, or http to this machine")),
        }
        url.set_fragment(None);
        if url.path() == "/" {
            url.set_path(ENDPOINT);
        }
        Ok(Self(url))
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::ServerUrl;

    #[test]
    fn plain_http_goes_to_this_machine_alone() {
        let cases = [
            ("", Ok("http://127.0.0.1:8080/mcp")),
            ("http://127.0.0.1:8080/mcp", Ok("http://127.0.0.1:8080/mcp")),
            ("http://127.1:80", Ok("http://127.0.0.1/mcp")),
            ("http://LOCALHOST:1/mcp#x", Ok("http://localhost:1/mcp")),
            ("http://[::1]:8080/base/mcp", Ok("http://[::1]:8080/base/mcp")),
            ("https://example.com", Ok("https://example.com/mcp")),
            ("https://example.com/base/mcp", Ok("https://example.com/base/mcp")),
            ("http://example.com/mcp", Err("plain http would show the key to the network")),
            ("http://10.0.0.1/mcp", Err("plain http")),
            ("http://localhost.example.com/mcp", Err("plain http")),
            ("http://[::ffff:127.0.0.1]/mcp", Err("plain http")),
            ("http://0.0.0.0:8080/mcp", Err("plain http")),
            ("https://id:secret@example.com/mcp", Err("a URL is shown in many places")),
            ("ftp://example.com/mcp", Err("`ftp` is not supported here")),
            ("127.0.0.1:8080", Err("expected a URL like")),
        ];
        for (text, expected) in cases {
            match (text.parse::<ServerUrl>(), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.to_string(), expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{text}: {why}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_route_stands_beside_the_endpoint() {
        let beside = |text: &str| text.parse::<ServerUrl>().expect("a URL").beside("/v1/x", "a=1").map(String::from);
        assert_eq!(beside("https://example.com").as_deref(), Some("https://example.com/v1/x?a=1"));
        assert_eq!(beside("https://example.com/base/mcp/").as_deref(), Some("https://example.com/base/v1/x?a=1"));
        assert_eq!(beside("https://example.com/other"), None);
    }
}
