//! The truth: every pad as it is, every task as it stands, and what changed of codes. Only operations that were really carried out
//! change it; lists and readings are views of it. It knows nothing of requests, of switches, or of time passing by itself.

mod fleet;
mod pad;

pub(crate) use pad::{Condition, Kind, Pad, Proxy, Seat};

use serde_json::{Value, json};
use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) pads: Vec<Pad>,
    pub(crate) tasks: HashMap<u64, Task>,
    pub(crate) changes: Vec<Change>,
    seed: u64,
    /// Codes of today and of before, in capitals as the platform writes them.
    codes: HashMap<String, Seat>,
    next_task: u64,
    /// How often each host has started anew.
    hosts: HashMap<usize, u32>,
}

/// A task as `padTaskDetail` shows it. How it goes on is for whoever runs it.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) seat: Seat,
    /// The pad's code at the time of the submission.
    pub(crate) code: String,
    pub(crate) what: &'static str,
    /// 1 waiting, 2 running, 3 done, 9 queued, below 0 failed.
    pub(crate) status: i64,
    pub(crate) result: Option<String>,
    pub(crate) error: Option<String>,
    /// Milliseconds of the Unix epoch.
    pub(crate) ended: Option<u64>,
    /// How many polls find nothing at first.
    pub(crate) absent: u64,
}

/// A pad got another code.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) old: String,
    pub(crate) new: String,
    /// Milliseconds of the Unix epoch.
    pub(crate) at: u64,
}

impl Truth {
    /// A fleet of this many pads, the same for the same seed but for the times, which are `now` in milliseconds of the Unix epoch.
    pub(crate) fn new(pads: usize, seed: u64, now: u64) -> Self {
        let pads: Vec<Pad> = (0..pads).map(|number| fleet::pad(Seat(number), seed, now)).collect();
        let codes = pads.iter().map(|pad| (pad.code.clone(), pad.seat)).collect();
        let first = 4_800_000 + seed % 10_000;
        Self { pads, tasks: HashMap::new(), changes: Vec::new(), seed, codes, next_task: first, hosts: HashMap::new() }
    }

    /// The pad whose code this is today.
    pub(crate) fn find(&self, code: &str) -> Option<Seat> {
        self.ever(code).filter(|seat| self.pad(*seat).code == code)
    }

    /// The pad whose code this is, or was once.
    pub(crate) fn ever(&self, code: &str) -> Option<Seat> {
        self.codes.get(code).copied()
    }

    /// A seat is only made of a pad's place, so there is one.
    pub(crate) fn pad(&self, seat: Seat) -> &Pad {
        &self.pads[seat.0]
    }

    pub(crate) fn pad_mut(&mut self, seat: Seat) -> &mut Pad {
        &mut self.pads[seat.0]
    }

    /// Enters a task that waits. Ids rise.
    pub(crate) fn enter(&mut self, seat: Seat, what: &'static str, absent: u64) -> u64 {
        self.next_task += 1;
        let code = self.pad(seat).code.clone();
        let task = Task { seat, code, what, status: 1, result: None, error: None, ended: None, absent };
        self.tasks.insert(self.next_task, task);
        self.next_task
    }

    /// The seat gets another pad: a new code, without proxy and sessions. Answers with the old code and the new one.
    pub(crate) fn replace(&mut self, seat: Seat, now: u64) -> (String, String) {
        let generation = self.changes.len() + 1;
        let pad = self.pad_mut(seat);
        let prefix: String = pad.code.chars().take_while(char::is_ascii_alphabetic).collect();
        let new = format!("{prefix}42{generation:04}{:05}", seat.0);
        let old = std::mem::replace(&mut pad.code, new.clone());
        pad.start(now);
        pad.sessions.clear();
        pad.change(now, |condition| condition.proxy = None);
        self.codes.insert(new.clone(), seat);
        self.changes.push(Change { old: old.clone(), new: new.clone(), at: now });
        (old, new)
    }

    /// The host of a pad starts anew: all of its pads show another `boot_id`.
    pub(crate) fn restart_host(&mut self, seat: Seat) {
        *self.hosts.entry(fleet::host(seat)).or_default() += 1;
    }

    /// The `boot_id` of a pad's host, which other pads share.
    pub(crate) fn boot_id(&self, seat: Seat) -> String {
        let host = fleet::host(seat);
        fleet::uuid(&format!("boot {} {host} {}", self.seed, self.hosts.get(&host).copied().unwrap_or_default()))
    }

    /// `/proc/1/stat` of a pad: field 22 is when its container started, in hundredths of a second since its host did.
    pub(crate) fn stat(&self, seat: Seat) -> String {
        let ticks = (self.pad(seat).started.saturating_sub(fleet::host_start(seat, self.seed, self.started()))) / 10;
        format!(
            "1 (init second_stage) S 0 0 0 0 -1 4194560 9731 412690 113 1210 218 517 1093 823 20 0 1 0 {ticks} 11231232 \
             2381 18446744073709551615 1 1 0 0 0 0 0 0 65536 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    /// `/proc/uptime` of a pad, which is its host's.
    pub(crate) fn uptime(&self, seat: Seat, now: u64) -> String {
        let up = now.saturating_sub(fleet::host_start(seat, self.seed, self.started()));
        format!("{}.{:02} {}.17\n", up / 1_000, up % 1_000 / 10, up / 1_000 * 7)
    }

    /// For people and for audits: pads as they are, with their seat and their address.
    pub(crate) fn show(&self, seat: Seat) -> Value {
        let Pad { code, seat: _, kind, name, android, model: _, condition, started, restarts, sessions, .. } =
            self.pad(seat);
        let Condition { pad_status, online, cvm_status, proxy } = condition;
        let kind = match kind {
            Kind::Ordinary => "ordinary",
            Kind::Timing => "timing",
            Kind::NetStorage => "net_storage",
        };
        json!({
            "pad_code": code, "number": seat.0, "equipment_id": seat.equipment(), "kind": kind, "name": name,
            "android": android, "address": crate::addresses::of_pad(seat.0), "pad_status": pad_status,
            "online": online, "cvm_status": cvm_status, "started": started, "restarts": restarts,
            "boot_id": self.boot_id(seat), "sessions": sessions.len(),
            "proxy": proxy.as_ref().map(Proxy::show),
        })
    }

    /// The time that hosts and the first containers count from.
    fn started(&self) -> u64 {
        self.pads.first().map_or(0, |pad| pad.created)
    }
}
