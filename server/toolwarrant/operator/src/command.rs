//! The commands of an operator. The command line parses into these types, and the socket carries
//! them as JSON.
//!
//! In help texts, `{target}`, `{targets}`, `{TARGET}` and `{permissions}` stand for words of the
//! service. [`cli`](crate::cli) replaces them.

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
    Refunds {
        /// Maximum number of rows
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
    /// Accept the machine's clock as correct
    #[command(subcommand)]
    Clock(ClockCommand),
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
    /// A command that the service adds
    #[command(skip)]
    Own {
        /// The command, as the JSON of its type.
        command: Value,
        /// The time that it may take.
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

/// Commands about applications. All keys of an application share its permissions, {targets} and
/// budget.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppCommand {
    /// Create an application; it sees no {target} until some are assigned to it
    Create {
        /// Its name
        name: String,
        /// A permission: {permissions}; may be repeated
        #[arg(long = flags::PERMISSION, value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
        /// Its request budget in any 60 seconds; by default, the contract's
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        requests_per_minute: Option<u32>,
    },
    /// Rename an application; its id and keys stay the same
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
    /// Grant permissions to an application; they apply to its keys at once
    Grant {
        /// Its name or id
        app: String,
        /// The permissions
        #[arg(value_name = "PERMISSION", required = true)]
        permissions: Vec<String>,
    },
    /// Revoke permissions of an application at once; its tasks in flight continue
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
    /// Create a key, and show its secret once
    Create {
        /// The application's name or id
        app: String,
        /// Number of days until it expires
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
        expires: Option<u32>,
    },
    /// List keys
    List {
        /// Only keys of this application
        app: Option<String>,
    },
    /// Give a key a new secret; the current one stays valid until the next rotation, an older one
    /// ends
    Rotate {
        /// The key's id
        key: String,
    },
    /// Revoke a key at once, with all its secrets
    Revoke {
        /// The key's id
        key: String,
    },
    /// Turn on keys that have been off since the data folder was restored from a backup
    Confirm {
        /// The keys' ids
        #[arg(value_name = "KEY", required_unless_present = "all")]
        keys: Vec<String>,
        /// Every key that is off
        #[arg(long = flags::ALL, conflicts_with = "keys")]
        all: bool,
    },
}

/// Commands about the targets of one resource of the contract.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetCommand {
    /// List {targets}, and which applications see each
    List {
        /// Only {targets} after this one
        #[arg(long, value_name = "{TARGET}")]
        after: Option<String>,
        /// Maximum number of rows
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
        /// Every {target}, including future ones
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
    /// List tasks, newest first
    List {
        /// Only tasks of this application
        #[arg(long, value_name = "APP")]
        app: Option<String>,
        /// Only tasks on this {target}
        #[arg(long = "{target}", value_name = "{TARGET}")]
        target: Option<String>,
        /// Maximum number of rows
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u32,
    },
    /// Show one task with its timeline, and why it ended as it did
    ///
    /// The timeline consists of phases, and ends with the task's status:
    ///
    ///   ready      the task waits to be sent, or to be sent again
    ///   baseline   the {target} is read, for a comparison after the send
    ///   sending    the request may have been sent from here on
    ///   polling    the platform has accepted the request, and is asked for the outcome
    ///   verifying  the platform has answered, or never will; the {target} is read
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
    /// Continue from the machine's time, even if the last run was ahead of it; no server may run
    ///
    /// A server never goes back before the latest time that it has recorded, because a clock that
    /// is set back would revive expired keys. If that time was wrong, for example in the year 2100,
    /// this command corrects it.
    Accept,
}

/// Commands about the audit trail.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditCommand {
    /// Show its last lines
    Tail {
        /// Number of lines, at most 10000
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
              value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=TAIL_MAX as u64))]
        lines: usize,
    },
    /// Check that its lines were not changed, removed or added after they were written
    ///
    /// After the lines of each second comes a seal: a hash of these lines and of the previous seal,
    /// keyed by the master key. The database records a recent seal, and the pruned files. The
    /// command fails if a line does not match its seal, or if a file or the end of the trail is
    /// missing. Lines without a seal, such as those of the last second before a kill, are counted
    /// and are not faults.
    Verify,
}
