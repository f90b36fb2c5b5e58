//! The error of a question to a platform that has no answer.

use thiserror::Error;
use toolwarrant::text::Remark;

/// The error for a platform that gave no usable answer. The text is for the log only.
#[derive(Clone, Debug, Error)]
#[error("upstream unreachable: {}", .0.as_str())]
pub struct Unreachable(pub Remark);
