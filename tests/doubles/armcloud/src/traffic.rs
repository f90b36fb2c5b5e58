//! The route of a phone's request: from the phone's own address, or through a proxy and from the
//! proxy's address. The tools ask for it before they connect.

use crate::addresses;
use crate::switches::{Asked, Switch};
use crate::world::{World, now};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::Ipv4Addr;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journey {
    pub(crate) pad: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) proxy: Option<Hop>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hop {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `user:password`.
    pub(crate) login: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Way {
    From { source: Ipv4Addr },
    Told { body: String },
    NoLogin,
    Dead,
}

pub(crate) fn way(world: &World, journey: &Journey) -> Option<Way> {
    let Journey { pad, host, port, proxy: named } = journey;
    let (seat, set) = {
        let truth = world.truth();
        let seat = truth.ever(pad)?;
        (seat, truth.pad(seat).condition.proxy.clone())
    };
    let asked = Asked { endpoint: "", seats: &[seat] };
    let mut switches = world.switches();
    let own = switches.take_address(Switch::OwnAddress, asked).unwrap_or_else(|| addresses::of_pad(seat.0));
    let set = set
        .filter(|set| !set.bypass.contains(host))
        .filter(|_| named.is_some() || !switches.take_flag(Switch::ShellIgnoresProxy, asked));
    let through = match (named, &set) {
        (Some(hop), _) => Some((hop.host.as_str(), hop.port, &hop.login)),
        (None, Some(set)) => Some((set.host.as_str(), set.port, &set.login)),
        (None, None) => None,
    };
    let way = match through {
        None => Way::From { source: own },
        Some((proxy, proxy_port, login)) => {
            let wanted = switches.take_text(Switch::ProxyLogin, asked);
            if switches.take_flag(Switch::ProxyDead, asked) {
                Way::Dead
            } else if wanted.is_some() && &wanted != login {
                Way::NoLogin
            } else if let Some(body) = switches.take_text(Switch::ProxyLies, asked) {
                Way::Told { body }
            } else {
                let source = if switches.take_flag(Switch::ProxyRotates, asked) {
                    addresses::of_rotating_proxy(proxy, proxy_port, world.rotate())
                } else {
                    addresses::of_proxy(proxy, proxy_port)
                };
                Way::From { source }
            }
        }
    };
    let way = match (way, switches.take_address(Switch::Forwarder, asked)) {
        (Way::From { .. }, Some(source)) => Way::From { source },
        (way, _) => way,
    };
    drop(switches);
    let through = through.map(|(proxy, proxy_port, _)| format!("{proxy}:{proxy_port}"));
    let by = match (named, set) {
        (Some(_), _) => "command",
        (None, Some(_)) => "platform",
        (None, None) => "nobody",
    };
    let entry =
        json!({"pad": pad, "to": format!("{host}:{port}"), "proxy": through, "set_by": by, "way": describe_way(&way)});
    world.journal.write(now(), "traffic", entry);
    Some(way)
}

fn describe_way(way: &Way) -> String {
    match way {
        Way::From { source } => source.to_string(),
        Way::Told { body: _ } => "answered by the proxy".to_owned(),
        Way::NoLogin => "refused by the proxy".to_owned(),
        Way::Dead => "no connection to the proxy".to_owned(),
    }
}
