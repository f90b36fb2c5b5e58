//! Which host names this server answers to, and which web pages may use it.
//!
//! A page that a browser has open can send requests to any address that the browser reaches, and by DNS rebinding under a
//! name of its own. Its `Origin` and the `Host` tell; that the two are equal tells nothing, as they are in rebinding.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Uri};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use toolwarrant_core::text::Untrusted;

/// The policy for `Host` and `Origin`, fixed at start.
#[derive(Debug)]
pub struct HostOriginPolicy {
    /// Bound to loopback: every loopback name is welcome, on any port.
    at_loopback: bool,
    /// Every address is welcome, on any port.
    addresses: bool,
    hosts: Vec<Host>,
    /// As browsers write them: `scheme://host[:port]`, or `null`.
    origins: Vec<String>,
}

/// A request that may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The page that sent it, for [`cors`]; `None` where no page did.
    pub origin: Option<HeaderValue>,
}

/// A request that may not come in, with what it showed: cleaned and capped, for whoever is to set the flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Its host is not one of ours.
    #[error("the host `{0}` is not one that this server answers to; allow it with `--allow-host`")]
    Host(String),
    /// Its origin is not allowed.
    #[error("pages of the origin `{0}` may not use this server; allow it with `--allow-origin`")]
    Origin(String),
}

impl HostOriginPolicy {
    /// The policy of a server that listens on `bound`. Hosts are `name` (on any port) or `name:port`, origins
    /// `scheme://host[:port]` or `null`; the public URL stands for its host, on any port, and for its origin.
    ///
    /// Hosts are judged when `bound` is loopback or when any is given, origins always.
    ///
    /// # Errors
    /// The flag and the value that cannot be used, and what is expected.
    pub fn new(
        bound: SocketAddr,
        public_url: Option<&str>,
        allow_hosts: &[String],
        allow_origins: &[String],
    ) -> Result<Self, String> {
        let mut hosts = allow_hosts.iter().map(|host| Host::parse(host)).collect::<Result<Vec<_>, _>>()?;
        let mut origins = allow_origins.iter().map(|origin| parse_origin(origin)).collect::<Result<Vec<_>, _>>()?;
        if let Some(url) = public_url {
            let (host, origin) = parse_public_url(url)?;
            hosts.push(host);
            origins.push(origin);
        }
        Ok(Self { at_loopback: bound.ip().to_canonical().is_loopback(), addresses: false, hosts, origins })
    }

    /// The policy of a server that asks for no key: wherever it listens, it judges as one at loopback does. It answers to
    /// addresses as well, which is how probes ask: rebinding takes a name.
    ///
    /// # Errors
    /// As above.
    pub fn keyless(public_url: Option<&str>, allow_hosts: &[String]) -> Result<Self, String> {
        let policy = Self::new((Ipv4Addr::LOCALHOST, 0).into(), public_url, allow_hosts, &[])?;
        Ok(Self { addresses: true, ..policy })
    }

    /// Judges a request by its headers. `authority` is that of a target in absolute form, which overrides `Host`
    /// (RFC 9112, section 3.2.2).
    ///
    /// # Errors
    /// What is not allowed; a header that is there twice never is.
    pub fn check(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<Admitted, Refused> {
        let mut hosts = headers.get_all(HOST).iter();
        let (host, None) = (hosts.next(), hosts.next()) else { return Err(Refused::Host("(several)".to_owned())) };
        if self.at_loopback || !self.hosts.is_empty() {
            let host =
                authority.map_or_else(|| host.map(HeaderValue::as_bytes), |authority| Some(authority.as_bytes()));
            let host = host.ok_or_else(|| Refused::Host("(none)".to_owned()))?;
            str::from_utf8(host).ok().filter(|host| self.knows_host(host)).ok_or_else(|| Refused::Host(echo(host)))?;
        }

        let mut origins = headers.get_all(ORIGIN).iter();
        let (origin, None) = (origins.next(), origins.next()) else {
            return Err(Refused::Origin("(several)".to_owned()));
        };
        match origin {
            Some(value) if !value.to_str().is_ok_and(|origin| self.knows_origin(origin)) => {
                Err(Refused::Origin(echo(value.as_bytes())))
            }
            origin => Ok(Admitted { origin: origin.cloned() }),
        }
    }

    fn knows_host(&self, host: &str) -> bool {
        let Some((name, port)) = split_port(host) else { return false };
        (self.at_loopback && is_loopback(name))
            || (self.addresses && is_address(name))
            || self.hosts.iter().any(|host| host.is(name, port))
    }

    fn knows_origin(&self, origin: &str) -> bool {
        (self.at_loopback && is_loopback_origin(origin))
            || self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }
}

/// Lets the page of `origin` read the answer that these headers belong to.
pub fn cors(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers
        .insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Retry-After, WWW-Authenticate, X-Request-Id"));
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// Answers a preflight: what the page of `origin` may send, and for two hours not ask again.
pub fn preflight(headers: &mut HeaderMap, origin: HeaderValue) {
    cors(headers, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("DELETE, GET, PATCH, POST, PUT"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Authorization, Content-Type, Idempotency-Key, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, \
             Traceparent, X-Api-Key, X-Api-Secret, X-Nonce, X-Request-Id, X-Signature, X-Timestamp",
        ),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
}

/// A host that may be asked for.
#[derive(Debug)]
struct Host {
    name: String,
    /// `None` is any.
    port: Option<u16>,
}

impl Host {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, port) = split_port(text).filter(|(name, _)| is_name(name)).ok_or_else(|| {
            format!("--allow-host `{text}`: expected a host as in `example.com`, `example.com:8080` or `[::1]`")
        })?;
        Ok(Self { name: name.to_owned(), port })
    }

    fn is(&self, name: &str, port: Option<u16>) -> bool {
        self.name.eq_ignore_ascii_case(name) && (self.port.is_none() || self.port == port)
    }
}

/// An origin as browsers write it.
fn parse_origin(text: &str) -> Result<String, String> {
    if text == "null" {
        return Ok(text.to_owned());
    }
    let bare = |uri: &Uri| uri.path().len() <= 1 && uri.query().is_none();
    let uri = text.parse::<Uri>().ok().filter(bare);
    uri.as_ref()
        .and_then(origin_of)
        .ok_or_else(|| format!("--allow-origin `{text}`: expected an origin as in `https://example.com`, or `null`"))
}

fn parse_public_url(text: &str) -> Result<(Host, String), String> {
    let web = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none();
    // A fragment is dropped by the parser, and would stand in every URL that is printed.
    let uri = text.parse::<Uri>().ok().filter(web).filter(|_| !text.contains('#'));
    uri.as_ref()
        .and_then(|uri| Some((Host { name: uri.host()?.to_owned(), port: None }, origin_of(uri)?)))
        .ok_or_else(|| format!("--public-url `{text}`: expected a URL as in `https://example.com`"))
}

/// `scheme://host[:port]`, without a default port, which browsers leave out.
fn origin_of(uri: &Uri) -> Option<String> {
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let (name, port) = split_port(authority.as_str()).filter(|(name, _)| is_name(name))?;
    let port = port.filter(|port| !matches!((scheme, port), ("http", 80) | ("https", 443)));
    Some(port.map_or_else(|| format!("{scheme}://{name}"), |port| format!("{scheme}://{name}:{port}")))
}

/// `name`, `name:port`, `[address]` or `[address]:port` in its parts; `None` where the port is no number.
fn split_port(host: &str) -> Option<(&str, Option<u16>)> {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            let digits = port.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| port.parse().ok()).flatten().map(|port| (name, Some(port)))
        }
        _ => Some((host, None)),
    }
}

/// Whether this can be a host's name or address: no wildcard, no user, no bare IPv6 address.
fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    !name.is_empty() && (name.bytes().all(plain) || ipv6(name).is_some())
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || ipv6(name) == Some(Ipv6Addr::LOCALHOST)
}

fn is_address(name: &str) -> bool {
    name.parse::<Ipv4Addr>().is_ok() || ipv6(name).is_some()
}

fn is_loopback_origin(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.and_then(split_port).is_some_and(|(name, _)| is_loopback(name))
}

fn ipv6(bracketed: &str) -> Option<Ipv6Addr> {
    bracketed.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// A client's value, fit to be shown.
fn echo(value: &[u8]) -> String {
    Untrusted::clean(&String::from_utf8_lossy(value)).as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: &str = "127.0.0.1:8080";
    const EVERYWHERE: &str = "0.0.0.0:8080";

    fn doorkeeper(bound: &str, public_url: Option<&str>, hosts: &[&str], origins: &[&str]) -> HostOriginPolicy {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let bound = bound.parse().expect("an address");
        HostOriginPolicy::new(bound, public_url, &owned(hosts), &owned(origins)).expect("usable")
    }

    /// Headers from lines such as `Host: x`.
    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").expect("a header line");
            let name = if name == "Host" { HOST } else { ORIGIN };
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
        }
        headers
    }

    /// `ok`, or which of the two was refused.
    fn verdict(policy: &HostOriginPolicy, lines: &[&str]) -> &'static str {
        match policy.check(&headers(lines), None) {
            Ok(_) => "ok",
            Err(Refused::Host(_)) => "host",
            Err(Refused::Origin(_)) => "origin",
        }
    }

    #[test]
    fn hosts_are_judged_as_the_policy_says() {
        let local = doorkeeper(LOOPBACK, None, &[], &[]);
        let local6 = doorkeeper("[::1]:8080", None, &[], &[]);
        let mapped = doorkeeper("[::ffff:127.0.0.1]:8080", None, &[], &[]);
        let open = doorkeeper(EVERYWHERE, None, &[], &["https://app.example"]);
        let listed = doorkeeper(EVERYWHERE, None, &["Service.example", "other.example:8443", "[2001:db8::1]"], &[]);
        let public = doorkeeper(LOOPBACK, Some("https://service.example:8443/base"), &[], &[]);
        let keyless = HostOriginPolicy::keyless(None, &["watcher.example".to_owned()]).expect("usable");
        let cases: &[(&HostOriginPolicy, &[&str], &str)] = &[
            (&keyless, &["Host: 10.1.2.3:9090"], "ok"),
            (&keyless, &["Host: [2001:db8::1]:9090"], "ok"),
            (&keyless, &["Host: localhost:9090"], "ok"),
            (&keyless, &["Host: watcher.example:9090"], "ok"),
            (&keyless, &["Host: evil.example:9090"], "host"),
            (&keyless, &["Host: 10.1.2.3.evil.example"], "host"),
            (&keyless, &[], "host"),
            (&local, &["Host: 10.1.2.3:8080"], "host"),
            (&local, &["Host: localhost"], "ok"),
            (&local, &["Host: LocalHost:1"], "ok"),
            (&local, &["Host: 127.0.0.1:8080"], "ok"),
            (&local, &["Host: 127.8.9.10"], "ok"),
            (&local, &["Host: [::1]"], "ok"),
            (&local6, &["Host: [::1]:9"], "ok"),
            (&mapped, &["Host: localhost"], "ok"),
            (&mapped, &["Host: evil.example"], "host"),
            (&local, &["Host: ::1"], "host"),
            (&local, &["Host: [::2]"], "host"),
            (&local, &["Host: evil.example"], "host"),
            (&local, &["Host: evil.example:8080", "Origin: http://evil.example:8080"], "host"),
            (&local, &["Host: localhost.evil.example"], "host"),
            (&local, &["Host: 127.0.0.1.evil.example"], "host"),
            (&local, &["Host: localhost:x"], "host"),
            (&local, &["Host: localhost:+80"], "host"),
            (&local, &["Host: localhost:99999"], "host"),
            (&local, &["Host: localhost:80@evil.example"], "host"),
            (&local, &["Host: localhost@evil.example"], "host"),
            (&local, &["Host: localhost\u{e9}"], "host"),
            (&local, &["Host: "], "host"),
            (&local, &[], "host"),
            (&local, &["Host: localhost", "Host: localhost"], "host"),
            (&open, &["Host: whatever.example"], "ok"),
            (&open, &[], "ok"),
            (&open, &["Host: a", "Host: b"], "host"),
            (&listed, &["Host: SERVICE.example"], "ok"),
            (&listed, &["Host: service.example:1234"], "ok"),
            (&listed, &["Host: other.example:8443"], "ok"),
            (&listed, &["Host: other.example"], "host"),
            (&listed, &["Host: other.example:1"], "host"),
            (&listed, &["Host: a.service.example"], "host"),
            (&listed, &["Host: [2001:DB8::1]:80"], "ok"),
            (&listed, &["Host: localhost"], "host"),
            (&public, &["Host: service.example"], "ok"),
            (&public, &["Host: localhost"], "ok"),
            (&public, &["Host: evil.example"], "host"),
        ];
        for (policy, lines, expected) in cases {
            assert_eq!(verdict(policy, lines), *expected, "{lines:?} at {policy:?}");
        }
    }

    #[test]
    fn origins_are_judged_as_the_policy_says() {
        let local = doorkeeper(LOOPBACK, None, &[], &[]);
        let open = doorkeeper(EVERYWHERE, None, &[], &[]);
        let listed = doorkeeper(EVERYWHERE, None, &[], &["HTTPS://App.example:443/", "vscode-webview://1a2b", "null"]);
        let public = doorkeeper(EVERYWHERE, Some("https://service.example/base"), &[], &[]);
        let cases: &[(&HostOriginPolicy, &str, &str)] = &[
            (&local, "http://localhost:5173", "ok"),
            (&local, "https://127.0.0.1", "ok"),
            (&local, "http://[::1]:3000", "ok"),
            (&local, "http://localhost.evil.example", "origin"),
            (&local, "http://localhost/", "origin"),
            (&local, "http://localhost@evil.example", "origin"),
            (&local, "ftp://localhost", "origin"),
            (&local, "localhost", "origin"),
            (&local, "null", "origin"),
            (&local, "", "origin"),
            (&open, "http://localhost:5173", "origin"),
            (&open, "https://service.example", "origin"),
            (&listed, "https://app.example", "ok"),
            (&listed, "https://APP.example", "ok"),
            (&listed, "vscode-webview://1a2b", "ok"),
            (&listed, "null", "ok"),
            (&listed, "http://app.example", "origin"),
            (&listed, "https://app.example:8443", "origin"),
            (&listed, "https://app.example.evil.example", "origin"),
            (&public, "https://service.example", "ok"),
            (&public, "https://service.example:1", "origin"),
            (&public, "http://service.example", "origin"),
        ];
        for (policy, origin, expected) in cases {
            let host =
                if std::ptr::eq(*policy, &raw const local) { "Host: localhost" } else { "Host: service.example" };
            assert_eq!(verdict(policy, &[host, &format!("Origin: {origin}")]), *expected, "{origin} at {policy:?}");
        }
        let twice = ["Host: localhost", "Origin: http://localhost", "Origin: http://localhost"];
        assert_eq!(verdict(&local, &twice), "origin");
        let same = ["Host: evil.example", "Origin: http://evil.example"];
        assert_eq!(verdict(&open, &same), "origin", "an origin equal to the host is no proof");
    }

    #[test]
    fn a_target_in_absolute_form_overrides_the_host() {
        let local = doorkeeper(LOOPBACK, None, &[], &[]);
        let check = |host, authority| local.check(&headers(&[host]), Some(authority)).is_ok();
        assert!(check("Host: evil.example", "localhost:8080"));
        assert!(!check("Host: localhost", "evil.example"));
    }

    #[test]
    fn the_allowed_origin_is_handed_on_for_cors() {
        let local = doorkeeper(LOOPBACK, None, &[], &[]);
        let none = local.check(&headers(&["Host: localhost"]), None).expect("admitted");
        assert_eq!(none.origin, None);
        let page = local.check(&headers(&["Host: localhost", "Origin: http://localhost:1"]), None).expect("admitted");
        let mut answer = HeaderMap::new();
        preflight(&mut answer, page.origin.expect("an origin"));
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_ORIGIN], "http://localhost:1");
        assert_eq!(answer[VARY], "Origin");
        assert!(answer.contains_key(ACCESS_CONTROL_ALLOW_METHODS) && answer.contains_key(ACCESS_CONTROL_ALLOW_HEADERS));
    }

    #[test]
    fn a_refusal_names_the_flag_and_shows_the_value_cleaned_and_capped() {
        let local = doorkeeper(LOOPBACK, None, &[], &[]);
        let refusal = |lines: &[&str]| local.check(&headers(lines), None).expect_err("refused").to_string();
        let host = refusal(&["Host: evil\u{202e}.example"]);
        assert!(host.contains("`evil.example`") && host.contains("--allow-host"), "{host}");
        let origin = refusal(&["Host: localhost", &format!("Origin: https://{}", "x".repeat(5000))]);
        assert!(origin.len() < 300 && origin.contains("--allow-origin"), "{origin}");
    }

    #[test]
    fn a_value_that_cannot_be_used_is_refused_at_start_with_its_flag() {
        let bound = LOOPBACK.parse().expect("an address");
        let usable = |public_url: Option<&str>, host: Option<&str>, origin: Option<&str>| {
            let list = |value: Option<&str>| value.map(str::to_owned).into_iter().collect::<Vec<_>>();
            HostOriginPolicy::new(bound, public_url, &list(host), &list(origin))
        };
        for host in ["", "*", "*.example.com", "https://example.com", "example.com/", "::1", "a b", "x:y", "me@x"] {
            let error = usable(None, Some(host), None).expect_err(host);
            assert!(error.starts_with("--allow-host"), "{error}");
        }
        for origin in
            ["", "*", "example.com", "https://example.com/app", "https://", "https://a?b", "https://*.a", "https://u@a"]
        {
            let error = usable(None, None, Some(origin)).expect_err(origin);
            assert!(error.starts_with("--allow-origin"), "{error}");
        }
        for url in ["", "example.com", "ftp://example.com", "https://", "https://a?b", "https://u@a"] {
            let error = usable(Some(url), None, None).expect_err(url);
            assert!(error.starts_with("--public-url"), "{error}");
        }
    }
}
