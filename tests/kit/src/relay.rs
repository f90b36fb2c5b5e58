//! A relay on the link between a program and a server on a socket. It can cut the link, and hold
//! everything back that is on its way.

use anyhow::Result;
use std::path::PathBuf;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    Open,
    Stalled,
    /// Connections end, and new ones are refused.
    Cut,
}

#[derive(Debug)]
pub struct LinkRelay {
    pub port: u16,
    state: watch::Sender<LinkState>,
    _accepting: JoinSet<()>,
}

impl LinkRelay {
    /// Allows that the server at the socket is absent.
    pub async fn start(socket: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (state, link) = watch::channel(LinkState::Open);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut passing = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                while passing.try_join_next().is_some() {}
                passing.spawn(pass_both(client, socket.clone(), link.clone()));
            }
        });
        Ok(Self { port, state, _accepting: accepting })
    }

    pub fn set(&self, state: LinkState) {
        self.state.send_replace(state);
    }
}

/// Ends when either end closes, or the link is cut.
async fn pass_both(client: TcpStream, socket: PathBuf, link: watch::Receiver<LinkState>) {
    let mut cut = link.clone();
    let passing = async {
        let server = UnixStream::connect(&socket).await.ok()?;
        client.set_nodelay(true).ok()?;
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::select! {
            ended = pass(from_client, to_server, link.clone()) => ended,
            ended = pass(from_server, to_client, link.clone()) => ended,
        }
    };
    tokio::select! {
        _ = cut.wait_for(|state| *state == LinkState::Cut) => {}
        _ = passing => {}
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut link: watch::Receiver<LinkState>,
) -> Option<()> {
    let mut octets = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut octets).await.ok().filter(|read| *read > 0)?;
        link.wait_for(|state| *state == LinkState::Open).await.ok()?;
        to.write_all(octets.get(..read)?).await.ok()?;
    }
}
