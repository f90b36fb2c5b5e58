//! What the platform says of a task that it has taken: `padTaskDetail`, and how its numbers are read.

use super::api::{Api, ApiCall, ApiError, Int, Rows};
use crate::adapter_kit::guard::Class;
use serde::Deserialize;
use serde_json::{Value, json};
use toolwarrant::{Remark, Sent};

/// One row of `padTaskDetail`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    task_id: Int,
    #[serde(default)]
    task_status: Option<Int>,
    #[serde(default)]
    task_result: Value,
    #[serde(default)]
    error_msg: Value,
}

/// What has become of a task.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits, runs, or is not known yet: a fresh one may be absent for a moment.
    Open,
    /// The platform has done what it was told, which is no effect on the phone yet; with the output of a command.
    Done(String),
    /// The platform says that it failed, or was cancelled.
    Failed(Remark),
    /// The platform does not know how it went.
    Unknown(Remark),
}

/// Asks what has become of a task.
///
/// # Errors
/// No usable answer came.
pub(super) async fn progress(api: &Api, task_id: i64) -> Result<Progress, ApiError> {
    let asked = json!({"taskIds": [task_id]});
    let rows: Rows<Row> = api.read(Class::Read, ApiCall::TaskDetail, &asked).await?;
    Ok(rows.rows.into_iter().find(|row| row.task_id == Int(task_id)).map_or(Progress::Open, Row::progress))
}

impl Row {
    /// 1 waiting, 2 running, 3 done, 9 queued, -1 all failed, -2 part failed, -3 cancelled, -4 timed out, -5 abnormal. Of one pad, "part
    /// failed" says nothing, and neither does a number that is not known.
    fn progress(self) -> Progress {
        let Self { task_id: _, task_status, task_result, error_msg } = self;
        let text = |value: Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let (result, error) = (text(task_result), text(error_msg));
        match task_status {
            Some(Int(3)) => Progress::Done(result.or(error).unwrap_or_default()),
            Some(Int(-1 | -3)) => Progress::Failed(error.or(result).unwrap_or_default().into()),
            Some(Int(status)) if status < 0 => Progress::Unknown(format!("the task ended with status {status}").into()),
            _ => Progress::Open,
        }
    }
}

impl Progress {
    /// The same as the engine has it.
    pub(super) fn sent(self, task_id: i64) -> Sent {
        match self {
            Self::Open => Sent::Pending(task_id.to_string()),
            Self::Done(_) => Sent::Ok,
            Self::Failed(why) => Sent::Err(why),
            Self::Unknown(what) => Sent::NoAnswer(what),
        }
    }
}
