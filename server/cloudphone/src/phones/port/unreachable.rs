//! Questions to a platform, and the error for one without an answer.

use thiserror::Error;
use toolwarrant::BoxFuture;
use toolwarrant::text::Remark;

/// A question to the platform. The caller awaits the answer.
pub type Query<'a, T> = BoxFuture<'a, Result<T, Unreachable>>;

/// The error for a platform that gave no usable answer. The text is for the log only.
#[derive(Clone, Debug, Error)]
#[error("upstream unreachable: {}", .0.as_str())]
pub struct Unreachable(pub Remark);
