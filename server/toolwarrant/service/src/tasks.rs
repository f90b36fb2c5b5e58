//! Tasks: an [`Executor`] sends writes and reads their effect on the target.
//!
//! The engine decides when to send and to read, and how the task ends. [`Executor::send`] and
//! [`Executor::probe`] are enough; the other methods let the engine verify more.

pub use toolwarrant_core::tasks::{
    Evidence, TASK_PAGE_MAX, TaskPage, TaskQuery, TaskReadError, TaskStatus, TaskView, UpstreamReport, WriteCommand,
};
pub use toolwarrant_tasks::engine::{OwnTasks, OwnWrite};
pub use toolwarrant_tasks::executor::{Executor, Parsed, Unreadable, Write};
pub use toolwarrant_tasks::leave::Leave;
pub use toolwarrant_tasks::machine::{Facts, Provability, Refusal, Sent};
pub use toolwarrant_tasks::task::{Reading, TaskId, Verdict};
