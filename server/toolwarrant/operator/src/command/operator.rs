//! The command of an operator. The command line parses into this type, and the socket carries it as
//! JSON.
//!
//! In help texts, `{target}`, `{targets}`, `{TARGET}` and `{permissions}` stand for words of the
//! service. [`cli`](crate::cli) replaces them.

use super::acts::ActQuery;
use super::applications::AppCommand;
use super::audit::AuditCommand;
use super::clock::ClockCommand;
use super::cluster::{ClusterCommand, StoreCommand};
use super::console::ConsoleCommand;
use super::keys::KeyCommand;
use super::targets::TargetCommand;
use super::tasks::{RefundQuery, TaskCommand};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// A command of an operator.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OperatorCommand {
    /// Create applications, and manage their permissions
    #[command(subcommand)]
    App(AppCommand),
    /// Create, rotate and revoke the keys of applications
    #[command(subcommand)]
    Key(KeyCommand),
    /// List targets and decide which application sees them; the command has the name of the
    /// resource
    #[command(skip)]
    Target {
        /// The resource.
        resource: String,
        /// The command.
        command: TargetCommand,
    },
    /// Read tasks and their timelines
    #[command(subcommand)]
    Task(TaskCommand),
    /// List refunds, newest first
    Refunds(RefundQuery),
    /// Find an id of any kind, with what belongs to it
    ///
    /// Knows tasks, requests, applications, keys, acts and {targets}.
    Find {
        /// The id
        id: String,
    },
    /// List who changed what, newest first
    Acts(ActQuery),
    /// Show the contract as an agent sees it: all tools, or one of them
    Tools {
        /// The tool
        name: Option<String>,
    },
    /// Read the audit trail
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Accept the machine's clock as correct
    #[command(subcommand)]
    Clock(ClockCommand),
    /// Open the console, which shows all this in a browser
    ///
    /// The running server opens a port on this machine, and answers with a link that works once,
    /// for a minute. With it a browser may read what this user may read. The console closes when
    /// nobody uses it any more.
    Console(ConsoleCommand),
    /// Copy the data folder into one file, except for the master key
    ///
    /// A running server continues meanwhile. Only the owner can read the file. It is complete or
    /// does not exist, and it never overwrites another file. A running server writes it, so the
    /// user of the server needs write access to its folder. Store a copy of master.key in a
    /// different place.
    Backup {
        /// The file, which must not exist
        file: PathBuf,
    },
    /// Fill an empty data folder from a backup, while no server uses it
    ///
    /// Prints the restored applications and keys. All keys are off until `key confirm`. Events
    /// after the backup are not known: tasks that were in flight end as timeout, and the server
    /// sends nothing more for them. It refuses requests that were signed before the restore.
    Restore {
        /// The file of the backup
        file: PathBuf,
        /// File of the master key, if it is not in the data folder
        #[arg(long, value_name = "FILE")]
        master_key: Option<PathBuf>,
        /// User that the data folder is made for, as a name or a number; only root can name another
        #[arg(long, value_name = "USER")]
        owner: Option<String>,
    },
    /// Check the data folder, and print each fault with a remedy
    ///
    /// Checks the database and its rules, the master key, the modes of files and the audit trail,
    /// and fails if it finds a fault. It reads everything, which takes a while with millions of
    /// tasks; a running server continues meanwhile.
    Doctor,
    /// Check that the server answers requests; the exit code is 0 if it does
    ///
    /// For health checks without an HTTP client. Asks the running server over its socket, and
    /// prints the reason if it is not ready: `/readyz` says the same. A process that waits to lead
    /// is not ready.
    Ready,
    /// Show how the server does, its last 24 hours, and what needs a look
    Overview,
    /// Make and check the store that replicas share
    #[command(subcommand)]
    Store(StoreCommand),
    /// List the replicas that share the store, and accept the loss of writes
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// A command that the service adds
    #[command(skip)]
    Own {
        /// The command, as the JSON of its type.
        command: Value,
        /// The time that it may take.
        patience: Duration,
    },
}
