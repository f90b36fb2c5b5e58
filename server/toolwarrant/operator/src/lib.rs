//! The operator's side of a service: its command line, commands, data folder, doctor and metrics.
//!
//! [`execute`] carries out an [`OperatorCommand`]. If a server runs, it receives the command
//! through the [`socket`] in its data folder. Otherwise [`offline`] opens the folder. Each command
//! has one of the [`answers`], and [`render`] turns its [`view`] into text. No module depends on a
//! contract: the words come from the catalogue.

pub mod answers;
mod archive;
mod background;
mod backup;
pub mod cli;
mod command;
mod config;
mod console;
mod context;
mod credential;
pub mod data;
mod doctor;
mod error;
pub mod flags;
mod history;
pub mod keeping;
mod lines;
pub mod metric;
pub mod metrics;
mod names;
pub mod offline;
mod open_error;
mod own;
pub mod owner;
mod place;
mod prometheus;
pub mod render;
pub mod replica_status;
mod restore;
pub mod socket;
pub mod standby;
mod system;
mod unreadable;
mod upstreams;
mod user;
pub mod view;
mod when;

pub use background::{Background, until};
pub use command::{
    AuditCommand, CommandAnswer, ConsoleCommand, KeyCommand, OperatorCommand, TargetCommand, TargetQuery, TaskCommand,
    TaskListQuery, execute, note_unreadable,
};
pub use config::{Config, ConfigError, ConfigMistake, ConfigTable, Spanned};
pub use console::{ConsoleDoor, LinkRequest};
pub use context::{Check, Inventory, Item, OpenedData, OperatorContext, ProgramIdentity, Shared, States, VisitState};
pub use credential::{CredentialError, CredentialSource};
pub use error::{FailureCode, OperatorError};
pub use lines::ActLines;
pub use names::Names;
pub use open_error::OpenError;
pub use own::{CommandRunner, Commands, Explanation, NoCommands, OwnCommand, runner};
pub use place::StoreOptions;
pub use toolwarrant_postgres::{Claim, Waiting};
pub use unreadable::UnreadTargets;
pub use upstreams::{UpstreamState, Upstreams};
pub use user::local_operator;
pub use when::TimePoint;
