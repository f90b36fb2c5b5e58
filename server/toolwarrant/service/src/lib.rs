//! Start at [`Program`] and [`Service`]. Hidden modules can change at any time: generated code and
//! `toolwarrant-testing` use them.
//!
// The README is docs/service.md, whose links lead to files next to it. The first definition of a
// link counts.
#![doc = concat!("[changes]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/CONTRIBUTING.md#change-or-retire-a-tool")]
#![doc = concat!("[clients]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/clients.md#a-command")]
#![doc = concat!("[cluster]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/cluster.md")]
#![doc = concat!("[editors]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/editors.md")]
#![doc = concat!("[garden]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/service/garden.rs")]
#![doc = concat!("[inventory]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/service/inventory.rs")]
#![doc = concat!("[jobs]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/tests/services/print_shop/src/tools/jobs.rs")]
#![doc = concat!("[operate]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/operate.md")]
#![doc = concat!("[tests]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/service/tests.rs")]
#![doc = concat!("[states]: ", env!("CARGO_PKG_REPOSITORY"), "/blob/HEAD/docs/states.md#ends-after-an-answer")]
//!
#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod client;
mod core;
mod dumps;
pub mod handler;
mod hangup;
mod listening;
mod log;
mod manager;
mod open_files;
pub mod operator;
mod outlet;
mod program;
mod question;
mod replica;
mod server;
mod service;
mod signals;
mod standby;
mod start;
mod stdio;
pub mod tasks;
mod timekeeping;
mod welcome;

pub use program::Program;
pub use service::{Service, Setup};
pub use toolwarrant_base::BoxFuture;
pub use toolwarrant_base::clock::{Clock, Timestamp};
pub use toolwarrant_base::random::Random;
pub use toolwarrant_macros::contract;

/// The contract as data. `contract!` generates it.
pub mod contract {
    pub use toolwarrant_core::advice::Advice;
    pub use toolwarrant_core::args::{NotAllowed, Nullable, admits};
    pub use toolwarrant_core::catalogue::{Catalogue, PermissionSet, PolicyDef, ToolDef};
    pub use toolwarrant_core::pipeline::{Handlers, MakesNoTasks};
}

/// Results that are rendered once and sent many times, such as long lists.
pub mod rendered {
    pub use toolwarrant_core::reply::{ListWriter, Prepared, Ready, Recipient, RenderBudget, Rendered, TargetIds};
}

/// Text of this program, of a vendor, or secret.
pub mod text {
    pub use toolwarrant_base::text::{NoWebUrl, Remark, Secret, Untrusted, UntrustedText, WebUrl, deceives};
    pub use toolwarrant_base::wording::{Ours, Words};
    pub use toolwarrant_base::words;
    pub use toolwarrant_core::outside::{UntrustedJson, UntrustedMap};
}

/// Tables of the configuration file, and the credentials that they name.
pub mod config {
    pub use toolwarrant_operator::{
        Config, ConfigError, ConfigMistake, ConfigTable, CredentialError, CredentialSource, Spanned,
    };
}

/// Requests to an upstream, and a listener that shows from which address a request came.
pub mod http {
    pub use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
    pub use toolwarrant_http::callback::{CallbackListener, CallbackPaths, CallbackSource, Expected};
    pub use toolwarrant_outbound::{HttpClient, HttpFailure, HttpLimits, HttpSetupError};
    pub use url::Url;
}

/// A page of the service, for people in a browser who hold a pass.
pub mod page {
    pub use toolwarrant_core::page::{PageAnswer, PageError, PageFile, PageRequest, WebPage};
    pub use toolwarrant_core::passes::{Issued, NoPass, Opening, Pass, Passes};
}

/// The small files of a service.
pub mod files {
    pub use toolwarrant_core::files::{FileStore, ServiceFiles};
    pub use toolwarrant_core::store::StoreError;
}

/// Small helpers.
pub mod base {
    pub use toolwarrant_base::random::SplitMix;
    pub use toolwarrant_base::{durable, hex, ignore_poison, json, way};
}

/// For `toolwarrant-testing` only.
#[doc(hidden)]
pub mod composition {
    pub use crate::core::Core;
    pub use crate::service::TestParts;
}

/// For generated code only.
#[doc(hidden)]
pub mod runtime {
    pub use toolwarrant_core::*;
}
