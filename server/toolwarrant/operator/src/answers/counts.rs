//! The numbers of tasks and refunds.

use super::{ApplicationName, Counts};
use crate::view::answer_types;
use toolwarrant_base::clock::Timestamp;

answer_types! {
    /// The numbers of tasks by status.
    #[derive(Default)]
    pub struct TaskCounts {
        tasks: Counts,
        /// The statuses of which older tasks were not examined.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        more: Vec<&'static str> => any,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        every: Vec<TaskPeriod> => any,
    }

    /// The numbers of tasks that were accepted in a period.
    pub struct TaskPeriod {
        since: Timestamp,
        tasks: Counts,
    }

    /// The refunds of an application on a day.
    pub struct RefundSum {
        day: String,
        application: ApplicationName,
        units: u32,
    }
}
