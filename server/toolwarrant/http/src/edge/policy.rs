//! Decides which host names the server answers to, and which web pages may use it.
//!
//! A web page can send requests to every address that the browser reaches, and by DNS rebinding it
//! does so under the page's own host name. So the policy checks `Host` and `Origin` separately
//! against the allowed values. Under DNS rebinding they are equal, so it does not compare them.
//! Start at [`HostOriginPolicy::check`].

use super::throttle::LogThrottle;
use crate::head::RequestHead;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Uri};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use toolwarrant_base::wording::{Echo, Words};
use toolwarrant_base::words;

pub const ALLOW_HOST: &str = "allow-host";

pub const ALLOW_ORIGIN: &str = "allow-origin";

pub const PUBLIC_URL: &str = "public-url";

#[derive(Clone, Debug)]
pub struct HostOriginPolicy {
    /// Every loopback name is allowed, on any port.
    loopback: bool,
    /// Every IP address is allowed, on any port.
    addresses: bool,
    hosts: Vec<Host>,
    /// In the form of browsers: `scheme://host[:port]` or `null`.
    origins: Vec<String>,
    log: LogThrottle,
}

/// Only [`HostOriginPolicy::check`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedOrigin(HeaderValue);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostOriginError {
    Host(Echo),
    Origin(Echo),
}

impl HostOriginError {
    #[must_use]
    pub fn words(&self) -> Words {
        let (what, refused, why, flag) = match self {
            Self::Host(host) => ("the host `", host, "` is not one that this server answers to", ALLOW_HOST),
            Self::Origin(origin) => ("pages of the origin `", origin, "` may not use this server", ALLOW_ORIGIN),
        };
        words![what, refused, why, "; allow it with `--", flag, "`"]
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--{flag} `{value}`: expected {expected}")]
pub struct PolicyConfigError {
    pub flag: &'static str,
    pub value: String,
    pub expected: &'static str,
}

impl HostOriginPolicy {
    /// Makes the policy of a server that listens on `bound`. A host is `name`, which allows any
    /// port, or `name:port`. An origin is `scheme://host[:port]` or `null`. The public URL allows
    /// its host on any port, and its origin; a loopback one allows all loopback names. Hosts are
    /// checked if `bound` is a loopback address or if any host is given.
    pub fn new(
        bound: SocketAddr,
        public_url: Option<&str>,
        allow_hosts: &[String],
        allow_origins: &[String],
    ) -> Result<Self, PolicyConfigError> {
        let mut hosts = allow_hosts.iter().map(|host| Host::parse(host)).collect::<Result<Vec<_>, _>>()?;
        let mut origins = allow_origins.iter().map(|origin| parse_origin(origin)).collect::<Result<Vec<_>, _>>()?;
        if let Some(url) = public_url {
            let (host, origin) = parse_public_url(url)?;
            hosts.push(host);
            origins.push(origin);
        }
        let reached_here = |url| parse_public_url(url).is_ok_and(|(host, _)| is_loopback(&host.name));
        let loopback = bound.ip().to_canonical().is_loopback() || public_url.is_some_and(reached_here);
        Ok(Self { loopback, addresses: false, hosts, origins, log: LogThrottle::default() })
    }

    /// Allows the name of this machine, or of its container, if hosts are checked. DNS rebinding
    /// needs a name of the attacker's own.
    #[must_use]
    pub fn with_machine(mut self, name: &str) -> Self {
        let machine = Host::parse(name).ok().filter(|_| self.loopback || !self.hosts.is_empty());
        self.hosts.extend(machine);
        self
    }

    /// Makes the policy of a server that needs no key. It always checks hosts. It allows every IP
    /// address, because monitoring systems use addresses and DNS rebinding needs a name.
    pub fn keyless(public_url: Option<&str>, allow_hosts: &[String]) -> Result<Self, PolicyConfigError> {
        let policy = Self::new((Ipv4Addr::LOCALHOST, 0).into(), public_url, allow_hosts, &[])?;
        Ok(Self { addresses: true, ..policy })
    }

    /// Returns the origin of a request from a web page. `authority` is that of a request target in
    /// absolute form, which overrides `Host` (RFC 9112, section 3.2.2). A header that occurs twice
    /// is refused.
    pub fn check(
        &self,
        headers: &HeaderMap,
        authority: Option<&str>,
    ) -> Result<Option<AllowedOrigin>, HostOriginError> {
        self.judge(&headers.into(), authority)
    }

    pub(crate) fn judge(
        &self,
        head: &RequestHead<'_>,
        authority: Option<&str>,
    ) -> Result<Option<AllowedOrigin>, HostOriginError> {
        let judged = self.judge_here(head, authority);
        judged.inspect_err(|error| {
            let why = error.words();
            match self.log.is_due() {
                true => tracing::warn!(why = why.as_str(), "refused a request"),
                false => tracing::debug!(why = why.as_str(), "refused a request"),
            }
        })
    }

    fn judge_here(
        &self,
        head: &RequestHead<'_>,
        authority: Option<&str>,
    ) -> Result<Option<AllowedOrigin>, HostOriginError> {
        let host = head.host.at_most_once().ok_or_else(|| HostOriginError::Host(Echo::of("(several)")))?;
        if self.loopback || !self.hosts.is_empty() {
            let host =
                authority.map_or_else(|| host.map(HeaderValue::as_bytes), |authority| Some(authority.as_bytes()));
            let host = host.ok_or_else(|| HostOriginError::Host(Echo::of("(none)")))?;
            if !str::from_utf8(host).is_ok_and(|host| self.allows_host(host)) {
                return Err(HostOriginError::Host(echo(host)));
            }
        }

        let origin = head.origin.at_most_once().ok_or_else(|| HostOriginError::Origin(Echo::of("(several)")))?;
        match origin {
            Some(value) if !value.to_str().is_ok_and(|origin| self.allows_origin(origin)) => {
                Err(HostOriginError::Origin(echo(value.as_bytes())))
            }
            origin => Ok(origin.cloned().map(AllowedOrigin)),
        }
    }

    fn allows_host(&self, host: &str) -> bool {
        let Some((name, port)) = split_port(host) else { return false };
        (self.loopback && is_loopback(name))
            || (self.addresses && is_address(name))
            || self.hosts.iter().any(|allowed| allowed.matches(name, port))
    }

    fn allows_origin(&self, origin: &str) -> bool {
        (self.loopback && is_loopback_origin(origin))
            || self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// Browsers show pages few other headers.
const EXPOSED: &str = "Accept-Encoding, Allow, ETag, Location, Retry-After, WWW-Authenticate, X-Request-Id";

pub(crate) fn allow_origin(headers: &mut HeaderMap, AllowedOrigin(origin): AllowedOrigin) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// Lets browsers cache the answer for two hours.
pub(crate) fn answer_preflight(headers: &mut HeaderMap, origin: AllowedOrigin) {
    allow_origin(headers, origin);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("DELETE, GET, PATCH, POST, PUT"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Authorization, Content-Type, Idempotency-Key, If-None-Match, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, \
             Traceparent, X-Api-Key, X-Api-Secret, X-Nonce, X-Request-Id, X-Signature, X-Timestamp",
        ),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
}

#[derive(Clone, Debug)]
struct Host {
    name: String,
    /// `None` allows any port.
    port: Option<u16>,
}

impl Host {
    fn parse(text: &str) -> Result<Self, PolicyConfigError> {
        let parts = split_port(text).filter(|(name, _)| is_name(name));
        let expected = "a host as in `example.com`, `example.com:8080` or `[::1]`";
        let (name, port) = parts.ok_or_else(|| unusable(ALLOW_HOST, text, expected))?;
        Ok(Self { name: name.to_owned(), port })
    }

    fn matches(&self, name: &str, port: Option<u16>) -> bool {
        self.name.eq_ignore_ascii_case(name) && (self.port.is_none() || self.port == port)
    }
}

fn unusable(flag: &'static str, value: &str, expected: &'static str) -> PolicyConfigError {
    PolicyConfigError { flag, value: value.to_owned(), expected }
}

fn parse_origin(text: &str) -> Result<String, PolicyConfigError> {
    if text == "null" {
        return Ok(text.to_owned());
    }
    let bare = |uri: &Uri| uri.path().len() <= 1 && uri.query().is_none();
    let uri = text.parse::<Uri>().ok().filter(bare);
    uri.as_ref()
        .and_then(origin_of)
        .ok_or_else(|| unusable(ALLOW_ORIGIN, text, "an origin as in `https://example.com`, or `null`"))
}

/// Returns the host name of the public URL.
pub fn public_host(url: &str) -> Result<String, PolicyConfigError> {
    parse_public_url(url).map(|(host, _)| host.name)
}

fn parse_public_url(text: &str) -> Result<(Host, String), PolicyConfigError> {
    let web = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none();
    // The parser drops a fragment, which would then appear in every URL that is printed.
    let uri = text.parse::<Uri>().ok().filter(web).filter(|_| !text.contains('#'));
    uri.as_ref()
        .and_then(|uri| Some((Host { name: uri.host()?.to_owned(), port: None }, origin_of(uri)?)))
        .ok_or_else(|| unusable(PUBLIC_URL, text, "a URL as in `https://example.com`"))
}

/// Leaves out a default port, as browsers do.
fn origin_of(uri: &Uri) -> Option<String> {
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let (name, port) = split_port(authority.as_str()).filter(|(name, _)| is_name(name))?;
    let port = port.filter(|port| !matches!((scheme, port), ("http", 80) | ("https", 443)));
    Some(port.map_or_else(|| format!("{scheme}://{name}"), |port| format!("{scheme}://{name}:{port}")))
}

fn split_port(host: &str) -> Option<(&str, Option<u16>)> {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            let digits = port.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| port.parse().ok()).flatten().map(|port| (name, Some(port)))
        }
        _ => Some((host, None)),
    }
}

fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    !name.is_empty() && (name.bytes().all(plain) || ipv6(name).is_some())
}

fn is_loopback(name: &str) -> bool {
    name == "127.0.0.1"
        || name.eq_ignore_ascii_case("localhost")
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

fn echo(value: &[u8]) -> Echo {
    Echo::of(&String::from_utf8_lossy(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header::{HOST, ORIGIN};

    const LOOPBACK: &str = "127.0.0.1:8080";
    const EVERYWHERE: &str = "0.0.0.0:8080";

    fn policy(bound: &str, public_url: Option<&str>, hosts: &[&str], origins: &[&str]) -> HostOriginPolicy {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let bound = bound.parse().expect("an address");
        HostOriginPolicy::new(bound, public_url, &owned(hosts), &owned(origins)).expect("usable")
    }

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").expect("a header line");
            let name = if name == "Host" { HOST } else { ORIGIN };
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
        }
        headers
    }

    fn verdict(policy: &HostOriginPolicy, lines: &[&str]) -> &'static str {
        match policy.check(&headers(lines), None) {
            Ok(_) => "ok",
            Err(HostOriginError::Host(_)) => "host",
            Err(HostOriginError::Origin(_)) => "origin",
        }
    }

    #[test]
    fn hosts_are_checked_against_the_policy() {
        let local = policy(LOOPBACK, None, &[], &[]);
        let local6 = policy("[::1]:8080", None, &[], &[]);
        let mapped = policy("[::ffff:127.0.0.1]:8080", None, &[], &[]);
        let open = policy(EVERYWHERE, None, &[], &["https://app.example"]);
        let listed = policy(EVERYWHERE, None, &["Service.example", "other.example:8443", "[2001:db8::1]"], &[]);
        let public = policy(LOOPBACK, Some("https://service.example:8443/base"), &[], &[]);
        let keyless = HostOriginPolicy::keyless(None, &["watcher.example".to_owned()]).expect("usable");
        let keyless = keyless.with_machine("one");
        let odd = HostOriginPolicy::keyless(None, &[]).expect("usable").with_machine("(none)");
        let published = policy(EVERYWHERE, Some("http://127.0.0.1:8080"), &[], &[]).with_machine("Box.example");
        let unchecked = policy(EVERYWHERE, None, &[], &[]).with_machine("box");
        let cases: &[(&HostOriginPolicy, &[&str], &str)] = &[
            (&keyless, &["Host: 10.1.2.3:9090"], "ok"),
            (&keyless, &["Host: [2001:db8::1]:9090"], "ok"),
            (&keyless, &["Host: localhost:9090"], "ok"),
            (&keyless, &["Host: watcher.example:9090"], "ok"),
            (&keyless, &["Host: evil.example:9090"], "host"),
            (&keyless, &["Host: 10.1.2.3.evil.example"], "host"),
            (&keyless, &[], "host"),
            (&keyless, &["Host: one:9090"], "ok"),
            (&keyless, &["Host: ONE"], "ok"),
            (&keyless, &["Host: two:9090"], "host"),
            (&keyless, &["Host: one.evil.example"], "host"),
            (&odd, &["Host: (none)"], "host"),
            (&published, &["Host: box.example:8080"], "ok"),
            (&published, &["Host: localhost:8080"], "ok"),
            (&published, &["Host: box"], "host"),
            (&unchecked, &["Host: whatever.example"], "ok"),
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
    fn origins_are_checked_against_the_policy() {
        let local = policy(LOOPBACK, None, &[], &[]);
        let open = policy(EVERYWHERE, None, &[], &[]);
        let listed = policy(EVERYWHERE, None, &[], &["HTTPS://App.example:443/", "vscode-webview://1a2b", "null"]);
        let public = policy(EVERYWHERE, Some("https://service.example/base"), &[], &[]);
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
        assert_eq!(verdict(&open, &same), "origin", "an origin that equals the host is not allowed for that");
    }

    #[test]
    fn a_target_in_absolute_form_overrides_the_host() {
        let local = policy(LOOPBACK, None, &[], &[]);
        let check = |host, authority| local.check(&headers(&[host]), Some(authority)).is_ok();
        assert!(check("Host: evil.example", "localhost:8080"));
        assert!(!check("Host: localhost", "evil.example"));
    }

    #[test]
    fn pages_of_an_allowed_origin_may_read_the_answer() {
        let local = policy(LOOPBACK, None, &[], &[]);
        let none = local.check(&headers(&["Host: localhost"]), None).expect("allowed");
        assert_eq!(none, None);
        let page = local.check(&headers(&["Host: localhost", "Origin: http://localhost:1"]), None).expect("allowed");
        let mut answer = HeaderMap::new();
        answer_preflight(&mut answer, page.expect("an origin"));
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_ORIGIN], "http://localhost:1");
        assert_eq!(answer[VARY], "Origin");
        assert!(answer.contains_key(ACCESS_CONTROL_ALLOW_METHODS) && answer.contains_key(ACCESS_CONTROL_ALLOW_HEADERS));
    }

    #[test]
    fn a_refusal_names_the_flag_and_shows_the_value_cleaned_and_capped() {
        let local = policy(LOOPBACK, None, &[], &[]);
        let refusal = |lines: &[&str]| local.check(&headers(lines), None).expect_err("refused").words().to_string();
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
            let error = usable(None, Some(host), None).expect_err(host).to_string();
            assert!(error.starts_with("--allow-host"), "{error}");
        }
        for origin in
            ["", "*", "example.com", "https://example.com/app", "https://", "https://a?b", "https://*.a", "https://u@a"]
        {
            let error = usable(None, None, Some(origin)).expect_err(origin).to_string();
            assert!(error.starts_with("--allow-origin"), "{error}");
        }
        for url in ["", "example.com", "ftp://example.com", "https://", "https://a?b", "https://u@a"] {
            let error = usable(Some(url), None, None).expect_err(url).to_string();
            assert!(error.starts_with("--public-url"), "{error}");
        }
    }
}
