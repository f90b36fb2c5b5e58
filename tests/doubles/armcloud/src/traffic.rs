//! The requests of phones. A phone's tools ask the double to connect them, which it does from the
//! phone's own address, or through a proxy and from the proxy's address.

use crate::addresses;
use crate::net;
use crate::switches::{Asked, Switches};
use crate::world::World;
use kit::ProxyClient;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;

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

enum Way {
    From(Ipv4Addr),
    /// The proxy answers with this itself.
    Told(String),
}

/// Closes the connection of a tool that cannot be connected. A host that is not on this machine is
/// a proxy.
pub(crate) async fn serve(world: Arc<World>, journey: Journey, mut stream: TcpStream) -> io::Result<()> {
    let Journey { pad, host, port, proxy } = journey;
    let Some(to) = net::resolve(&host) else { return Ok(()) };
    if !to.is_loopback() {
        return serve_proxy(world, &pad, (&host, port), stream).await;
    }
    match way(&world, &pad, proxy.as_ref()) {
        Some(Way::From(source)) => {
            let mut reached = net::connect(source, to, port).await?;
            copy_bidirectional(&mut stream, &mut reached).await.map(drop)
        }
        Some(Way::Told(body)) => {
            let _request = stream.read(&mut [0; 4 << 10]).await?;
            stream.write_all(body.as_bytes()).await
        }
        None => Ok(()),
    }
}

/// Serves a phone as a proxy, which does not exist.
async fn serve_proxy(world: Arc<World>, pad: &str, (host, port): (&str, u16), stream: TcpStream) -> io::Result<()> {
    let Some(seat) = world.truth().ever(pad) else { return Ok(()) };
    let login = world.switches().take(Asked { endpoint: "", seats: &[seat] }, |set| &mut set.proxy_login);
    // A phone may look whether the port is open.
    let is_used = stream.peek(&mut [0]).await? > 0;
    let hop = Hop { host: host.to_owned(), port, login: login.clone() };
    let Some(way) = is_used.then(|| way(&world, pad, Some(&hop))).flatten() else { return Ok(()) };
    let Some(mut client) = ProxyClient::meet(stream, login.as_deref()).await? else { return Ok(()) };
    let to = client.to.rsplit_once(':').and_then(|(host, port)| Some((net::resolve(host)?, port.parse().ok()?)));
    let reached = match (way, to) {
        (Way::Told(body), _) => {
            client.answer(true).await?;
            return client.lie(&body).await;
        }
        (Way::From(source), Some((address, port))) => net::connect(source, address, port).await.ok(),
        (Way::From(_), None) => None,
    };
    client.answer(reached.is_some()).await?;
    match reached {
        Some(mut stream) => copy_bidirectional(&mut client.stream, &mut stream).await.map(drop),
        None => Ok(()),
    }
}

/// Returns `None` if the proxy is dead, or demands another login.
fn way(world: &World, pad: &str, named: Option<&Hop>) -> Option<Way> {
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
        None => Way::From(own),
        Some((proxy, proxy_port, login)) => {
            let wanted = switches.take(asked, |set| &mut set.proxy_login);
            if switches.is_set(asked, |set| &mut set.proxy_dead) || wanted.is_some() && &wanted != login {
                return None;
            }
            let lie = switches.take(asked, |set| &mut set.proxy_lies);
            lie.map_or_else(|| Way::From(exit(world, &mut switches, asked, (proxy, proxy_port))), Way::Told)
        }
    };
    Some(match (way, switches.take(asked, |set| &mut set.forwarder)) {
        (Way::From(_), Some(source)) => Way::From(source),
        (way, _) => way,
    })
}

/// Returns the address from which requests of a proxy leave.
fn exit(world: &World, switches: &mut Switches, asked: Asked<'_>, (host, port): (&str, u16)) -> Ipv4Addr {
    match switches.is_set(asked, |set| &mut set.proxy_rotates) {
        true => addresses::of_rotating_proxy(host, port, world.rotate()),
        false => addresses::of_proxy(host, port),
    }
}
