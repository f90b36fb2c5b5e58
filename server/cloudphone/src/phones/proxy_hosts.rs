//! Decides which hosts a phone may use as its proxy.
//!
//! The server never connects to a proxy and does not resolve names. But a phone runs inside the
//! platform's network. A proxy at a private or local address would open that network to any client.
//! The check applies to exactly what is sent. Start at [`ProxyHosts::judge`].
//!
//! The refused ranges are those of the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC
//! 6890), and in IPv6 everything outside of global unicast, 2000::/3. Translated and 6to4 addresses
//! count as the IPv4 address inside. Ranges for documentation that examples use are allowed.

use std::iter::repeat;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Host;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHosts {
    Public,
    /// Also private networks.
    PublicAndPrivate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HostKind {
    Public,
    Private,
    /// Refused whatever the operator allows.
    Barred(&'static str),
}

/// Where clouds serve credentials to their machines. 169.254.169.254 is link-local already.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Each entry also bars its subdomains.
const METADATA_NAMES: &str = "instance-data instance-data.ec2.internal metadata metadata.azure.internal metadata.goog \
                              metadata.google.internal metadata.tencentyun.com";

/// Those of RFC 6761, and of usual files of host names. Each entry also bars its subdomains.
const LOOPBACK_NAMES: &str = "localhost localhost.localdomain localhost6 localhost6.localdomain6 ip6-localhost \
                              ip6-loopback";

/// Domains that no public server answers for: `internal` (ICANN), `local` and appendix G of RFC
/// 6762, `arpa` (for `home.arpa`, RFC 8375), `onion`, `invalid`, `alt`, and those of machines and
/// clusters.
const PRIVATE_DOMAINS: &str = "alt arpa corp home internal intranet invalid lan local onion localdomain private svc";

/// Both registries as of 2025-10-09. Added are multicast (RFC 5771, RFC 4291), translated addresses
/// (RFC 2765), and what is not global unicast. A range in another one of its kind has no entry.
/// Mapped addresses are converted to IPv4 first.
const RANGES: [(HostKind, &str); 10] = [
    (HostKind::Barred("is unspecified"), "0.0.0.0/8 ::/128"),
    (HostKind::Barred("is loopback"), "127.0.0.0/8 ::1/128"),
    (HostKind::Barred("is link-local, where metadata services are"), "169.254.0.0/16 fe80::/10"),
    (HostKind::Barred("is multicast"), "224.0.0.0/4 ff00::/8"),
    (HostKind::Barred("is reserved"), "240.0.0.0/4"),
    (HostKind::Barred("is broadcast"), "255.255.255.255/32"),
    (HostKind::Barred("is a tunnel to another address"), "2001::/32"),
    (
        HostKind::Private,
        "10.0.0.0/8 100.64.0.0/10 172.16.0.0/12 192.0.0.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 \
         192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 ::/0 2001::/23 2620:4f:8000::/48 3fff::/20",
    ),
    (HostKind::Public, "2000::/3 64:ff9b::/96 2002::/16 ::ffff:0:0:0/96"),
    // For documentation, because examples use these ranges. No example uses 3fff::/20.
    (HostKind::Public, "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32"),
];

/// Programs read such an IPv4 address in different ways.
const AMBIGUOUS: &str =
    "can be read as another address: write an IPv4 address as four decimal numbers without leading zeros";

pub(super) const NO_HOST: &str = "is neither a host name nor an address";

impl ProxyHosts {
    /// Returns the canonical spelling of a host, which passes the same check. An IPv6 address (RFC
    /// 5952) has no brackets, and becomes IPv4 if it is mapped. A name is in lower case, without a
    /// dot at its end. Any spelling of a URL (WHATWG) is accepted, except that an IPv4 address has
    /// four decimal parts. An error is a fragment that follows the host.
    pub fn judge(self, host: &str) -> Result<String, &'static str> {
        let bare = host.parse().ok().map(|address: Ipv6Addr| Host::Ipv6(address));
        let parsed = bare.map_or_else(|| Host::parse(host), Ok).map_err(|_| NO_HOST)?;
        let is_ambiguous = matches!(&parsed, Host::Ipv4(address) if address.to_string() != host);
        let address = match parsed {
            Host::Domain(name) => Err(name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase()),
            Host::Ipv4(address) => Ok(IpAddr::V4(address)),
            Host::Ipv6(address) => Ok(IpAddr::V6(address).to_canonical()),
        };
        let (kind, canonical) = match address {
            Err(name) => (kind_of(&name), name),
            Ok(address) => (kind_of_address(address), address.to_string()),
        };
        match (kind, self) {
            (HostKind::Barred(what), _) => Err(what),
            _ if is_ambiguous => Err(AMBIGUOUS),
            (HostKind::Public, _) | (HostKind::Private, Self::PublicAndPrivate) => Ok(canonical),
            (HostKind::Private, Self::Public) => {
                Err("is in a private network, which the operator of this server does not allow")
            }
        }
    }
}

fn kind_of(name: &str) -> HostKind {
    let is_in = |domains: &str| {
        let is = |known| name == known || name.strip_suffix(known).is_some_and(|front| front.ends_with('.'));
        domains.split(' ').any(is)
    };
    match () {
        () if is_in(LOOPBACK_NAMES) => HostKind::Barred("is loopback"),
        () if is_in(METADATA_NAMES) => HostKind::Barred("is a metadata service"),
        () if name.len() > NAME_MAX || !name.split('.').all(is_label) => HostKind::Barred(NO_HOST),
        // The resolver looks up a name without a dot in its own search domains.
        () if !name.contains('.') || is_in(PRIVATE_DOMAINS) => HostKind::Private,
        () => HostKind::Public,
    }
}

/// In bytes (RFC 1035).
const NAME_MAX: usize = 253;

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

fn kind_of_address(address: IpAddr) -> HostKind {
    if METADATA.contains(&address) {
        return HostKind::Barred("is a metadata service");
    }
    let own = find_range(address).unwrap_or(HostKind::Public);
    let IpAddr::V6(address) = address else { return own };
    // An embedded address counts as well: a translator leads there.
    match find_ipv4(address).map(|inside| kind_of_address(inside.into())) {
        Some(barred @ HostKind::Barred(_)) => barred,
        Some(HostKind::Private) if own == HostKind::Public => HostKind::Private,
        _ => own,
    }
}

fn find_range(address: IpAddr) -> Option<HostKind> {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    };
    let length = |range: &str| {
        let (first, length) = range.split_once('/')?;
        let (first, length): (IpAddr, u32) = (first.parse().ok()?, length.parse().ok()?);
        let has = (bits(first) ^ bits(address)).checked_shr(128 - length).unwrap_or(0) == 0;
        (first.is_ipv4() == address.is_ipv4() && has).then_some(length)
    };
    let lengths = RANGES.iter().flat_map(|(kind, ranges)| ranges.split(' ').filter_map(length).zip(repeat(*kind)));
    lengths.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// Finds the IPv4 address inside an IPv6 address that is mapped, compatible, translated (RFC 6052,
/// RFC 8215), 6to4, or that has it behind `ffff` or the mark of ISATAP (RFC 5214).
fn find_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0) if g != 0 || h > 1 => v4(g, h),
        (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, ..) | (.., 0xffff) | (.., 0 | 0x200, 0x5efe) => v4(g, h),
        (0x2002, ..) => v4(b, c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICIES: [ProxyHosts; 2] = [ProxyHosts::Public, ProxyHosts::PublicAndPrivate];

    const PUBLIC: &str =
        "proxy.example.com 8.8.8.8 203.0.113.7 198.51.100.1 [2001:db8::1] 2001:db8::1 100.128.0.1 192.0.2.1 192.0.1.1
        198.17.255.255 198.20.0.1 192.88.98.1 2001:200::1 2606:4700::1111 2606:4700::ffff:8.8.8.8
        64:ff9b::808:808 proxy.example.com. local.example.com notinternal.example";

    const PRIVATE: &str =
        "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 3fff::1 3fff:fff::1 2606:4700::5efe:10.0.0.1
        2606:4700::200:5efe:192.168.1.1 2606:4700::ffff:10.0.0.1 2002:c0a8:101::1 [fd00::1] fc00::1
        [fec0::1] [::ffff:10.0.0.1] [64:ff9b::a00:1] [64:ff9b:1::a00:1] [2002:a00:1::] [::10.0.0.1]
        198.18.0.1 198.19.255.255 192.0.0.1 192.0.0.255 192.88.99.1 ::ffff:198.18.0.1 [64:ff9b:1::808:808]
        [64:ff9b:1:1::1.2.3.4] [100::1] [100:0:0:1::1] [2001:2::1] [2001:1ff::1] [5f00::1] [4000::1]
        proxy.internal PROXY.Internal. printer.local proxy.team.svc proxy.team.svc.cluster.local
        router.home.arpa nas.lan host.localdomain proxy.corp internal kubernetes proxy";

    /// A part of the reason, and the hosts.
    const BARRED: &[(&str, &str)] = &[
        (
            "loopback",
            "127.0.0.1 127.1 0x7f.0.0.1 2130706433 0177.0.0.1 localhost LOCALHOST a.localhost. ::1 [::1]
             [::ffff:127.0.0.1] [::7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] [::ffff:0:7f00:1]
             ip6-localhost IP6-Loopback. localhost.localdomain a.localhost.localdomain 0x7f.1
             127.0.0.1. %6c%6f%63alhost ｌｏｃａｌｈｏｓｔ １２７.0.0.1 [64:ff9b:1::7f00:1]
             2606:4700::5efe:127.0.0.1",
        ),
        ("unspecified", "0.0.0.0 0 0.1.2.3 ::"),
        ("link-local", "169.254.169.254 0xa9fea9fe [fe80::1] [::ffff:a9fe:a9fe] 2606:4700::ffff:169.254.169.254"),
        (
            "metadata",
            "100.100.100.200 [fd00:ec2::254] 192.0.0.192 metadata.google.internal metadata metadata.
             instance-data instance-data.ec2.internal metadata.azure.internal 168.63.129.16
             metadata.goog",
        ),
        ("multicast", "224.0.0.1 [ff02::1]"),
        ("broadcast", "255.255.255.255"),
        ("reserved", "240.0.0.1"),
        (
            "neither",
            "1.2.3.4.5 256.0.0.1 [::1 : . a:80 127.0.0.1.. a..b - -a.b
             a123456789012345678901234567890123456789012345678901234567890123 [fe80::1%25eth0]",
        ),
        ("tunnel", "[2001:0:a9fe:a9fe::]"),
        (
            "can be read as another address",
            "0010.0.0.8 012.0.0.1 0xa.1 167772161 8.8.2056 0x08080808 8.8.8.8. ８.8.8.8",
        ),
    ];

    #[test]
    fn hosts_are_judged_by_what_they_mean_in_any_spelling() {
        for host in PUBLIC.split_whitespace() {
            assert!(ProxyHosts::Public.judge(host).is_ok(), "{host}");
        }
        for host in PRIVATE.split_whitespace() {
            let judged = ProxyHosts::Public.judge(host);
            assert!(judged.as_ref().is_err_and(|why| why.contains("private")), "{host}: {judged:?}");
            assert!(ProxyHosts::PublicAndPrivate.judge(host).is_ok(), "{host}");
        }
        for (what, hosts) in BARRED {
            for (host, policy) in hosts.split_whitespace().flat_map(|host| POLICIES.map(|policy| (host, policy))) {
                assert!(policy.judge(host).is_err_and(|why| why.contains(what)), "{host}: {:?}", policy.judge(host));
            }
        }
    }

    /// Both registries as of 2025-10-09. `+`: the row is allowed.
    const REGISTRIES: &str = "0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12
        192.0.0.0/24 192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24+
        192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15
        198.51.100.0/24+ 203.0.113.0/24+ 240.0.0.0/4 255.255.255.255/32
        ::1/128 ::/128 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32
        2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28
        2001:30::/28 2001:db8::/32+ 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10";

    #[test]
    fn each_row_of_the_registries_is_refused_from_its_first_address_to_its_last() {
        for row in REGISTRIES.split_whitespace() {
            let (first, length) = row.trim_end_matches('+').split_once('/').expect("a range");
            let length = length.parse().expect("a length");
            let last: IpAddr = match first.parse().expect("an address") {
                IpAddr::V4(first) => (first | Ipv4Addr::from(u32::MAX.checked_shr(length).unwrap_or(0))).into(),
                IpAddr::V6(first) => (first | Ipv6Addr::from(u128::MAX.checked_shr(length).unwrap_or(0))).into(),
            };
            let allowed = [first, &last.to_string()].map(|address| ProxyHosts::Public.judge(address).is_ok());
            assert_eq!(allowed.contains(&true), row.ends_with('+'), "{row}");
        }
    }

    #[test]
    fn a_host_is_passed_on_in_its_one_canonical_spelling() {
        for (host, canonical) in [
            ("8.8.8.8", "8.8.8.8"),
            ("[::ffff:8.8.8.8]", "8.8.8.8"),
            ("[2001:DB8:0:0::1]", "2001:db8::1"),
            ("2001:db8:0::1", "2001:db8::1"),
            ("Proxy.Example.COM.", "proxy.example.com"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(ProxyHosts::Public.judge(host).as_deref(), Ok(canonical), "{host}");
        }
    }

    fn spell(part: u32, base: u8) -> String {
        match base {
            8 => format!("0{part:o}"),
            10 => part.to_string(),
            _ => format!("0x{part:X}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_allowed_host_has_a_canonical_spelling_that_is_allowed_and_stable(
            host in prop_oneof![
                "[a-zA-Z0-9._:\\[\\]-]{1,40}",
                "\\PC{1,20}",
                "([a-z0-9]{1,8}\\.){1,3}(com|internal|local|svc|localhost|lan|arpa|[0-9]{1,3})\\.?",
                any::<[u16; 8]>().prop_map(|segments| Ipv6Addr::from(segments).to_string()),
                (any::<u32>(), 0..6_usize).prop_map(|(low, kind)| {
                    let prefix = ["::", "::ffff:", "64:ff9b::", "64:ff9b:1::", "::ffff:0:", "2001:db8::"][kind];
                    format!("[{prefix}{}]", Ipv4Addr::from(low))
                }),
            ],
        ) {
            for policy in POLICIES {
                if let Ok(canonical) = policy.judge(&host) {
                    prop_assert_eq!(policy.judge(&canonical), Ok(canonical.clone()));
                    prop_assert!(Host::parse(&canonical).is_ok() || canonical.parse::<Ipv6Addr>().is_ok());
                }
            }
        }

        #[test]
        fn an_ipv4_address_in_another_spelling_is_never_allowed(
            address in any::<u32>(),
            parts in 1..=4_u32,
            bases in proptest::array::uniform4(prop_oneof![Just(8_u8), Just(10), Just(16)]),
        ) {
            let plain = Ipv4Addr::from(address);
            let last = address & u32::MAX.checked_shr(8 * (parts - 1)).unwrap_or(0);
            let numbers = plain.octets().into_iter().take(parts as usize - 1).map(u32::from).chain([last]);
            let host = numbers.zip(bases).map(|(part, base)| spell(part, base)).collect::<Vec<_>>().join(".");
            for policy in POLICIES {
                prop_assert!(host == plain.to_string() || policy.judge(&host).is_err(), "{}", host);
                prop_assert_eq!(policy.judge(&format!("::ffff:{plain}")), policy.judge(&plain.to_string()));
            }
        }
    }
}
