//! The truth: the state of every pad and every task, and the changes of codes. Only operations that
//! really took effect change it; lists and readings are views of it. It does not depend on
//! requests, on switches, or on the passing of time.

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
    /// Present and former codes, in capitals as the platform writes them.
    codes: HashMap<String, Seat>,
    next_task: u64,
}

/// A task as `padTaskDetail` shows it. Its progress is up to `tasks.rs`.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) seat: Seat,
    /// The pad's code at the time of the submission.
    pub(crate) code: String,
    /// 1 waiting, 2 running, 3 done, 9 queued, below 0 failed.
    pub(crate) status: i64,
    pub(crate) result: Option<String>,
    pub(crate) error: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub(crate) ended: Option<u64>,
}

/// A change of a pad's code.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) old: String,
    pub(crate) new: String,
    /// Milliseconds since the Unix epoch.
    pub(crate) at: u64,
}

impl Truth {
    /// Makes a fleet of this many pads. The same seed gives the same fleet, except for times, which
    /// are `now` in milliseconds since the Unix epoch.
    pub(crate) fn new(pads: usize, seed: u64, now: u64) -> Self {
        let pads: Vec<Pad> = (0..pads).map(|number| fleet::pad(Seat(number), seed, now)).collect();
        let codes = pads.iter().map(|pad| (pad.code.clone(), pad.seat)).collect();
        let first = 4_800_000 + seed % 10_000;
        Self { pads, tasks: HashMap::new(), changes: Vec::new(), seed, codes, next_task: first }
    }

    /// Finds the pad that has this code now.
    pub(crate) fn find(&self, code: &str) -> Option<Seat> {
        self.ever(code).filter(|seat| self.pad(*seat).code == code)
    }

    /// Finds the pad that has or had this code.
    pub(crate) fn ever(&self, code: &str) -> Option<Seat> {
        self.codes.get(code).copied()
    }

    /// Returns the pad of a seat. Every `Seat` is the place of an existing pad.
    pub(crate) fn pad(&self, seat: Seat) -> &Pad {
        &self.pads[seat.0]
    }

    pub(crate) fn pad_mut(&mut self, seat: Seat) -> &mut Pad {
        &mut self.pads[seat.0]
    }

    /// Enters a waiting task. Returns its id; ids increase.
    pub(crate) fn enter(&mut self, seat: Seat) -> u64 {
        self.next_task += 1;
        let code = self.pad(seat).code.clone();
        let task = Task { seat, code, status: 1, result: None, error: None, ended: None };
        self.tasks.insert(self.next_task, task);
        self.next_task
    }

    /// Puts another pad in a seat: it has a new code, and neither proxy nor sessions. Returns the
    /// old code and the new one.
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

    /// Returns the `boot_id` of a pad's host, which other pads share.
    pub(crate) fn boot_id(&self, seat: Seat) -> String {
        let host = fleet::host(seat);
        fleet::uuid(&format!("boot {} {host} 0", self.seed))
    }

    /// Returns `/proc/1/stat` of a pad. Field 22 is the start time of its container, in hundredths
    /// of a second since the start of its host.
    pub(crate) fn stat(&self, seat: Seat) -> String {
        self.stat_of("1 (init second_stage)", seat, self.pad(seat).started)
    }

    /// Returns `/proc/self/stat` of a process on a pad that starts now. A pad shows a tenth of its
    /// age: tests move the clock of a program by themselves, and on a busy machine it falls behind.
    pub(crate) fn own_stat(&self, seat: Seat, now: u64) -> String {
        let started = self.pad(seat).started;
        self.stat_of("4711 (cat)", seat, started + now.saturating_sub(started) / 10)
    }

    fn stat_of(&self, process: &str, seat: Seat, started: u64) -> String {
        let ticks = started.saturating_sub(fleet::host_start(seat, self.seed, self.start_time())) / 10;
        format!(
            "{process} S 0 0 0 0 -1 4194560 9731 412690 113 1210 218 517 1093 823 20 0 1 0 {ticks} 11231232 \
             2381 18446744073709551615 1 1 0 0 0 0 0 0 65536 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    /// Returns `/proc/uptime` of a pad, which is that of its host.
    pub(crate) fn uptime(&self, seat: Seat, now: u64) -> String {
        let up = now.saturating_sub(fleet::host_start(seat, self.seed, self.start_time()));
        format!("{}.{:02} {}.17\n", up / 1_000, up % 1_000 / 10, up / 1_000 * 7)
    }

    /// Shows the real state of a pad with its seat and its address, for people and for audits.
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

    /// Returns the time from which hosts and the first containers count.
    fn start_time(&self) -> u64 {
        self.pads.first().map_or(0, |pad| pad.created)
    }
}
