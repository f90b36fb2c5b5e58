//! All that the engine asks of whoever carries writes out.

use super::machine::{Facts, Sent};
use super::task::{Reading, TaskId};
use toolwarrant_core::BoxFuture;
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::text::Secret;

/// Carries writes out and reads what came of them. The engine gives each call a deadline of its own and survives a panic;
/// whatever an upstream says in its own words goes into the texts, which only an operator reads.
pub trait Executor: Send + Sync + 'static {
    /// What the upstream can do about this write if its answer is lost. Asked only then; by default, nothing.
    fn facts(&self, _write: &Write) -> Facts {
        Facts::default()
    }

    /// The probe's reading from before the send, to compare with. By default there is none, so a write whose probe compares is
    /// never sent.
    fn baseline<'a>(&'a self, _write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Err(Unreadable("this executor takes no reading before a send".to_owned())) })
    }

    /// Sends, unless `not_after` has passed: that is checked right before the first byte leaves. Follows no redirect and
    /// repeats nothing.
    fn send<'a>(&'a self, write: &'a Write, not_after: Timestamp) -> BoxFuture<'a, Sent>;

    /// What has become of a send, by its operation where there is one, else by the task's id; `None` if the upstream knows of
    /// no such request. By default it cannot be asked.
    fn look_up<'a>(&'a self, _write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(async { Err(Unreadable("this executor looks nothing up".to_owned())) })
    }

    /// Reads the target and judges. `Absent` needs positive evidence; what cannot be told is `Unreadable`.
    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading>;
}

/// A write that is being carried out.
#[derive(Clone, Debug)]
pub struct Write {
    /// The task: towards the upstream, also the id of the request.
    pub id: TaskId,
    /// The tool that accepted it.
    pub tool: String,
    /// What it acts on.
    pub target: String,
    /// The typed arguments as canonical JSON, secrets included.
    pub arguments: Secret<String>,
    /// What verifies it, by its name in the contract.
    pub probe: Option<String>,
    /// The probe's reading from before the send.
    pub baseline: Option<String>,
    /// What the upstream calls the operation.
    pub operation: Option<String>,
}

/// Something could not be read; why is for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unreadable: {0}")]
pub struct Unreadable(pub String);
