//! The refusals that come before a call, with their audit lines.

use super::records::line;
use super::refusals::overload;
use super::{Admitted, Handlers, Pipeline, find, permit};
use crate::access::Caller;
use crate::catalogue::ToolDef;
use crate::failure::Failure;
use toolwarrant_audit::Line;
use toolwarrant_base::wording::Words;

impl<H: Handlers> Pipeline<H> {
    /// Refuses a call whose arguments a transport cannot read, with an audit line.
    pub fn reject(
        &self,
        Admitted(caller): &Admitted<'_>,
        tool: &'static ToolDef,
        request_id: &str,
        what: Words,
    ) -> Failure {
        let Some(slot) = self.audit.reserve() else { return overload(H::CATALOGUE, "the audit cannot keep up") };
        let failure = permit(H::CATALOGUE, caller, tool).err();
        let failure = failure.unwrap_or_else(|| Failure::new(H::CATALOGUE.roles.invalid_argument, what));
        slot.refuse(&line(caller, tool, request_id, self.clock.latest(), Some(&failure)));
        self.counts.count_call(tool, failure.def().code, None);
        failure.for_reader(caller.application.permissions)
    }

    /// Writes at most one audit line a second for each application, with the number of calls that
    /// it covers. So a refusal does not cost more than a call.
    pub fn record_refusal(&self, caller: &Caller, name: &str, request_id: &str, failure: &Failure) {
        let now = self.now();
        let Ok(tool) = find(H::CATALOGUE, caller, name) else { return };
        self.counts.count_call(tool, failure.def().code, None);
        let Some(calls) = caller.application.window.take_unlogged(now) else { return };
        if let Some(slot) = self.audit.reserve() {
            let time = self.clock.latest();
            slot.write(&Line { calls, ..line(caller, tool, request_id, time, Some(failure)) });
        }
    }
}
