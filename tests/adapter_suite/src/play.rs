//! One case: the call, the wait for its end, and the comparison.

use crate::case::{Mishap, Operation};
use crate::judge::{CaseEnd, judge};
use crate::rig::Rig;
use serde_json::json;

/// Returns `None` if the platform cannot have this fault.
pub(crate) async fn carry_out(rig: &Rig, operation: Operation, fault: Mishap) -> Option<CaseEnd> {
    let device = rig.double.stage(operation, fault).await?;
    let before = rig.double.deeds(&device).await.len();
    let (tool, arguments) = operation.call(&device);
    let mut told = rig.call(tool, arguments).await;
    if let Ok(task) = &told
        && operation != Operation::Session
    {
        let id = task["task_id"].clone();
        while let Ok(task) = &told
            && task["terminal"] != true
        {
            // The server holds the answer until the task ends, on the clock that `pass` moves.
            told = rig.call("get_task", json!({"task_id": id, "wait_seconds": 50})).await;
        }
    }
    let deeds = rig.double.deeds(&device).await.split_off(before);
    let lacks = rig.double.lacks(operation);
    Some(judge((operation, lacks), fault, told, &deeds))
}
