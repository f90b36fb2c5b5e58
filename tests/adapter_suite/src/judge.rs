//! The rules that hold for every platform, whatever fault it has.

use crate::case::{Mishap, Operation, PhoneDeed};
use serde_json::Value;
use std::fmt;

#[derive(Clone, Debug)]
pub struct CaseEnd {
    pub operation: Operation,
    pub fault: Mishap,
    /// A status, the code of a refusal, or `issued` for a session.
    pub end: String,
    /// Acts that really happened.
    pub done: usize,
    pub violations: Vec<String>,
}

pub(crate) fn judge(
    (operation, lacks): (Operation, bool),
    fault: Mishap,
    told: Result<Value, Value>,
    deeds: &[PhoneDeed],
) -> CaseEnd {
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
    // A restart must not happen twice. An operation that may be repeated is repeated at most twice.
    let most = if matches!(operation, Operation::Restart) { 1 } else { 3 };
    let effective = done > 0 && fault != Mishap::IgnoresProxy;
    let never_said = matches!(
        fault,
        Mishap::Refuses
            | Mishap::ActsAndRefuses
            | Mishap::SaysNothing
            | Mishap::LosesCommand
            | Mishap::LosesAnswer
            | Mishap::CutsAnswer
            | Mishap::Fails
            | Mishap::FailsButActs
            | Mishap::Unsure
            | Mishap::GivesUp
            | Mishap::NeverEnds
    );
    let is_lost = matches!(fault, Mishap::SaysNothing | Mishap::LosesAnswer | Mishap::CutsAnswer);
    let is_refused = end == "not_supported";
    let rules = [
        (fault == Mishap::None && is_refused != lacks, format!("`{end}`, and a platform that lacks it: {lacks}")),
        (reported == "success" && never_said, "a success that the platform never reported".to_owned()),
        (reported == "failure" && is_lost, "a failure that the platform never reported".to_owned()),
        (done > most, format!("it was done {done} times")),
        (deeds.len() != done, format!("something else was done: {deeds:?}")),
        (refunded != (end == "failed_silent"), "exactly failed_silent is refunded".to_owned()),
        (refunded && effective, "an effect that happened was refunded".to_owned()),
        (reported == "not_sent" && done > 0, "it was done, and says that nothing was sent".to_owned()),
        (task.is_none() && done > 0, "it was refused, but done".to_owned()),
        (end == "success" && done == 0 && !is_so_already(operation, fault), "a success without an effect".to_owned()),
        (end == "success_unverified" && reported != "success", format!("unverified, and reported as {reported}")),
        (end == "failed" && reported == "success", "a failure that was reported as a success".to_owned()),
        (
            end == "failed" && done > 0 && !["failure", "busy"].contains(&&*reported),
            "a failure with an effect".to_owned(),
        ),
    ];
    let violations = rules.into_iter().filter(|(broken, _)| *broken).map(|(_, what)| what).collect();
    CaseEnd { operation, fault, end, done, violations }
}

fn is_so_already(operation: Operation, fault: Mishap) -> bool {
    operation == Operation::Boot && fault != Mishap::ShowsOnly
}

impl fmt::Display for CaseEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, fault, end, done, violations } = self;
        // A phone that was in the wanted state before is a success without the act. An act can come
        // after an end that rests on no reading.
        let is_unread = matches!(operation, Operation::ClearProxy | Operation::Shutdown);
        let is_late = match fault {
            Mishap::ActsLate => end == "success_unverified",
            Mishap::ActsAndRefuses => is_unread,
            _ => *operation == Operation::Shutdown && end == "success_unverified",
        };
        let done = match (is_so_already(*operation, *fault), is_late) {
            (true, _) => "done or so".to_owned(),
            (_, true) => "done, or later".to_owned(),
            _ => format!("done {done}"),
        };
        let (operation, fault) = (format!("{operation:?}"), format!("{fault:?}"));
        write!(f, "{operation:14} {fault:14} {end:20} {done}")?;
        violations.iter().try_for_each(|violation| write!(f, "  !! {violation}"))
    }
}
