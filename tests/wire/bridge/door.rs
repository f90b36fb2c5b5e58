//! An address that stays the same while the server behind it changes.

use kit::wait_for;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// With this address, no other program takes the port while the door is closed.
const HOST: &str = "127.8.8.8";

pub(super) struct Door {
    pub(super) address: SocketAddr,
    task: Option<JoinHandle<()>>,
}

impl Door {
    pub(super) async fn to(server: SocketAddr) -> Self {
        let mut door = Self { address: format!("{HOST}:0").parse().expect("an address"), task: None };
        door.open(server).await;
        door
    }

    pub(super) async fn open(&mut self, server: SocketAddr) {
        self.close().await;
        // A process that begins meanwhile may still have the former listener.
        let listener = wait_for(async || TcpListener::bind(self.address).await.map_err(|error| error.to_string()));
        let listener = listener.await.expect("a free port");
        self.address = listener.local_addr().expect("an address");
        let serve = async move {
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                connections.spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(server).await {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        };
        self.task = Some(tokio::spawn(serve));
    }

    pub(super) async fn close(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
    }
}
