//! The numbers of tasks and refunds.

use super::{ApplicationName, Counts};
use serde::Serialize;
use toolwarrant_base::clock::Timestamp;

/// The numbers of tasks by status.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskCounts {
    pub tasks: Counts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub every: Vec<TaskPeriod>,
}

/// The numbers of tasks that were accepted in a period.
#[derive(Clone, Debug, Serialize)]
pub struct TaskPeriod {
    pub since: Timestamp,
    pub tasks: Counts,
}

/// The refunds of an application on a day.
#[derive(Clone, Debug, Serialize)]
pub struct RefundSum {
    pub day: String,
    pub application: ApplicationName,
    pub units: u32,
}
