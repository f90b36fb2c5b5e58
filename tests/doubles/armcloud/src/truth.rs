//! The truth: the state of every pad and every task. Only operations that really took effect change
//! it; lists and readings are views of it.

mod fleet;
mod pad;

pub(crate) use pad::{Condition, Pad, Proxy, Seat};

use serde_json::{Value, json};
use std::collections::HashMap;

#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) pads: Vec<Pad>,
    pub(crate) tasks: HashMap<u64, Task>,
    /// Present and former codes, in capitals.
    codes: HashMap<String, Seat>,
    next_task: u64,
}

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) seat: Seat,
    /// At the time of the submission.
    pub(crate) code: String,
    /// 1 waiting, 2 running, 3 done, 9 queued, below 0 failed.
    pub(crate) status: i64,
    pub(crate) result: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) ended: Option<u64>,
}

impl Truth {
    /// Makes the same fleet each time, except for times. `now` is in milliseconds since the Unix
    /// epoch, as all times here.
    pub(crate) fn new(pads: usize, now: u64) -> Self {
        let pads: Vec<Pad> = (0..pads).map(|number| fleet::pad(Seat(number), now)).collect();
        let codes = pads.iter().map(|pad| (pad.code.clone(), pad.seat)).collect();
        Self { pads, tasks: HashMap::new(), codes, next_task: 4_800_000 }
    }

    /// Finds only a present code.
    pub(crate) fn find(&self, code: &str) -> Option<Seat> {
        self.ever(code).filter(|seat| self.pad(*seat).code == code)
    }

    /// Finds former codes, too.
    pub(crate) fn ever(&self, code: &str) -> Option<Seat> {
        self.codes.get(code).copied()
    }

    /// Relies on every `Seat` being the place of an existing pad.
    pub(crate) fn pad(&self, seat: Seat) -> &Pad {
        &self.pads[seat.0]
    }

    pub(crate) fn pad_mut(&mut self, seat: Seat) -> &mut Pad {
        &mut self.pads[seat.0]
    }

    pub(crate) fn enter(&mut self, seat: Seat) -> u64 {
        self.next_task += 1;
        let code = self.pad(seat).code.clone();
        let task = Task { seat, code, status: 1, result: None, error: None, ended: None };
        self.tasks.insert(self.next_task, task);
        self.next_task
    }

    /// Returns the old code and the new one.
    pub(crate) fn replace(&mut self, seat: Seat, now: u64) -> (String, String) {
        let generation = self.codes.len() + 1 - self.pads.len();
        let pad = self.pad_mut(seat);
        let prefix: String = pad.code.chars().take_while(char::is_ascii_alphabetic).collect();
        let new = format!("{prefix}42{generation:04}{:05}", seat.0);
        let old = std::mem::replace(&mut pad.code, new.clone());
        pad.start(now);
        pad.change(now, |condition| condition.proxy = None);
        self.codes.insert(new.clone(), seat);
        (old, new)
    }

    /// Returns the `boot_id` of the host, which other pads share.
    pub(crate) fn boot_id(&self, seat: Seat) -> String {
        let host = fleet::host(seat);
        fleet::uuid(&format!("boot 1 {host} 0"))
    }

    /// Puts the start time of the container into field 22, in hundredths of a second since the
    /// start of its host.
    pub(crate) fn stat(&self, seat: Seat) -> String {
        self.stat_of("1 (init second_stage)", seat, self.pad(seat).started)
    }

    /// Describes a process that starts now. A pad shows a tenth of its age: tests move the clock of
    /// a program by themselves, and on a busy machine it falls behind.
    pub(crate) fn own_stat(&self, seat: Seat, now: u64) -> String {
        let started = self.pad(seat).started;
        self.stat_of("4711 (cat)", seat, started + now.saturating_sub(started) / 10)
    }

    fn stat_of(&self, process: &str, seat: Seat, started: u64) -> String {
        let ticks = started.saturating_sub(fleet::host_start(seat, self.start_time())) / 10;
        format!(
            "{process} S 0 0 0 0 -1 4194560 9731 412690 113 1210 218 517 1093 823 20 0 1 0 {ticks} 11231232 \
             2381 18446744073709551615 1 1 0 0 0 0 0 0 65536 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    /// Shows that of the host.
    pub(crate) fn uptime(&self, seat: Seat, now: u64) -> String {
        let up = now.saturating_sub(fleet::host_start(seat, self.start_time()));
        format!("{}.{:02} {}.17\n", up / 1_000, up % 1_000 / 10, up / 1_000 * 7)
    }

    pub(crate) fn show(&self, seat: Seat) -> Value {
        let Pad { code, name, condition, .. } = self.pad(seat);
        let Condition { pad_status, online, cvm_status, proxy } = condition;
        json!({
            "pad_code": code, "name": name, "pad_status": pad_status, "online": online, "cvm_status": cvm_status,
            "proxy": proxy.as_ref().map(Proxy::show),
        })
    }

    fn start_time(&self) -> u64 {
        self.pads.first().map_or(0, |pad| pad.created)
    }
}
