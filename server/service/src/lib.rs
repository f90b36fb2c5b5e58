//! A framework for services whose tools an AI agent calls, and whose writes end in what really happened.
//!
//! A service is a contract in TOML, a type with a method for each tool, something that carries writes out, and a `main`:
//!
//! ```ignore
//! mod contract {
//!     toolwarrant::contract!("spec");
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Program::new("print-shop", env!("CARGO_PKG_VERSION"), "Prints pages.").run(|_| {
//!         let shop = Arc::new(Shop::default());
//!         Ok(Service::new(contract::Contract(shop.clone())).executor(shop))
//!     })
//! }
//! ```
//!
//! That program serves the contract at `/mcp`, has every command of an operator, a doctor, metrics and a data folder. This crate
//! is the one dependency: what the author of a service uses is re-exported here. Start at [`Program`].

mod log;
mod program;
mod server;
mod service;
#[cfg(feature = "testing")]
pub mod testing;
mod welcome;

pub use program::Program;
pub use server::{ServeConfig, Server, Stop};
pub use service::{Service, Setup};

pub use cloudphone_macros::contract;
pub use toolwarrant_core::access::{Caller, Granted, Grants};
pub use toolwarrant_core::catalogue::{Catalogue, PermissionSet, ToolDef};
pub use toolwarrant_core::clock::{Clock, Timestamp};
pub use toolwarrant_core::handler::{Call, Flag, Resource, Target, Unresolved};
pub use toolwarrant_core::pipeline::Handlers;
pub use toolwarrant_core::random::{Random, SplitMix};
pub use toolwarrant_core::registry::KeyPrefixes;
pub use toolwarrant_core::reply::{Prepared, Reply};
pub use toolwarrant_core::text::{Secret, Untrusted};
pub use toolwarrant_core::{BoxFuture, hex};
pub use toolwarrant_operator::cli::{Flags, NoFlags};
pub use toolwarrant_operator::data::DataFolder;
pub use toolwarrant_operator::{Check, Inventory, Item, Names};
pub use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
pub use toolwarrant_tasks::machine::{Facts, Sent};
pub use toolwarrant_tasks::task::{Reading, TaskId, Verdict};

/// What generated code is written against. Nothing in it is for people.
#[doc(hidden)]
pub mod runtime {
    pub use toolwarrant_core::*;
}
