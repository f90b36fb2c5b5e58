//! The creation of a fleet's pads from their numbers.

use super::pad::{Condition, Pad, Seat};
use crate::scene::Scene;
use crate::sign::hex;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// These pads share a host, and so its `boot_id`.
const PER_HOST: usize = 8;
const MODELS: [&str; 4] = ["SM-S9180", "Pixel 8", "22081212C", "V2304A"];
const VERSIONS: [&str; 3] = ["13", "14", "15"];
const DAY: u64 = 86_400_000;

/// Gives the sixth of every eight pads a code with `ACP`.
pub(super) fn pad(seat: Seat, now: u64) -> Pad {
    let prefix = if seat.0 % 8 == 5 { "ACP" } else { "AC" };
    let pick = mix(&format!("pad 1 {}", seat.0));
    let of = |names: &[&'static str], byte: usize| names[usize::from(pick[byte]) % names.len()];
    Pad {
        code: format!("{prefix}320100{:05}", seat.0),
        seat,
        name: format!("phone {}", seat.0 + 1),
        android: of(&VERSIONS, 0),
        model: of(&MODELS, 1),
        created: now,
        condition: Condition { pad_status: 10, online: true, cvm_status: 100, proxy: None },
        is_shown_up: false,
        is_connected: false,
        started: now - 3_600_000 - u64::from(pick[2]) * 1_000,
        restarts: 0,
        leads_to: None,
        screen_acts: BTreeMap::new(),
        scene: Scene::default(),
        before: Vec::new(),
    }
}

pub(super) fn host(seat: Seat) -> usize {
    seat.0 / PER_HOST
}

pub(super) fn host_start(seat: Seat, created: u64) -> u64 {
    let days = u64::from(mix(&format!("host 1 {}", host(seat)))[0] % 60) + 3;
    created - days * DAY
}

pub(super) fn uuid(text: &str) -> String {
    let digits = hex(&mix(text)[..16]);
    format!("{}-{}-4{}-a{}-{}", &digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..])
}

fn mix(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}
