//! The route of a phone's request: from the phone's own address, or through a proxy and from the
//! proxy's address. The tools ask for it before they connect.

use crate::addresses;
use crate::switches::{Asked, Switches};
use crate::world::World;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Journey {
    pub(crate) pad: String,
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
    let Journey { pad, proxy: named } = journey;
    let (seat, set) = {
        let truth = world.truth();
        let seat = truth.ever(pad)?;
        (seat, truth.pad(seat).condition.proxy.clone())
    };
    let asked = Asked { endpoint: "", seats: &[seat] };
    let mut switches = world.switches();
    let own = switches.take(asked, |set| &mut set.own_address).unwrap_or_else(|| addresses::of_pad(seat.0));
    let set = set.filter(|_| named.is_some() || !switches.is_set(asked, |set| &mut set.shell_ignores_proxy));
    let through = match (named, &set) {
        (Some(hop), _) => Some((hop.host.as_str(), hop.port, &hop.login)),
        (None, Some(set)) => Some((set.host.as_str(), set.port, &set.login)),
        (None, None) => None,
    };
    let way = match through {
        None => Way::From { source: own },
        Some((proxy, proxy_port, login)) => {
            let wanted = switches.take(asked, |set| &mut set.proxy_login);
            if switches.is_set(asked, |set| &mut set.proxy_dead) {
                Way::Dead
            } else if wanted.is_some() && &wanted != login {
                Way::NoLogin
            } else if let Some(body) = switches.take(asked, |set| &mut set.proxy_lies) {
                Way::Told { body }
            } else {
                Way::From { source: exit(world, &mut switches, asked, (proxy, proxy_port)) }
            }
        }
    };
    Some(match (way, switches.take(asked, |set| &mut set.forwarder)) {
        (Way::From { .. }, Some(source)) => Way::From { source },
        (way, _) => way,
    })
}

/// Returns the address from which requests of a proxy leave.
pub(crate) fn exit(world: &World, switches: &mut Switches, asked: Asked<'_>, (host, port): (&str, u16)) -> Ipv4Addr {
    match switches.is_set(asked, |set| &mut set.proxy_rotates) {
        true => addresses::of_rotating_proxy(host, port, world.rotate()),
        false => addresses::of_proxy(host, port),
    }
}
