//! The source addresses of requests, as pure functions.
//!
//! Linux lets a socket bind to any address of 127.0.0.0/8, so each pad and proxy has its own
//! address without configuration, and no request leaves the machine.

use sha2::{Digest as _, Sha256};
use std::net::Ipv4Addr;

/// Returns `127.1.x.y`, counted upwards by a pad's number in the order of the fleet, from 0. A pad
/// keeps its address when its code changes.
pub(crate) fn of_pad(number: usize) -> Ipv4Addr {
    let [.., high, low] = (number % 65_535 + 1).to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

/// Returns `127.(200 + a mod 50).b.c`, where `a`, `b` and `c` are the first three bytes of SHA-256
/// of `host:port`.
pub(crate) fn of_proxy(host: &str, port: u16) -> Ipv4Addr {
    of_text(&format!("{host}:{port}"))
}

/// Counts requests by `n` from 0, over all pads and all rotating proxies.
pub(crate) fn of_rotating_proxy(host: &str, port: u16, n: u64) -> Ipv4Addr {
    of_text(&format!("{host}:{port}#{n}"))
}

fn of_text(text: &str) -> Ipv4Addr {
    let digest = Sha256::digest(text.as_bytes());
    Ipv4Addr::new(127, 200 + digest[0] % 50, digest[1], digest[2])
}
