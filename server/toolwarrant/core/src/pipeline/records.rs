//! The records of a call.

use crate::access::Caller;
use crate::catalogue::ToolDef;
use crate::counts::Requests;
use crate::failure::Failure;
use crate::handler::Call;
use std::time::Duration;
use toolwarrant_audit::{Line, Slot};
use toolwarrant_base::clock::{Clock, Timestamp};

pub(super) fn line<'a>(
    caller: &'a Caller,
    tool: &'a ToolDef,
    request_id: &'a str,
    time: Timestamp,
    failure: Option<&Failure>,
) -> Line<'a> {
    Line {
        time,
        request_id,
        application: &caller.application.id,
        key_id: &caller.key_id,
        tool: tool.name,
        target: None,
        arguments: None,
        outcome: outcome(failure),
        task_id: None,
        from: caller.from,
        calls: 1,
    }
}

pub(super) fn outcome(failure: Option<&Failure>) -> &'static str {
    failure.map_or("ok", |failure| failure.def().code)
}

/// The writer of the audit line, at its drop. If the client disconnects, the future is dropped, but
/// effects of the call remain.
pub(super) struct AuditGuard<'a> {
    pub(super) slot: Option<Slot<'a>>,
    pub(super) call: &'a Call<'a>,
    pub(super) outcome: &'static str,
}

impl Drop for AuditGuard<'_> {
    fn drop(&mut self) {
        let Call { caller, tool, request_id, around, .. } = *self.call;
        let (target, arguments, task_id) = self.call.notes();
        if let Some(slot) = self.slot.take() {
            let outcome = self.outcome;
            let line =
                Line { target, arguments, outcome, task_id, ..line(caller, tool, request_id, around.arrived.1, None) };
            if changed_nothing(self.call, outcome) { slot.refuse(&line) } else { slot.write(&line) }
        }
    }
}

pub(super) struct CallCounter<'a> {
    pub(super) counts: &'a Requests,
    pub(super) clock: &'a Clock,
    pub(super) tool: &'static ToolDef,
    /// By [`Clock::uptime`].
    pub(super) since: Duration,
    pub(super) outcome: &'static str,
}

impl Drop for CallCounter<'_> {
    fn drop(&mut self) {
        self.counts.count_call(self.tool, self.outcome, Some(self.clock.uptime().saturating_sub(self.since)));
    }
}

/// Returns true if a call was refused before it could change anything. Internal failures keep lines
/// of their own, because their request ids are needed to investigate.
fn changed_nothing(call: &Call<'_>, outcome: &str) -> bool {
    let roles = &call.catalogue.roles;
    if matches!(outcome, "ok" | "cancelled") || outcome == roles.internal.code || call.has_acted() {
        return false;
    }
    let refusals = [roles.invalid_argument, roles.not_found, roles.not_supported, roles.target_busy, roles.overloaded];
    call.tool.hints.read_only || refusals.iter().any(|refusal| refusal.code == outcome)
}
