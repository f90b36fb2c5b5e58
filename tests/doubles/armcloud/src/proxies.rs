//! The proxies of phones. They do not exist: a connection that a phone opens to one leads to
//! [`serve_phone`]. Its requests leave from [the address of the
//! proxy](crate::addresses::of_proxy).

use crate::net;
use crate::switches::Asked;
use crate::traffic::exit;
use crate::truth::Seat;
use crate::world::World;
use kit::ProxyClient;
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;

pub(crate) async fn serve_phone(
    world: Arc<World>,
    seat: Seat,
    proxy: (&str, u16),
    stream: TcpStream,
) -> io::Result<()> {
    let asked = Asked { endpoint: "", seats: &[seat] };
    let is_open = stream.peek(&mut [0]).await? > 0;
    if !is_open || world.switches().is_set(asked, |set| &mut set.proxy_dead) {
        return Ok(());
    }
    let login = world.switches().take(asked, |set| &mut set.proxy_login);
    let Some(mut client) = ProxyClient::meet(stream, login.as_deref()).await? else { return Ok(()) };
    let lie = world.switches().take(asked, |set| &mut set.proxy_lies);
    if let Some(body) = lie {
        client.answer(true).await?;
        return client.lie(&body).await;
    }
    let source = {
        let mut switches = world.switches();
        let forwarder = switches.take(asked, |set| &mut set.forwarder);
        forwarder.unwrap_or_else(|| exit(&world, &mut switches, asked, proxy))
    };
    let to = client.to.rsplit_once(':').and_then(|(host, port)| Some((net::resolve(host)?, port.parse().ok()?)));
    let reached = match to {
        Some((address, port)) => net::connect(source, address, port).await.ok(),
        None => None,
    };
    client.answer(reached.is_some()).await?;
    match reached {
        Some(mut stream) => tokio::io::copy_bidirectional(&mut client.stream, &mut stream).await.map(drop),
        None => Ok(()),
    }
}
