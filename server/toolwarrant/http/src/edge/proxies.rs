//! The address of a request's client if there are reverse proxies in between.
//!
//! The server reads `Forwarded` (RFC 7239) and `X-Forwarded-For` only from trusted proxies, because
//! any client can write them. Each proxy appends the address of its own client, so the list is read
//! from its end: the first address that is not a trusted proxy is the client.

use super::policy::PolicyConfigError;
use axum::http::HeaderMap;
use axum::http::header::{FORWARDED, HeaderName};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

pub const TRUST_PROXY: &str = "trust-proxy";

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Reads addresses as in `10.0.0.1` and networks as in `10.0.0.0/8`. Refuses a network of all
    /// addresses.
    pub fn new(networks: &[String]) -> Result<Self, PolicyConfigError> {
        let read = |text: &String| {
            let expected =
                "an address, or a network that is not all addresses, as in `10.0.0.1`, `10.0.0.0/8` or `fd00::/8`";
            let unusable = || PolicyConfigError { flag: TRUST_PROXY, value: text.clone(), expected };
            parse_network(text.trim()).ok_or_else(unusable)
        };
        networks.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// Returns the proxy's own address if it reports none, or if the two headers contradict each
    /// other: in a contradiction, one header was written by the client.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let text = |name: &HeaderName| {
            let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
            headers.contains_key(name).then(|| values.collect::<Vec<_>>().join(","))
        };
        let standard =
            text(&FORWARDED).map(|text| self.first_untrusted(split(&text, ',').into_iter().rev().map(client_address)));
        let usual = text(&X_FORWARDED_FOR).map(|text| self.first_untrusted(text.rsplit(',').map(address)));
        let named = match (standard, usual) {
            (Some(one), Some(other)) => one.filter(|_| one == other),
            (one, other) => one.or(other).flatten(),
        };
        named.unwrap_or(peer)
    }

    /// Returns the last address if all are trusted proxies, and `None` if an element before it is
    /// not an address.
    fn first_untrusted(&self, hops: impl Iterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut last = None;
        for hop in hops {
            let hop = hop?;
            if !self.contains(hop) {
                return Some(hop);
            }
            last = Some(hop);
        }
        last
    }
}

/// The prefix of an IPv4 network in the form of IPv6 is 96 bits longer.
fn parse_network(text: &str) -> Option<IpNet> {
    // `IpNet` would read `010.` as `10.`.
    let address: IpAddr = text.split('/').next()?.parse().ok()?;
    let network = if text.contains('/') { text.parse().ok()? } else { IpNet::from(address) };
    let address = address.to_canonical();
    let longer = network.max_prefix_len() - IpNet::from(address).max_prefix_len();
    let network = IpNet::new(address, network.prefix_len().checked_sub(longer)?).ok()?;
    (network.prefix_len() > 0).then_some(network)
}

fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut start, mut quoted) = (Vec::new(), 0, false);
    for (n, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            c if c == at && !quoted => {
                parts.push(&text[start..n]);
                start = n + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Returns the `for` parameter of a `Forwarded` element. `unknown` and obfuscated names are not
/// addresses.
fn client_address(element: &str) -> Option<IpAddr> {
    let mut named = split(element, ';').into_iter().filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
    });
    let (value, None) = (named.next()?, named.next()) else { return None };
    address(value.strip_prefix('"').map_or(Some(value), |rest| rest.strip_suffix('"'))?)
}

fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|bare| bare.contains(':'));
    let address = bare.unwrap_or(text).parse::<IpAddr>().ok();
    address.or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip())).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn client(lines: &[(&HeaderName, &str)]) -> String {
        let proxies = TrustedProxies::new(&["10.0.0.0/8".into(), "fd00::/8".into()]).expect("usable");
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        }
        proxies.client("10.0.0.1".parse().expect("an address"), &headers).to_string()
    }

    #[test]
    fn the_client_is_the_first_address_from_the_right_that_is_no_trusted_proxy() {
        let cases = [
            ("192.0.2.1", "192.0.2.1"),
            ("203.0.113.9, 192.0.2.1", "192.0.2.1"),
            ("192.0.2.1, 10.0.0.7,10.0.0.8", "192.0.2.1"),
            ("192.0.2.1:4711", "192.0.2.1"),
            ("[2001:db8::1]:4711, fd00::7", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("10.0.0.9, 10.0.0.7", "10.0.0.9"),
            ("nonsense, 192.0.2.1, 10.0.0.7", "192.0.2.1"),
            // An unreadable client counts as the proxy.
            ("192.0.2.1, nonsense, 10.0.0.7", "10.0.0.1"),
            ("unknown", "10.0.0.1"),
            ("192.0.2.1,", "10.0.0.1"),
            ("", "10.0.0.1"),
            ("[192.0.2.1]", "10.0.0.1"),
            ("192.0.2.1:port", "10.0.0.1"),
            ("192.0.2.1\u{e9}", "10.0.0.1"),
        ];
        for (sent, expected) in cases {
            assert_eq!(client(&[(&X_FORWARDED_FOR, sent)]), expected, "{sent}");
        }
        assert_eq!(client(&[(&X_FORWARDED_FOR, "192.0.2.1"), (&X_FORWARDED_FOR, "192.0.2.2")]), "192.0.2.2");
        assert_eq!(client(&[]), "10.0.0.1");
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_says() {
        let cases = [
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("for=192.0.2.43, for=198.51.100.17", "198.51.100.17"),
            ("for=192.0.2.43, proto=https; FOR = 10.0.0.8", "192.0.2.43"),
            ("for=192.0.2.1;host=\"a,for=192.0.2.9\", for=10.0.0.8", "192.0.2.1"),
            ("for=\"192.0.2.1:_port\"", "10.0.0.1"),
            ("for=unknown", "10.0.0.1"),
            ("for=_hidden, for=10.0.0.8", "10.0.0.1"),
            ("for=192.0.2.1;for=192.0.2.2", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
            ("for=\"192.0.2.1", "10.0.0.1"),
        ];
        for (sent, expected) in cases {
            assert_eq!(client(&[(&FORWARDED, sent)]), expected, "{sent}");
        }
    }

    #[test]
    fn headers_that_contradict_each_other_name_no_client() {
        let both = |one, other| client(&[(&FORWARDED, one), (&X_FORWARDED_FOR, other)]);
        assert_eq!(both("for=192.0.2.1", "192.0.2.1"), "192.0.2.1");
        assert_eq!(both("for=192.0.2.1", "192.0.2.2"), "10.0.0.1");
        assert_eq!(both("for=unknown", "192.0.2.2"), "10.0.0.1");
    }

    #[test]
    fn a_network_is_read_with_or_without_its_number_of_bits() {
        let trusts = |network: &str, address: &str| {
            let proxies = TrustedProxies::new(&[network.to_owned()]).expect("usable");
            proxies.contains(address.parse().expect("an address"))
        };
        assert!(trusts("10.1.2.3", "10.1.2.3") && !trusts("10.1.2.3", "10.1.2.4"));
        assert!(trusts("10.1.2.3/8", "10.200.0.1") && !trusts("10.0.0.0/8", "11.0.0.1"));
        assert!(trusts("::ffff:10.0.0.0/104", "10.9.9.9") && trusts("10.0.0.0/8", "::ffff:10.9.9.9"));
        assert!(trusts("fd00::/8", "fdff::1") && !trusts("fd00::/8", "10.0.0.1"));
        assert!(trusts("127.0.0.1/32", "127.0.0.1") && trusts("::1/128", "::1"));
        for text in [
            "",
            "proxy.example",
            "10.0.0.0/33",
            "010.0.0.1/8",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "0.0.0.0/0",
            "::/0",
            "::ffff:0:0/96",
        ] {
            let error = TrustedProxies::new(&[text.to_owned()]).expect_err(text).to_string();
            assert!(error.starts_with("--trust-proxy"), "{error}");
        }
    }
}
