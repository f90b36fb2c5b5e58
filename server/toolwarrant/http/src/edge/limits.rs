//! The limits on the resources that clients can take.

use std::time::Duration;

/// The operator and the system can lower the number of connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the start of the connection or the first byte to the end of the head.
    pub head: Duration,
    /// From an answer to the first byte of the next request. Proxies keep their idle connections
    /// for up to a minute, and a request that meets a closed one fails.
    pub idle: Duration,
    pub body_gap: Duration,
    pub body: Duration,
    /// For a client to read some of its answer.
    pub answer: Duration,
    /// Bytes per second that a client must read of its answer, once [`Self::answer`] has passed.
    pub answer_rate: u64,
    pub handshake: Duration,
    /// For requests in flight, after the server begins to stop.
    pub grace: Duration,
    pub headers: usize,
    /// Of a request head and of a connection's buffer, which a stalled connection can hold; at
    /// least 8 KiB.
    pub head_bytes: usize,
    pub body_bytes: usize,
    /// Bodies of verified callers in memory, without the first 16 KiB of each.
    pub bodies_bytes: usize,
    pub bodies_bytes_per_address: usize,
    /// Bodies whose caller is verified after the body. An address that holds as much as is left
    /// gets no more, so that others always find room.
    pub unverified_bytes: usize,
    pub unverified_bytes_per_address: usize,
    /// Answers that wait for their clients to read them, without the short ones. An address that
    /// holds as much as is left gets no more.
    pub answers_bytes: usize,
    pub answers_bytes_per_address: usize,
    /// Delayed answers to wrong credentials. Any further answer comes at once and its connection
    /// ends.
    pub delayed: usize,
    pub delayed_per_address: usize,
    /// At this limit, a connection that waits for its client is given up for a new one.
    pub connections: usize,
    /// From one IPv4 address or one 64-bit IPv6 network, which one host commonly has. Behind a
    /// trusted proxy, requests in flight of one client.
    pub connections_per_address: usize,
}

/// File descriptors for everything else: the store, the audit, the monitor, operators, and the
/// service.
const RESERVE: u64 = 256;

impl Limits {
    #[must_use]
    pub fn within(self, open_files: u64) -> Self {
        let left = open_files - RESERVE.min(open_files / 2);
        Self { connections: self.connections.min(usize::try_from(left).unwrap_or(usize::MAX)), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            body_gap: Duration::from_secs(10),
            body: Duration::from_secs(15),
            answer: Duration::from_secs(15),
            answer_rate: 4 * 1024,
            handshake: Duration::from_secs(10),
            grace: Duration::from_secs(10),
            headers: 64,
            head_bytes: 16 * 1024,
            body_bytes: 1024 * 1024,
            bodies_bytes: 64 * 1024 * 1024,
            bodies_bytes_per_address: 16 * 1024 * 1024,
            unverified_bytes: 16 * 1024 * 1024,
            unverified_bytes_per_address: 4 * 1024 * 1024,
            answers_bytes: 64 * 1024 * 1024,
            answers_bytes_per_address: 24 * 1024 * 1024,
            delayed: 64,
            delayed_per_address: 8,
            connections: 10_000,
            connections_per_address: 256,
        }
    }
}
