//! Decides which hosts a phone may use as its proxy.
//!
//! The server never connects to a proxy and resolves no name. But a phone runs inside the platform's network: a proxy at an address
//! that is private, local or the platform's own would open that network to any client. Start at [`ProxyHosts::judge`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Host;

/// The hosts that an operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHosts {
    /// Public addresses, and names.
    Public,
    /// Private networks as well.
    PublicAndPrivate,
}

/// The kind of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Public,
    Private,
    /// Never allowed. The text says what it is.
    Barred(&'static str),
}

/// Addresses at which clouds serve credentials to their machines. 169.254.169.254 is missing because it is link-local.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Names of such addresses and of loopback (RFC 6761). Each bars itself and all its subdomains.
const NAMES: [(&str, &str); 4] = [
    ("localhost", "loopback"),
    ("metadata.google.internal", "a metadata service"),
    ("metadata.goog", "a metadata service"),
    ("metadata", "a metadata service"),
];

impl ProxyHosts {
    /// Judges a host, which may have any spelling that a URL admits (WHATWG URL, host parsing).
    ///
    /// # Errors
    /// What is wrong with the host: a fragment to follow it.
    pub fn judge(self, host: &str) -> Result<(), &'static str> {
        let bare = host.parse().ok().map(|address: Ipv6Addr| Host::Ipv6(address));
        let parsed = bare.map_or_else(|| Host::parse(host), Ok).map_err(|_| "is neither a host name nor an address")?;
        let kind = match parsed {
            Host::Domain(name) => named(name.strip_suffix('.').unwrap_or(&name)),
            Host::Ipv4(address) => ipv4(address),
            Host::Ipv6(address) => ipv6(address),
        };
        match (kind, self) {
            (Kind::Public, _) | (Kind::Private, Self::PublicAndPrivate) => Ok(()),
            (Kind::Private, Self::Public) => {
                Err("is a private address, which the operator of this server does not allow")
            }
            (Kind::Barred(what), _) => Err(what),
        }
    }
}

fn named(name: &str) -> Kind {
    let is = |known: &str| name == known || name.strip_suffix(known).is_some_and(|front| front.ends_with('.'));
    match NAMES.iter().find(|(known, _)| is(known)) {
        Some((_, "loopback")) => Kind::Barred("is loopback"),
        Some(_) => Kind::Barred("is a metadata service"),
        None if name.split('.').all(is_label) => Kind::Public,
        None => Kind::Barred("is neither a host name nor an address"),
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

fn ipv4(address: Ipv4Addr) -> Kind {
    match address.octets() {
        _ if METADATA.contains(&address.into()) => Kind::Barred("is a metadata service"),
        [127, ..] => Kind::Barred("is loopback"),
        [0, ..] => Kind::Barred("is unspecified"),
        [169, 254, ..] => Kind::Barred("is link-local, where metadata services are"),
        [224..=239, ..] => Kind::Barred("is multicast"),
        [255, 255, 255, 255] => Kind::Barred("is broadcast"),
        [240..=255, ..] => Kind::Barred("is reserved"),
        // 100.64.0.0/10 is shared by a provider's customers (RFC 6598).
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Kind::Private,
        _ => Kind::Public,
    }
}

fn ipv6(address: Ipv6Addr) -> Kind {
    if METADATA.contains(&address.into()) {
        return Kind::Barred("is a metadata service");
    }
    if let Some(inner) = embedded(address) {
        return ipv4(inner);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Kind::Barred("is unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Kind::Barred("is loopback"),
        [0xfe80..=0xfebf, ..] => Kind::Barred("is link-local, where metadata services are"),
        [0xff00..=0xffff, ..] => Kind::Barred("is multicast"),
        // Teredo addresses (RFC 4380) hide an IPv4 address.
        [0x2001, 0, ..] => Kind::Barred("is a tunnel to another address"),
        // Unique local addresses (RFC 4193), and the site-local ones that they replaced.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Kind::Private,
        _ => Kind::Public,
    }
}

/// Finds the IPv4 address inside an IPv6 address that is mapped, compatible, translated (RFC 6052, RFC 8215) or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0) if g != 0 || h > 1 => v4(g, h),
        (0, 0, 0, 0, 0, 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) | (0x64, 0xff9b, 1, ..) => {
            v4(g, h)
        }
        (0x2002, ..) => v4(b, c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_LABEL: &str = "a123456789012345678901234567890123456789012345678901234567890123";

    #[test]
    fn hosts_are_judged_by_what_they_mean_in_any_spelling() {
        let public = [
            "proxy.example.com",
            "8.8.8.8",
            "203.0.113.7",
            "198.51.100.1",
            "[2001:db8::1]",
            "2001:db8::1",
            "100.128.0.1",
        ];
        let private = [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "0xa.1",
            "167772161",
            "012.0.0.1",
            "[fd00::1]",
            "fc00::1",
            "[fec0::1]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::a00:1]",
            "[64:ff9b:1::a00:1]",
            "[2002:a00:1::]",
            "[::10.0.0.1]",
        ];
        let barred = [
            ("127.0.0.1", "loopback"),
            ("127.1", "loopback"),
            ("0x7f.0.0.1", "loopback"),
            ("2130706433", "loopback"),
            ("0177.0.0.1", "loopback"),
            ("localhost", "loopback"),
            ("LOCALHOST", "loopback"),
            ("a.localhost.", "loopback"),
            ("::1", "loopback"),
            ("[::1]", "loopback"),
            ("[::ffff:127.0.0.1]", "loopback"),
            ("[::7f00:1]", "loopback"),
            ("[64:ff9b::7f00:1]", "loopback"),
            ("[2002:7f00:1::]", "loopback"),
            ("[::ffff:0:7f00:1]", "loopback"),
            ("0.0.0.0", "unspecified"),
            ("0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("::", "unspecified"),
            ("169.254.169.254", "link-local"),
            ("0xa9fea9fe", "link-local"),
            ("[fe80::1]", "link-local"),
            ("[::ffff:a9fe:a9fe]", "link-local"),
            ("100.100.100.200", "metadata"),
            ("[fd00:ec2::254]", "metadata"),
            ("192.0.0.192", "metadata"),
            ("metadata.google.internal", "metadata"),
            ("metadata", "metadata"),
            ("224.0.0.1", "multicast"),
            ("[ff02::1]", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("240.0.0.1", "reserved"),
            ("1.2.3.4.5", "neither"),
            ("256.0.0.1", "neither"),
            ("[::1", "neither"),
            (":", "neither"),
            (".", "neither"),
            ("a:80", "neither"),
            ("127.0.0.1..", "neither"),
            ("a..b", "neither"),
            ("-", "neither"),
            ("-a.b", "neither"),
            (LONG_LABEL, "neither"),
            ("168.63.129.16", "metadata"),
            ("metadata.goog", "metadata"),
            ("[2001:0:a9fe:a9fe::]", "tunnel"),
            ("[fe80::1%25eth0]", "neither"),
        ];
        for host in public {
            assert_eq!(ProxyHosts::Public.judge(host), Ok(()), "{host}");
        }
        for host in private {
            assert!(ProxyHosts::Public.judge(host).is_err_and(|why| why.contains("private")), "{host}");
            assert_eq!(ProxyHosts::PublicAndPrivate.judge(host), Ok(()), "{host}");
        }
        for (host, what) in barred {
            for policy in [ProxyHosts::Public, ProxyHosts::PublicAndPrivate] {
                assert!(policy.judge(host).is_err_and(|why| why.contains(what)), "{host}: {:?}", policy.judge(host));
            }
        }
    }
}
