//! A framework for services whose tools are called by AI agents. Each write becomes a task, and the
//! task ends in the state that was verified.
//!
//! A service consists of a contract in TOML, a type with a method for each tool, an executor that
//! carries out writes, and a `main`:
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
//! This program serves the contract at `/mcp`. It has operator commands, a doctor, metrics and a
//! data folder. A service needs no other crate of the framework, since this one re-exports what its
//! author uses. Start at [`Program`].

mod client;
mod core;
mod dumps;
mod hangup;
mod listening;
mod log;
mod open_files;
mod outlet;
mod program;
mod question;
mod server;
mod service;
#[cfg(feature = "testing")]
pub mod testing;
mod timekeeping;
mod welcome;

pub use program::Program;
pub use service::{Service, Setup};

pub use toolwarrant_base::clock::{Clock, Timestamp};
pub use toolwarrant_base::random::{Random, SplitMix};
pub use toolwarrant_base::text::{HttpsUrl, NoHttpsUrl, Remark, Secret, Untrusted};
pub use toolwarrant_base::wording::{Ours, Words};
pub use toolwarrant_base::{BoxFuture, durable, hex, ignore_poison, words};
pub use toolwarrant_core::access::{Caller, Granted, Grants};
pub use toolwarrant_core::advice::Advice;
pub use toolwarrant_core::args::admits;
pub use toolwarrant_core::catalogue::{Catalogue, PermissionSet, PolicyDef, ToolDef};
pub use toolwarrant_core::handler::{Call, Flag, Resource, Target, Unresolved};
pub use toolwarrant_core::pipeline::Handlers;
pub use toolwarrant_core::registry::KeyPrefixes;
pub use toolwarrant_core::reply::{Frame, ListWriter, Prepared, Ready, RenderBudget, Rendered, Reply};
pub use toolwarrant_http::callback::{CallbackListener, CallbackPaths, CallbackSource, Expected};
pub use toolwarrant_macros::contract;
pub use toolwarrant_operator::cli::{Flags, NoFlags};
pub use toolwarrant_operator::data::DataFolder;
pub use toolwarrant_operator::{
    Check, Commands, Explanation, Inventory, Item, Names, NoCommands, OwnCommand, UpstreamState, Upstreams,
};
pub use toolwarrant_operator::{
    Config, ConfigError, ConfigMistake, ConfigTable, CredentialError, CredentialSource, Findings, Spanned,
};
pub use toolwarrant_outbound::{HttpClient, HttpFailure, HttpLimits, HttpSetupError};
pub use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
pub use toolwarrant_tasks::machine::{Facts, Provability, Sent};
pub use toolwarrant_tasks::task::{Reading, TaskId, Verdict};

/// The API of generated code. Do not use it by hand.
#[doc(hidden)]
pub mod runtime {
    pub use toolwarrant_core::*;
}
