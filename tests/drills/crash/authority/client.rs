//! A client with a connection to each replica, which stay open.

use crate::drills::crash::cluster::replica::Replica;
use crate::harness::Key;
use driver::{HttpAnswer, exchange_on};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

/// Time for which it waits for an answer. No fault lasts as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause after a request without an answer.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct ReplicaClient {
    replicas: Vec<Arc<Replica>>,
    /// Its own address, because the connections from one are limited.
    from: Ipv4Addr,
    /// The open connection to each replica.
    open: Vec<Option<(SocketAddr, TcpStream)>>,
}

impl ReplicaClient {
    pub(super) fn new(replicas: &[Arc<Replica>]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0x7f64_0001);
        let from = Ipv4Addr::from_bits(NEXT.fetch_add(1, Relaxed));
        Self { replicas: replicas.to_vec(), from, open: replicas.iter().map(|_| None).collect() }
    }

    /// Sends a request to a replica. Returns `None` after a pause if there is no answer.
    pub(super) async fn send(&mut self, replica: usize, request: &[u8]) -> Option<HttpAnswer> {
        let replica = replica % self.replicas.len();
        let answer = timeout(PATIENCE, self.try_send(replica, request)).await.ok().flatten();
        if answer.is_none() {
            sleep(PAUSE).await;
        }
        answer
    }

    async fn try_send(&mut self, replica: usize, request: &[u8]) -> Option<HttpAnswer> {
        let address = self.replicas[replica].run()?.address;
        let open = self.open[replica].take().filter(|(known, _)| *known == address);
        let mut stream = match open {
            Some((_, stream)) => stream,
            None => {
                let socket = TcpSocket::new_v4().expect("a socket");
                socket.bind((self.from, 0).into()).expect("an address of this machine");
                socket.connect(address).await.ok()?
            }
        };
        let answer = exchange_on(&mut stream, request).await.ok()?;
        self.open[replica] = Some((address, stream));
        Some(answer)
    }
}

/// Returns a request that reads devices.
pub(super) fn list(key: &Key) -> Vec<u8> {
    key.call_request("list_devices", &json!({"limit": 1}), "").into_bytes()
}

/// Returns true if a call succeeded.
pub(super) fn is_success(answer: &HttpAnswer) -> bool {
    answer.status == 200 && answer.body.contains(r#""isError":false"#)
}
