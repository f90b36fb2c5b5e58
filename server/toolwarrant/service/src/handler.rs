//! Handlers: the arguments and results of the generated methods, and [`Resource`], which finds the
//! targets of tools.
//!
//! `contract!` generates a trait for each file of `tools/`, with a method for each tool. The
//! framework checks key, permission, arguments and capability before it calls the method.

pub use toolwarrant_core::access::{Caller, Granted, Grants, Run};
pub use toolwarrant_core::handler::{Call, Flag, Resource, Target, Unresolved};
pub use toolwarrant_core::picture::Picture;
pub use toolwarrant_core::reply::Reply;
