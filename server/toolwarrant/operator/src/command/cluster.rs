//! Commands about a store in PostgreSQL, and about the processes that lead.

use clap::Subcommand;
use serde::{Deserialize, Serialize};

/// Commands about a store in PostgreSQL. They need its URL, and no server.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum StoreCommand {
    /// Make the tables of a new store, and a master key if the data folder has none
    Init,
    /// Show what the server promises: its version, its standby, and what a failover can forget
    Check,
    /// Go on after PostgreSQL was restored from a backup; first stop every server
    ///
    /// It turns all keys off, and ends the tasks in flight as `timeout`: they may have been sent
    /// since the backup.
    BeginAgain {
        /// Begin again without asking
        #[arg(long)]
        #[serde(default)]
        yes: bool,
    },
    /// Grant an account the rights that a server needs, and no others; the URL names the owner of
    /// the tables
    ///
    /// The account cannot change or remove what has happened: the ledger, tasks that have ended,
    /// and their timelines.
    Grant {
        /// The account, which exists
        account: String,
    },
}

/// Commands about the processes that lead or have led.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClusterCommand {
    /// List the process that leads and those that have led: since when each is silent
    List,
    /// Go on without writes that PostgreSQL has lost at a failover; first stop the server here
    ///
    /// It turns all keys off, and ends the tasks in flight as `timeout`: they may have been sent.
    /// Without a loss it changes nothing.
    AcceptLoss {
        /// Accept the loss without asking
        #[arg(long)]
        #[serde(default)]
        yes: bool,
    },
}
