//! Reading tasks: `spec/tools/tasks.toml`.

use crate::phones::contract::{DeviceId, Evidence, GetTaskArgs, GetTaskError, Refund, Task, TaskStatus, TasksTools};
use crate::phones::contract::{TaskId, UpstreamReport};
use crate::phones::devices::Phones;
use std::time::Duration;
use toolwarrant::runtime::tasks::{self, Told, Untold};
use toolwarrant::{Call, Reply, Untrusted};

/// What one refund gives back: a task is charged one unit, whatever it does.
const REFUNDED_UNITS: i64 = 1;

impl TasksTools for Phones {
    async fn get_task(&self, call: &Call<'_>, args: GetTaskArgs) -> Result<Reply<Task>, GetTaskError> {
        let GetTaskArgs { task_id, wait_seconds } = args;
        let wait = wait_seconds.map(|seconds| Duration::from_secs(seconds.get().unsigned_abs()));
        let broken = |why: &str| {
            tracing::error!(request_id = call.request_id, why, "a task could not be read");
            GetTaskError::Internal { what: "the task could not be read".into(), request_id: call.request_id.to_owned() }
        };
        match call.task(task_id.as_str(), wait).await {
            Ok(told) => shown(call, task_id, told).map(Reply::from).ok_or_else(|| broken("it fits no contract")),
            Err(Untold::NotFound) => {
                let what = "no such task for this application; tasks are kept for 7 days after their end";
                Err(GetTaskError::NotFound { what: what.into() })
            }
            Err(Untold::Broken(why)) => Err(broken(&why)),
        }
    }
}

/// `None` if the contract knows its state no more.
fn shown(call: &Call<'_>, task_id: TaskId, told: Told) -> Option<Task> {
    let Told { tool, target, status, created_at, deadline_at, finished_at, poll_after_seconds, evidence, refunded_at } =
        told;
    Some(Task {
        task_id,
        tool,
        device_id: DeviceId::new(&target).ok()?,
        status: *TaskStatus::ALL.iter().find(|known| known.as_str() == status)?,
        terminal: finished_at.is_some(),
        created_at,
        deadline_at,
        finished_at,
        poll_after_seconds: poll_after_seconds.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX)),
        evidence: match evidence {
            Some(evidence) => Some(evident(evidence)?),
            None => None,
        },
        refund: refunded_at.map(|refunded_at| Refund { units: REFUNDED_UNITS, refunded_at }),
        next_step: call.catalogue.states.iter().find(|state| state.name == status)?.next_step.to_owned(),
    })
}

fn evident(evidence: tasks::Evidence) -> Option<Evidence> {
    let tasks::Evidence { checked, expected, observed, reported, at } = evidence;
    Some(Evidence {
        checked,
        expected: Untrusted::clean(&expected),
        observed: Untrusted::clean(&observed),
        reported: *UpstreamReport::ALL.iter().find(|known| known.as_str() == reported)?,
        checked_at: at,
    })
}
