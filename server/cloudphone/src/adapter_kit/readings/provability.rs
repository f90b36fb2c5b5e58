//! The provability of a proxy on a phone, by the programs of the phone and the requirements
//! of the proxy.

use crate::adapter_kit::shell::Tool;
use crate::phones::contract::{ProxyScheme, SetProxyArgs};
use std::net::Ipv6Addr;
use toolwarrant::tasks::Provability;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Phone,
    /// This server, on a connection that the phone opens.
    PhoneConnection,
    /// This server, on its own connection.
    Server,
}

pub(super) fn authority(proxy: &SetProxyArgs) -> String {
    let host = proxy.host.as_str();
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{}", proxy.port.get()),
        Err(_) => format!("{host}:{}", proxy.port.get()),
    }
}

/// Returns an argument for curl; `None` if it would contain a password, or need what not every curl
/// can do.
pub(super) fn explicit(proxy: &SetProxyArgs) -> Option<String> {
    let SetProxyArgs { device_id: _, scheme, host: _, port: _, username, password, idempotency_key: _ } = proxy;
    let scheme = match (scheme, username, password) {
        // The proxy resolves the name, as it does for all traffic of the phone.
        (ProxyScheme::Socks5, None, None) => "socks5h",
        (ProxyScheme::Http, None, None) => "http",
        _ => return None,
    };
    Some(format!("{scheme}://{}", authority(proxy)))
}

/// Assumes curl on a phone whose tool is not known. `dials` is true if the phone opens connections.
pub(super) fn asker(proxy: &SetProxyArgs, tool: Option<Tool>, dials: bool, by_server: bool) -> Option<Asker> {
    let speaks = matches!(proxy.scheme, ProxyScheme::Socks5 | ProxyScheme::Http);
    if dials && speaks {
        return Some(Asker::PhoneConnection);
    }
    if explicit(proxy).is_some() && matches!(tool, None | Some(Tool::Curl)) {
        return Some(Asker::Phone);
    }
    (by_server && speaks).then_some(Asker::Server)
}

/// Returns the provability, which [`Exits::verdict`](super::Exits::verdict) explains.
pub(super) fn of(proxy: &SetProxyArgs, tool: Option<Tool>, dials: bool, by_server: bool) -> Provability {
    let literal = proxy.host_address().is_some();
    match (tool, asker(proxy, tool, dials, by_server)) {
        (Some(Tool::Missing), _) => Provability::Nothing("the phone has no program that makes a request"),
        (_, Some(Asker::Phone | Asker::PhoneConnection)) => Provability::Both,
        (_, Some(Asker::Server)) if literal => Provability::Both,
        (_, Some(Asker::Server)) => Provability::Presence,
        (_, None) if literal => Provability::Presence,
        (_, None) if explicit(proxy).is_some() => {
            Provability::Nothing("the phone has no program that asks through a proxy, and the proxy's host is a name")
        }
        (_, None) => Provability::Nothing(
            "the proxy's host is a name, and nobody asks through it: a password never stands in a command on a phone",
        ),
    }
}
