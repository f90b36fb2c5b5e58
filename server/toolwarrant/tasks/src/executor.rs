//! The port to the code that carries out writes.

use super::leave::Leave;
use super::machine::{Facts, Sent};
use super::task::{Reading, TaskId};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::{Remark, Secret};

/// Carries out writes and reads their effect. An upstream that offers nothing more needs only
/// [`Self::send`] and [`Self::probe`].
///
/// The engine gives each call a deadline and survives a panic. A [`Remark`] cleans the text of an
/// upstream. The operator reads every remark; clients read those of a reading and of [`Sent::Err`].
/// The engine replaces a text that repeats a secret argument.
pub trait Executor: Send + Sync + 'static {
    /// Returns the [`Facts`] that hold for this write now. The engine calls it for each decision
    /// that depends on them, so the implementation must answer from memory.
    ///
    /// It must claim only directions that were proven on the target. A wrong claim costs a refund,
    /// or reports a success that did not happen. Without the baseline of a probe that compares, the
    /// engine never trusts an absence.
    ///
    /// Default: an upstream that does not handle lost answers, and a probe that proves both
    /// directions.
    fn facts(&self, _write: &Write) -> Facts {
        Facts::default()
    }

    /// Returns true if [`Self::facts`] and [`Self::probe`] work without arguments, for a write that
    /// the contract cannot read any more and the engine never sends. Default: false; no reading
    /// then proves anything.
    fn verifies_without_arguments(&self, _write: &Write) -> bool {
        false
    }

    /// Takes the probe's reading before the send. If it fails twice, the engine sends without it,
    /// because the write may be what puts the target right. [`Write::sent_by`] can then still show
    /// a presence. Default: unreadable.
    fn baseline<'a>(&'a self, _write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Err(Unreadable("this executor does not take readings before a send".into())) })
    }

    /// Sends the write once. Calls [`Leave::confirm`] right before the first byte leaves, and then
    /// sends without waiting for anything else. Does not retry and does not follow redirects.
    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent>;

    /// Asks the upstream for the outcome of a send, by its operation if it has one, otherwise by
    /// the task's id. `None` means that the upstream does not know the request. `NoAnswer` means
    /// that it will never know the outcome, so the engine stops asking. Default: unreadable.
    fn look_up<'a>(&'a self, _write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(async { Err(Unreadable("this executor does not look up requests".into())) })
    }

    /// Reads the target and evaluates the effect. `Absent` needs positive evidence; anything
    /// uncertain is `Unreadable`.
    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading>;
}

/// A write to carry out. The engine opens it once for the steps of a task that follow each other.
#[derive(Clone, Debug)]
pub struct Write {
    /// The id of the task, also sent to the upstream as the id of the request.
    pub id: TaskId,
    /// The tool that was called.
    pub tool: String,
    /// The id of the target.
    pub target: String,
    /// The typed arguments as canonical JSON, secrets included. Empty if the contract cannot read
    /// them.
    pub arguments: Secret<String>,
    /// The contract's name of the probe that verifies the write.
    pub probe: Option<String>,
    /// The probe's reading before the send.
    pub baseline: Option<String>,
    /// The upstream's name for the operation.
    pub operation: Option<String>,
    /// A time by which the latest send had left; `None` before the first one. A later change of the
    /// target needs no baseline to show an effect.
    pub sent_by: Option<Timestamp>,
    /// The result of [`Self::parse_once`].
    pub parsed: Parsed,
}

impl Write {
    /// Returns the result of `parse`, which is called once. It is dropped with the arguments.
    pub fn parse_once<T: Send + Sync + 'static>(&self, parse: impl Fn(&Self) -> T) -> Arc<T> {
        let known = Arc::clone(self.parsed.0.get_or_init(|| Arc::new(parse(self))));
        known.downcast().unwrap_or_else(|_| Arc::new(parse(self)))
    }
}

/// The result of [`Write::parse_once`].
#[derive(Clone, Default)]
pub struct Parsed(OnceLock<Arc<dyn Any + Send + Sync>>);

/// Shows nothing, because the value may have secrets.
impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parsed")
    }
}

/// A failed reading. The text is for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unreadable: {}", .0.as_str())]
pub struct Unreadable(pub Remark);
