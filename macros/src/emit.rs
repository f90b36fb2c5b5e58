//! The contract as Rust, one file a concern. Each emitter writes data and calls into the runtime; logic stands there.

pub(crate) mod args;
pub(crate) mod catalogue;
pub(crate) mod dispatch;
pub(crate) mod errors;
pub(crate) mod handlers;
pub(crate) mod permissions;
pub(crate) mod types;
