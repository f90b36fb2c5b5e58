//! What an operator asks of a service: one [`Command`], one [`execute`], whether a server runs or not; and how it is watched.
//!
//! With a running server a command goes through the [`socket`] in its data folder. Without one, [`offline`] opens the folder
//! itself. Either way the answer is JSON, which [`render`] makes readable. Nothing here knows what a contract is about: words,
//! permissions and resources come from the catalogue of the service.

pub mod cli;
mod command;
mod context;
pub mod data;
mod doctor;
mod execute;
pub mod metrics;
mod names;
pub mod offline;
mod prometheus;
pub mod render;
pub mod socket;

pub use command::{AppCommand, AuditCommand, Command, KeyCommand, TargetCommand, TaskCommand};
pub use context::{Check, Inventory, Item, OpenError, OpenedData, OperatorContext, OperatorError};
pub use execute::execute;
pub use names::Names;
