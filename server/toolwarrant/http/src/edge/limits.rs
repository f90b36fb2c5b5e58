//! The limits on the resources that clients can take.

use std::time::Duration;

/// Limits on the time, memory and connections that clients can take. A service runs with
/// `Limits::default()`, except that the operator and the system can lower the number of
/// connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for the whole head of a request, counted from the start of the connection or from the
    /// first byte: 10 s.
    pub head: Duration,
    /// Time from an answer to the first byte of the next request: 75 s. Proxies keep their idle
    /// connections for up to a minute, and a request that meets a closed one fails.
    pub idle: Duration,
    /// Time between two pieces of a body: 10 s.
    pub body_gap: Duration,
    /// Time for a whole body: 15 s.
    pub body: Duration,
    /// Time in which a client must read some of its answer: 15 s.
    pub answer: Duration,
    /// Bytes per second that a client must read of its answer, after [`Self::answer`] has passed
    /// for the first of them: 4 KiB.
    pub answer_rate: u64,
    /// Time for the handshake of TLS: 10 s.
    pub handshake: Duration,
    /// Time for requests in flight to finish after the server begins to stop: 10 s.
    pub grace: Duration,
    /// Number of header lines in a request: 64.
    pub headers: usize,
    /// Bytes of a request head, and of a connection's buffer, which each stalled connection can
    /// hold: 16 KiB. The minimum is 8 KiB.
    pub head_bytes: usize,
    /// Bytes of a request body: 1 MiB.
    pub body_bytes: usize,
    /// Bytes of bodies of verified callers in memory, without the first 16 KiB of each: 64 MiB.
    pub bodies_bytes: usize,
    /// The same for one address: 16 MiB.
    pub bodies_bytes_per_address: usize,
    /// The same for bodies whose caller is verified after the body: 16 MiB. An address that holds
    /// as much as is left gets no more, so that others always find room.
    pub unverified_bytes: usize,
    /// The same for one address: 4 MiB.
    pub unverified_bytes_per_address: usize,
    /// Answers to wrong credentials that are delayed at the same time: 64. Any further answer comes
    /// at once and its connection ends.
    pub delayed: usize,
    /// The same for one address: 8.
    pub delayed_per_address: usize,
    /// Number of open connections: 10,000. At this limit, one that waits for its client is given up
    /// for a new one.
    pub connections: usize,
    /// Number of open connections from one IPv4 address or one 64-bit IPv6 network, which a single
    /// host commonly has: 256. For a client behind a trusted proxy, the number of its requests in
    /// flight.
    pub connections_per_address: usize,
}

/// File descriptors reserved for everything else: the store, the audit, the monitor, operators, and
/// files that the service itself opens.
const RESERVE: u64 = 256;

impl Limits {
    /// Returns these limits with a number of connections that fits into a process that may have
    /// `open_files` files open.
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
            delayed: 64,
            delayed_per_address: 8,
            connections: 10_000,
            connections_per_address: 256,
        }
    }
}
