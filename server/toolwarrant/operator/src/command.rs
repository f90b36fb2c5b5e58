//! The commands of an operator. The command line parses into these types, and the socket carries them as JSON.
//!
//! In help texts, `{target}`, `{targets}`, `{TARGET}` and `{permissions}` stand for words of the service. [`cli`](crate::cli)
//! replaces them.

use crate::flags;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;
use toolwarrant_audit::TAIL_MAX;

/// A command of an operator.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorCommand {
    /// Make applications, and change what they may do
    #[command(subcommand)]
    App(AppCommand),
    /// Make, rotate and revoke the keys of an application
    #[command(subcommand)]
    Key(KeyCommand),
    /// List what tools act on and decide who sees it; the command has the name of the resource
    #[command(skip)]
    Target {
        /// The resource.
        resource: String,
        /// The command.
        command: TargetCommand,
    },
    /// Read tasks, with all that happened to them
    #[command(subcommand)]
    Task(TaskCommand),
    /// List refunds, the latest first
    Refunds {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Show the contract as an agent sees it: all tools, or one of them
    Tools {
        /// The tool
        name: Option<String>,
    },
    /// Read the audit trail
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Say that the machine's clock is right
    #[command(subcommand)]
    Clock(ClockCommand),
    /// Copy all that the data folder holds into one file, but the master key
    ///
    /// A running server goes on meanwhile. The file is for the owner alone, whole or not there at all, and never overwrites another.
    /// The server writes it, so its user needs the right to. Keep a copy of master.key apart from it.
    Backup {
        /// The file, which must not exist
        file: PathBuf,
    },
    /// Fill an empty data folder from a backup, while no server uses it
    ///
    /// Shows the applications and keys that it brings. All keys are off until `key confirm`. What happened after the backup is not
    /// known: tasks that were in flight end as timeout and nothing is sent for them, and nothing is taken that was signed before
    /// the restore.
    Restore {
        /// The file of the backup
        file: PathBuf,
        /// File of the master key, where that is not in the data folder
        #[arg(long, value_name = "FILE")]
        master_key: Option<PathBuf>,
    },
    /// Examine the data folder: what is wrong with it, and what to do about that
    ///
    /// Looks at the database and all that must hold of it, the master key, the modes of files and the audit trail, and fails
    /// if anything is wrong. Reads everything, so with millions of tasks it takes a while; a running server goes on meanwhile.
    Doctor,
    /// A command that the service adds
    #[command(skip)]
    Own {
        /// The command, as the JSON of its type.
        command: Value,
        /// How long it may take.
        patience: Duration,
    },
}

impl OperatorCommand {
    /// Returns the time that an operator waits for a running server to carry out the command. Some
    /// commands read all data.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            Self::Doctor | Self::Audit(AuditCommand::Verify) | Self::Backup { .. } | Self::Restore { .. } => {
                Duration::from_mins(10)
            }
            Self::Own { patience, .. } => *patience,
            Self::App(_)
            | Self::Key(_)
            | Self::Target { .. }
            | Self::Task(_)
            | Self::Refunds { .. }
            | Self::Tools { .. }
            | Self::Clock(ClockCommand::Accept)
            | Self::Audit(AuditCommand::Tail { .. }) => Duration::from_secs(30),
        }
    }

    /// Returns the same command for a process with another working directory.
    #[must_use]
    pub(crate) fn absolute(self) -> Self {
        let here = |path: &Path| absolute(path).unwrap_or_else(|_| path.to_owned());
        match self {
            Self::Backup { file } => Self::Backup { file: here(&file) },
            other => other,
        }
    }
}

/// Commands about applications. All keys of an application share its permissions, {targets} and budget.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppCommand {
    /// Make an application; it sees no {target} until some are assigned to it
    Create {
        /// Its name
        name: String,
        /// A permission: {permissions}; may be repeated
        #[arg(long = flags::PERMISSION, value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
        /// Its request budget in any 60 seconds; the contract's if left out
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        requests_per_minute: Option<u32>,
    },
    /// Give an application another name; its id and keys stay
    Rename {
        /// Its name or id
        app: String,
        /// Its new name
        name: String,
    },
    /// List all applications
    List,
    /// Show one application with its {targets} and keys
    Show {
        /// Its name or id
        app: String,
    },
    /// Give permissions to an application; its keys have them at once
    Grant {
        /// Its name or id
        app: String,
        /// The permissions
        #[arg(value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
    },
    /// Take permissions from an application; its keys lose them at once, and its tasks in flight go on
    Revoke {
        /// Its name or id
        app: String,
        /// The permissions
        #[arg(value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
    },
}

/// Commands about keys.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyCommand {
    /// Make a key and show its secret, this once
    Create {
        /// The application's name or id
        app: String,
        /// Days until it ends by itself
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
        expires: Option<u32>,
    },
    /// List keys
    List {
        /// Those of one application
        app: Option<String>,
    },
    /// Give a key another secret; the latest one lives beside it until the next rotation, any older one ends
    Rotate {
        /// The key's id
        key: String,
    },
    /// End a key at once, with all its secrets
    Revoke {
        /// The key's id
        key: String,
    },
    /// Turn keys on that are off since the data folder was restored from a backup
    Confirm {
        /// The keys' ids
        #[arg(value_name = "KEY", required_unless_present = "all")]
        keys: Vec<String>,
        /// Every key that is off
        #[arg(long = flags::ALL, conflicts_with = "keys")]
        all: bool,
    },
}

/// Commands about one resource of the contract, which tools act on.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetCommand {
    /// List {targets}, and which applications see each
    List {
        /// Only {targets} after this one
        #[arg(long, value_name = "{TARGET}")]
        after: Option<String>,
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u16,
    },
    /// Let an application see {targets}
    Assign {
        /// The application's name or id
        app: String,
        /// The {targets}
        #[arg(value_name = "{TARGET}", required_unless_present = "all")]
        ids: Vec<String>,
        /// Every {target}, those to come included
        #[arg(long = flags::ALL, conflicts_with = "ids")]
        all: bool,
    },
    /// Hide {targets} from an application
    Unassign {
        /// The application's name or id
        app: String,
        /// The {targets}
        #[arg(value_name = "{TARGET}", required_unless_present = "all")]
        ids: Vec<String>,
        /// Every {target}
        #[arg(long = flags::ALL, conflicts_with = "ids")]
        all: bool,
    },
}

/// Commands about tasks.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskCommand {
    /// List tasks, the latest first
    List {
        /// Those of one application
        #[arg(long, value_name = "APP")]
        app: Option<String>,
        /// Those on one {target}
        #[arg(long = "{target}", value_name = "{TARGET}")]
        target: Option<String>,
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u32,
    },
    /// Show one task: what was sent, what was read, and why it ended as it did
    ///
    /// Its timeline is in phases, and ends with the task's status:
    ///
    ///   ready      it waits to be sent, at first or again
    ///   baseline   the {target} is read, to be compared with later
    ///   sending    it may have left from here on
    ///   polling    the platform has taken it, and is asked what came of it
    ///   verifying  the platform has answered, or will not; the {target} is read
    #[command(verbatim_doc_comment)]
    Show {
        /// The task's id
        task: String,
    },
}

/// Commands about time.
#[derive(Clone, Copy, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockCommand {
    /// Go on from the time of the machine's clock, also where the last run was ahead of it; no server may run
    ///
    /// A server never goes back behind the time that it has seen: a clock that is set back would revive keys that have expired. Where
    /// that time was wrong, such as in the year 2100, this puts it right.
    Accept,
}

/// Commands about the audit trail.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditCommand {
    /// Show its last lines
    Tail {
        /// How many, 10000 at most
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
              value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=TAIL_MAX as u64))]
        lines: usize,
    },
    /// Find what was changed, removed or added in it since it was written
    ///
    /// The lines of each second are followed by a seal: a hash of them and of the seal before, keyed by the master key. The database
    /// knows a recent one, and which were pruned. Fails if a line is not as it was sealed, or a file or an end is missing. Lines that no
    /// seal covers yet, such as those of the last second before a kill, are counted and no fault.
    Verify,
}
