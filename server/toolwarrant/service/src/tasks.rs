//! Tasks: an [`Executor`] sends writes and reads their effect on the target.
//!
//! The engine decides when to send and to read, and how the task ends. [`Executor::send`] and
//! [`Executor::probe`] are enough; the other methods let the engine verify more.
//!
//! ```
//! # mod contract {
//! #     toolwarrant::contract!("../../../tests/services/outside/spec");
//! # }
//! use contract::Command;
//! use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
//! use toolwarrant::BoxFuture;
//! use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Verdict, Write};
//!
//! /// The light of the only lamp, in percent.
//! struct Desk(AtomicI64);
//!
//! /// Returns the light that a write asks for.
//! fn ordered(write: &Write) -> Option<i64> {
//!     let Command::DimLamp(args) = Command::read(&write.tool, write.arguments.expose())?;
//!     Some(args.light.get())
//! }
//!
//! impl Executor for Desk {
//!     fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
//!         Box::pin(async move {
//!             let Some(light) = ordered(write) else {
//!                 return Sent::NotSent("this version does not know the write".into());
//!             };
//!             if let Err(why) = leave.confirm() {
//!                 return Sent::NotSent(why);
//!             }
//!             self.0.store(light, Relaxed);
//!             Sent::Ok
//!         })
//!     }
//!
//!     fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
//!         let (ordered, seen) = (ordered(write), self.0.load(Relaxed));
//!         let verdict = if ordered == Some(seen) { Verdict::Present } else { Verdict::Absent };
//!         let expected = format!("{} percent", ordered.unwrap_or_default()).into();
//!         let observed = format!("{seen} percent").into();
//!         Box::pin(async move { Reading { verdict, expected, observed } })
//!     }
//! }
//! # fn main() {}
//! ```

pub use toolwarrant_core::tasks::{
    Evidence, TASK_PAGE_MAX, TaskPage, TaskQuery, TaskReadError, TaskStatus, TaskView, UpstreamReport,
};
pub use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
pub use toolwarrant_tasks::leave::Leave;
pub use toolwarrant_tasks::machine::{Facts, Provability, Refusal, Sent};
pub use toolwarrant_tasks::task::{Reading, TaskId, Verdict};
