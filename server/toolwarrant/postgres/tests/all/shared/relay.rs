//! A relay between a replica and its server, which cuts its connections at a message.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use toolwarrant_postgres::Address;

pub(crate) struct Relay {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Messages until the cut, counted in both directions.
    left: AtomicU32,
    has_cut: AtomicBool,
}

const NEVER: u32 = u32::MAX;

impl Relay {
    pub(crate) async fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State { left: AtomicU32::new(NEVER), has_cut: AtomicBool::new(false) });
        let kept = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                client.set_nodelay(true).expect("it is open");
                let server = UnixStream::connect(&socket).await.expect("the server runs");
                let state = Arc::clone(&kept);
                tokio::spawn(async move {
                    let ((from_client, to_client), (from_server, to_server)) =
                        (client.into_split(), server.into_split());
                    tokio::select! {
                        () = relay(from_client, to_server, &state, true) => {}
                        () = relay(from_server, to_client, &state, false) => {}
                    }
                });
            }
        });
        Self { port, state }
    }

    pub(crate) fn address(&self, direct: &Address) -> Address {
        address(self.port, direct)
    }

    pub(crate) fn cut_at(&self, messages: u32) {
        self.state.left.store(messages, SeqCst);
    }

    pub(crate) fn count_messages(&self) -> u32 {
        NEVER - self.state.left.load(SeqCst)
    }

    pub(crate) fn has_cut(&self) -> bool {
        self.state.has_cut.load(SeqCst)
    }
}

/// Returns the address of the same schema over a port.
pub(crate) fn address(port: u16, direct: &Address) -> Address {
    let options = direct.url.split_once("options=").map(|(_, options)| options).unwrap_or_default();
    Address { url: format!("postgres://tests@127.0.0.1:{port}/postgres?options={options}"), password: None }
}

/// Passes messages on. The first one of a client has no type.
async fn relay(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    state: &State,
    mut is_first_of_client: bool,
) {
    loop {
        let mut message = Vec::new();
        if !is_first_of_client {
            let Ok(kind) = from.read_u8().await else { return };
            message.push(kind);
        }
        is_first_of_client = false;
        let Ok(length) = from.read_u32().await else { return };
        message.extend(length.to_be_bytes());
        let start = message.len();
        message.resize(start + length as usize - 4, 0);
        if from.read_exact(&mut message[start..]).await.is_err() {
            return;
        }
        let left = state.left.load(SeqCst);
        if left == 0 {
            state.left.store(NEVER, SeqCst);
            state.has_cut.store(true, SeqCst);
            return;
        }
        state.left.store(left - 1, SeqCst);
        if to.write_all(&message).await.is_err() {
            return;
        }
    }
}
