//! The reason why a task ended as it did: one sentence for each row of the decision tables.

use super::Entry;
use crate::task::{Readings, Task, TaskStatus, UpstreamAnswer};

#[must_use]
pub fn explain_end(task: &Task) -> Option<String> {
    let status = task.status()?;
    let Task { policy, attempts, left, outcome, unanswered, settled, reading, obstacle, .. } = task;
    let Readings { absent, unreadable, not_absent } = *settled;
    let answer = outcome.map(|(answer, _)| answer);
    let probe = policy.probe.as_ref();
    let cannot = || match (obstacle, probe) {
        (Some(why), _) => why.clone(),
        (None, None) => "this operation has no check".to_owned(),
        (None, Some(probe)) => format!("the check `{}` could not decide", probe.name),
    };
    let refused = match answer {
        Some(UpstreamAnswer::Refused(code)) => format!("the platform refused the request with {code}"),
        Some(UpstreamAnswer::Busy(code)) => format!("the platform was busy and refused the request with {code}"),
        _ => "the platform reported a failure".to_owned(),
    };
    Some(match status {
        TaskStatus::Dispatched => return None,
        TaskStatus::Success => "a reading of the target showed the effect".to_owned(),
        TaskStatus::SuccessUnverified if not_absent >= 2 => format!(
            "the platform reported success, and {not_absent} readings showed no absence of the effect; on this target, no reading can \
             prove more"
        ),
        TaskStatus::SuccessUnverified => {
            format!("the platform reported success, and nothing could verify it: {}", cannot())
        }
        TaskStatus::FailedSilent => format!(
            "the platform reported success, and {absent} readings after the settling time showed that the effect is absent; the charge is \
             refunded"
        ),
        TaskStatus::Failed if *left && Entry::ReverseCharge.is_due(task) => {
            format!("{refused}, and a reading showed that nothing was done, so the charge is reversed")
        }
        TaskStatus::Failed if *left && reading.is_some() => {
            format!("{refused}, and no reading showed the effect")
        }
        TaskStatus::Failed if *left => format!("{refused}, and no reading could contradict it: {}", cannot()),
        TaskStatus::Failed if *attempts == 0 => match obstacle {
            Some(why) => format!("nothing was sent: {why}"),
            None if probe.is_some_and(|probe| probe.baseline) => {
                "nothing was sent, because the target could not be read before the send until it was too late"
                    .to_owned()
            }
            None => "nothing was sent before it was too late".to_owned(),
        },
        TaskStatus::Failed => {
            let why = if answer.is_some() {
                refused
            } else {
                obstacle.clone().unwrap_or_else(|| "no request left".to_owned())
            };
            format!("each of {attempts} sends is known to have done nothing ({why}), so the charge is reversed")
        }
        TaskStatus::Timeout if task.finished_at < Some(task.deadline_at) => {
            "a restore ended the task while it was in flight, so its outcome is unknown".to_owned()
        }
        TaskStatus::Timeout => {
            let known = match answer {
                Some(UpstreamAnswer::Ok) => "the platform reported success",
                Some(answer) if answer.is_failure() && *unanswered => {
                    "the platform reported a failure, but an earlier send was not answered and may still take effect"
                }
                Some(UpstreamAnswer::Err | UpstreamAnswer::Refused(_) | UpstreamAnswer::Busy(_)) => {
                    "the platform reported a failure"
                }
                Some(UpstreamAnswer::Unsure) => "the platform does not know the outcome",
                Some(UpstreamAnswer::None) | None => "the platform did not answer in a way that could be understood",
            };
            let read = match (absent, unreadable, not_absent) {
                _ if probe.is_none() => ", and this operation has no check".to_owned(),
                (0, 0, 0) => format!(", and no reading decided: {}", cannot()),
                (absent, unreadable, not_absent) => {
                    let undecided = unreadable.saturating_add(not_absent);
                    format!(", and the readings did not decide: {absent} showed an absence, {undecided} could not tell")
                }
            };
            format!("the deadline passed while the outcome was unknown: {known}{read}")
        }
    })
}
