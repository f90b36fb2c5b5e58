//! The port to whatever carries writes out.

use super::machine::{Facts, Sent};
use super::task::{Reading, TaskId};
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::{Remark, Secret};

/// Carries writes out and reads their effect. [`Self::send`] and [`Self::probe`] are enough for an upstream that offers no more.
///
/// The engine gives each call its own deadline and survives a panic. An upstream's own words may go into a [`Remark`], which cleans them:
/// the operator reads all of them, clients those of a reading.
pub trait Executor: Send + Sync + 'static {
    /// Returns what holds of this write at present. Called whenever a decision rests on it, so it answers from memory: after the answer to
    /// a send was lost, before and after a baseline, when the upstream has answered, when a reading is judged. It may change from
    /// one call to the next. It tells what was shown, never what is hoped: a direction that is claimed and lies costs a refund, or
    /// shows as a success that is none. After a send without a baseline that the probe compares with (`write.baseline` is `None`), an
    /// absence is never believed. Default: an upstream that does nothing about lost answers, and a probe that shows both.
    fn facts(&self, _write: &Write) -> Facts {
        Facts::default()
    }

    /// Takes the probe's reading before the send, to compare with. Default: unreadable, so a write that needs it is never sent,
    /// unless its facts say that nothing can be shown.
    fn baseline<'a>(&'a self, _write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Err(Unreadable("this executor takes no reading before a send".into())) })
    }

    /// Sends the write once. Checks right before the first byte leaves that `not_after` has not passed. Repeats nothing and follows
    /// no redirect.
    fn send<'a>(&'a self, write: &'a Write, not_after: Timestamp) -> BoxFuture<'a, Sent>;

    /// Asks the upstream what became of a send: by its operation if it has one, else by the task's id. `None`: the upstream knows
    /// no such request. `NoAnswer`: the upstream knows it and will never know what became of it, so it is asked no more. Default:
    /// unreadable.
    fn look_up<'a>(&'a self, _write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(async { Err(Unreadable("this executor looks nothing up".into())) })
    }

    /// Reads the target and judges the effect. `Absent` needs positive evidence; anything uncertain is `Unreadable`.
    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading>;
}

/// A write to carry out.
#[derive(Clone, Debug)]
pub struct Write {
    /// The id of the task, and of the request towards the upstream.
    pub id: TaskId,
    /// The tool that was called.
    pub tool: String,
    /// The id of the target.
    pub target: String,
    /// The typed arguments as canonical JSON, secrets included.
    pub arguments: Secret<String>,
    /// The probe that verifies it, by its name in the contract.
    pub probe: Option<String>,
    /// The probe's reading before the send.
    pub baseline: Option<String>,
    /// The upstream's name of the operation.
    pub operation: Option<String>,
}

/// A reading failed. The text is for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unreadable: {}", .0.as_str())]
pub struct Unreadable(pub Remark);
