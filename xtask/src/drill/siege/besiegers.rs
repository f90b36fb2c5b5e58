//! The clients that stall. Each holds one connection, and opens another one some seconds after it
//! was closed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Number of addresses of besiegers: 127.0.0.2 and the following ones.
const ADDRESSES: u32 = 25;

/// Time between two bytes that are sent or read slowly.
const DRIBBLE: Duration = Duration::from_secs(1);

/// Time from the end of a connection to the next one. A shorter time would make it a flood.
const REST: Duration = Duration::from_secs(5);

/// Bytes of a body that are sent at once.
const BODY_AT_ONCE: usize = 48 * 1024;

/// The way in which besiegers stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    /// They send nothing.
    Silent,
    /// They send a head, byte by byte.
    Heads,
    /// They send the head of a request under `/v1`, a large part of its body at once, and the rest
    /// byte by byte.
    Bodies,
    /// They request a large answer and read it byte by byte.
    Readers,
}

impl Stall {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Heads => "dribbled heads",
            Self::Bodies => "dribbled bodies",
            Self::Readers => "slow readers",
        }
    }
}

/// All besiegers of one siege.
pub(super) struct Camp {
    besiegers: JoinSet<()>,
    ground: Arc<Ground>,
}

/// The state that besiegers share.
struct Ground {
    stall: Stall,
    address: SocketAddr,
    /// A request for a large answer.
    ask: String,
    /// Connections that are open.
    open: AtomicUsize,
    /// Status lines of answers that should not occur.
    told: Mutex<Vec<String>>,
}

impl Camp {
    /// Starts this number of besiegers, and waits until all of them stall, but at most 15 s.
    pub(super) async fn pitch(stall: Stall, many: u32, address: SocketAddr, ask: String) -> Self {
        let ground = Arc::new(Ground { stall, address, ask, open: AtomicUsize::new(0), told: Mutex::default() });
        let mut besiegers = JoinSet::new();
        for n in 0..many {
            besiegers.spawn(Arc::clone(&ground).lay(n));
        }
        let deadline = Instant::now() + Duration::from_secs(15);
        while ground.open.load(Relaxed) < many as usize && Instant::now() < deadline {
            sleep(Duration::from_millis(50)).await;
        }
        Self { besiegers, ground }
    }

    /// Ends the siege. Returns the number of connections stalled at the end, and the answers that
    /// should not occur.
    pub(super) fn strike(mut self) -> (usize, Vec<String>) {
        let open = self.ground.open.load(Relaxed);
        self.besiegers.abort_all();
        let told = self.ground.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (open, told)
    }
}

impl Ground {
    /// Runs one besieger until the siege ends.
    async fn lay(self: Arc<Self>, n: u32) {
        loop {
            if let Ok(stream) = self.connect(n).await {
                self.open.fetch_add(1, Relaxed);
                let answer = self.stall(stream).await.unwrap_or_default();
                self.open.fetch_sub(1, Relaxed);
                // The answer that there is no room is expected in a siege.
                if answer.starts_with("HTTP/1.1 5") && !answer.starts_with("HTTP/1.1 503") {
                    let line = answer.lines().next().unwrap_or_default().to_owned();
                    self.told.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                }
            }
            sleep(REST).await;
        }
    }

    async fn connect(&self, n: u32) -> std::io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        let host = u8::try_from(2 + n % ADDRESSES).unwrap_or(2);
        socket.bind(SocketAddr::from(([127, 0, 0, host], 0)))?;
        if self.stall == Stall::Readers {
            socket.set_recv_buffer_size(4 * 1024)?;
        }
        socket.connect(self.address).await
    }

    /// Stalls until the connection ends. Returns the answer.
    async fn stall(&self, mut stream: TcpStream) -> std::io::Result<String> {
        let mut dribble = false;
        match self.stall {
            Stall::Silent => {}
            Stall::Heads => {
                stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-filler: ").await?;
                dribble = true;
            }
            Stall::Bodies => {
                stream.write_all(SIGNED.as_bytes()).await?;
                // The program answers a body that is too large before it has read it.
                stream.write_all(&[b' '; BODY_AT_ONCE]).await?;
                dribble = true;
            }
            Stall::Readers => stream.write_all(self.ask.as_bytes()).await?,
        }
        let (mut answer, mut some) = (Vec::new(), [0; 512]);
        loop {
            let some = if self.stall == Stall::Readers { &mut some[..1] } else { &mut some[..] };
            match timeout(DRIBBLE, stream.read(some)).await {
                Ok(Ok(0)) => return Ok(String::from_utf8_lossy(&answer).into_owned()),
                Ok(read) => answer.extend_from_slice(&some[..read?]),
                Err(_) if dribble => stream.write_all(b" ").await?,
                Err(_) => {}
            }
            if self.stall == Stall::Readers {
                sleep(DRIBBLE).await;
            }
        }
    }
}

/// A head whose signature can only be checked with the body.
const SIGNED: &str = "POST /v1/devices/phone-0000001/power HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
    x-api-key: cpk_nobody\r\nx-timestamp: 1800000000\r\nx-nonce: 0123456789abcdef\r\n\
    x-signature: 0000000000000000000000000000000000000000000000000000000000000000\r\ncontent-length: 1000000\r\n\r\n";
