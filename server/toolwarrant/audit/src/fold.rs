//! Aggregates refused calls and commands, so that a client or an operator who is always refused
//! cannot fill the disk. Start at [`RefusalAggregator`].
//!
//! Each minute, the first refusals of an application or operator get a line each. Further ones are
//! counted by key, tool and outcome, with one line for each count.

use super::line::{Line, LineEncoder};
use std::collections::HashMap;
use std::net::IpAddr;
use toolwarrant_base::clock::Timestamp;

const LINES_A_MINUTE: u32 = 60;

const MINUTE_MILLIS: u64 = 60_000;

#[derive(Debug, Default)]
pub(super) struct RefusalAggregator {
    minute: u64,
    written: HashMap<String, u32>,
    kinds: HashMap<Kind, Folded>,
    over: Vec<(Kind, Folded)>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Kind {
    Call { application: String, key_id: String, tool: String, outcome: String },
    Command { operator: String, command: String },
}

#[derive(Debug)]
struct Folded {
    calls: u64,
    time: Timestamp,
    latest: String,
    from: Option<IpAddr>,
}

impl RefusalAggregator {
    pub(super) fn take(&mut self, line: &Line<'_>, now: Timestamp) -> bool {
        let Line {
            time,
            request_id,
            application,
            key_id,
            tool,
            target: _,
            arguments: _,
            outcome,
            task_id: _,
            from,
            calls,
        } = *line;
        let kind = || {
            let [application, key_id, tool, outcome] = [application, key_id, tool, outcome].map(str::to_owned);
            Kind::Call { application, key_id, tool, outcome }
        };
        self.count(application, kind, (calls, time, request_id, from), now)
    }

    pub(super) fn take_command(&mut self, operator: &str, command: &str, (time, json): (Timestamp, &str)) -> bool {
        let kind = || Kind::Command { operator: operator.to_owned(), command: command.to_owned() };
        self.count(operator, kind, (1, time, json, None), time)
    }

    fn count(
        &mut self,
        who: &str,
        kind: impl FnOnce() -> Kind,
        (calls, time, latest, from): (u64, Timestamp, &str, Option<IpAddr>),
        now: Timestamp,
    ) -> bool {
        self.turn(now);
        let written = match self.written.get_mut(who) {
            Some(written) => written,
            None => self.written.entry(who.to_owned()).or_default(),
        };
        if *written < LINES_A_MINUTE {
            *written += 1;
            return false;
        }
        let folded = self.kinds.entry(kind()).or_insert_with(|| Folded { calls: 0, time, latest: String::new(), from });
        folded.calls += calls;
        folded.time = time;
        folded.from = folded.from.filter(|known| Some(*known) == from);
        latest.clone_into(&mut folded.latest);
        true
    }

    pub(super) fn write(&mut self, now: Timestamp, last: bool, mut write: impl FnMut(Timestamp, &[u8])) {
        self.turn(if last { Timestamp(u64::MAX) } else { now });
        for (kind, Folded { calls, time, latest, from }) in self.over.drain(..) {
            let mut text = Vec::new();
            match &kind {
                Kind::Call { application, key_id, tool, outcome } => LineEncoder::default().write(
                    &Line {
                        time,
                        request_id: &latest,
                        application,
                        key_id,
                        tool,
                        target: None,
                        arguments: None,
                        outcome,
                        task_id: None,
                        from,
                        calls,
                    },
                    &mut text,
                ),
                Kind::Command { .. } => {
                    let members = latest.strip_suffix('}').unwrap_or(&latest);
                    text = format!("{members},\"calls\":{calls}}}\n").into_bytes();
                }
            }
            write(time, &text);
        }
    }

    fn turn(&mut self, now: Timestamp) {
        let minute = now.0 / MINUTE_MILLIS;
        if minute != self.minute {
            self.minute = minute;
            self.written.clear();
            self.over.extend(self.kinds.drain());
            self.over.sort_by(|(_, one), (_, other)| (one.time, &one.latest).cmp(&(other.time, &other.latest)));
        }
    }
}
