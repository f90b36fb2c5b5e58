//! The proxies of phones. They do not exist: a connection that a phone opens to one leads to
//! [`serve_phone`].

use crate::net;
use crate::switches::Asked;
use crate::traffic::{Hop, Way, way};
use crate::world::World;
use kit::ProxyClient;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;

pub(crate) async fn serve_phone(
    world: Arc<World>,
    pad: &str,
    (host, port): (&str, u16),
    stream: TcpStream,
) -> io::Result<()> {
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
        Some(mut stream) => tokio::io::copy_bidirectional(&mut client.stream, &mut stream).await.map(drop),
        None => Ok(()),
    }
}
