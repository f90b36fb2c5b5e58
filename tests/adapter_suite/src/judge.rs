//! What no platform may lead to, whatever goes wrong on it.

use crate::case::{Mishap, Operation, PhoneDeed};
use serde_json::Value;
use std::fmt;

/// One case, and what came of it.
#[derive(Clone, Debug)]
pub struct CaseEnd {
    /// What was asked for.
    pub operation: Operation,
    /// What went wrong.
    pub fault: Mishap,
    /// The status of its task, or the code of its refusal; of a session, `issued`.
    pub end: String,
    /// How often it was really done.
    pub done: usize,
    /// What must not be, in words.
    pub violations: Vec<String>,
}

/// Compares what a client was told with what was done.
pub(crate) fn judge(operation: Operation, fault: Mishap, told: Result<Value, Value>, deeds: &[PhoneDeed]) -> CaseEnd {
    let done = deeds.iter().filter(|deed| operation.is(deed)).count();
    let text = |value: &Value| value.as_str().unwrap_or("no text").to_owned();
    let (end, task) = match told {
        Ok(session) if operation == Operation::Session => {
            let issued = session["token"].is_string();
            (if issued { "issued" } else { "no session" }.to_owned(), None)
        }
        Ok(task) => (text(&task["status"]), Some(task)),
        Err(failure) => (text(&failure["code"]), None),
    };
    let reported = task.as_ref().map(|task| text(&task["evidence"]["reported"])).unwrap_or_default();
    let refunded = task.as_ref().is_some_and(|task| !task["refund"].is_null());
    // A restart in vain is one too many; what can be repeated is repeated at most twice.
    let most = if matches!(operation, Operation::Restart) { 1 } else { 3 };
    // Requests of such a phone do not follow its proxy: that the proxy was set is no effect.
    let effective = done > 0 && fault != Mishap::IgnoresProxy;
    let never_said = matches!(
        fault,
        Mishap::Refuses
            | Mishap::LosesCommand
            | Mishap::LosesAnswer
            | Mishap::CutsAnswer
            | Mishap::Fails
            | Mishap::FailsButActs
            | Mishap::Unsure
            | Mishap::NeverEnds
    );
    let rules = [
        (reported == "success" && never_said, "a success that the platform never reported".to_owned()),
        (done > most, format!("it was done {done} times")),
        (deeds.len() != done, format!("something else was done: {deeds:?}")),
        (refunded != (end == "failed_silent"), "a refund is of failed_silent alone".to_owned()),
        (refunded && effective, "what happened was refunded".to_owned()),
        (task.is_none() && done > 0, "it was refused, and done".to_owned()),
        (end == "success" && done == 0 && !is_so_already(operation), "a success of nothing".to_owned()),
        (end == "success_unverified" && reported != "success", format!("unverified, and reported as {reported}")),
        (end == "failed" && reported == "success", "a failure that was reported as a success".to_owned()),
        (end == "failed" && done > 0 && reported != "failure", "a failure that was done".to_owned()),
    ];
    let violations = rules.into_iter().filter(|(broken, _)| *broken).map(|(_, what)| what).collect();
    CaseEnd { operation, fault, end, done, violations }
}

/// Whether a running phone is in the wanted state before.
fn is_so_already(operation: Operation) -> bool {
    operation == Operation::Boot
}

impl fmt::Display for CaseEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, fault, end, done, violations } = self;
        // A phone that was so before is a success without the act. A late act may come after an end that rests on no reading.
        let is_late = *fault == Mishap::ActsLate && end == "success_unverified";
        let done = match (is_so_already(*operation), is_late) {
            (true, _) => "done or so".to_owned(),
            (_, true) => "done, or later".to_owned(),
            _ => format!("done {done}"),
        };
        let (operation, fault) = (format!("{operation:?}"), format!("{fault:?}"));
        write!(f, "{operation:14} {fault:14} {end:20} {done}")?;
        violations.iter().try_for_each(|violation| write!(f, "  !! {violation}"))
    }
}
