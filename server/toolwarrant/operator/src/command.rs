//! The commands of an operator. The command line parses into these types, and the socket carries
//! them as JSON.
//!
//! In help texts, `{target}`, `{targets}`, `{TARGET}` and `{permissions}` stand for words of the
//! service. [`cli`](crate::cli) replaces them.

mod authority;
mod cluster;
mod queries;

pub use authority::Authority;
pub use cluster::{ClusterCommand, StoreCommand};
pub use queries::{ActQuery, AuditQuery, KeyQuery, KeyState, RefundQuery, TargetQuery, TaskListQuery};

use crate::config::read_text;
use crate::flags;
use crate::when::KeyEnd;
use clap::Subcommand;
use queries::parse_span;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;
use toolwarrant_audit::TAIL_MAX;

/// Longest state file, in bytes.
const STATE_MAX: u64 = 1 << 20;

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
    /// Make applications what a state file says: permissions, grants, rates and labels
    ///
    /// Turns the file into commands, shows them, and carries them out in order. It deletes nothing
    /// and makes no keys. `export` writes such a file. If an application of the file has an `id`,
    /// another name renames it.
    Apply {
        /// The state file
        file: PathBuf,
        /// Only show the commands; the exit code is 3 if there are any
        #[arg(long)]
        dry_run: bool,
        /// Its content, which the command line reads.
        #[arg(skip)]
        text: String,
    },
    /// Write the state file of all applications
    Export,
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

impl OperatorCommand {
    /// Returns the time that an operator waits for a running server to carry out the command. Some
    /// commands read all data.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            Self::Doctor
            | Self::Apply { .. }
            | Self::Audit(AuditCommand::Verify)
            | Self::Backup { .. }
            | Self::Restore { .. } => Duration::from_mins(10),
            Self::Own { patience, .. } => *patience,
            Self::App(_)
            | Self::Key(_)
            | Self::Target { .. }
            | Self::Task(_)
            | Self::Refunds(_)
            | Self::Find { .. }
            | Self::Export
            | Self::Acts(_)
            | Self::Tools { .. }
            | Self::Store(_)
            | Self::Cluster(_)
            | Self::Clock(ClockCommand::Accept)
            | Self::Audit(AuditCommand::Tail { .. } | AuditCommand::After { .. } | AuditCommand::List(_)) => {
                Duration::from_secs(30)
            }
        }
    }

    /// Reads the file that the command names, because the user of a server may not read it.
    ///
    /// # Errors
    /// It is not a text file, cannot be read or is too large.
    pub(crate) fn read_file(self) -> io::Result<Self> {
        let Self::Apply { file, dry_run, .. } = self else { return Ok(self) };
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        let text = read_text(&file, STATE_MAX).map_err(named)?;
        Ok(Self::Apply { file, dry_run, text })
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
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
    List {
        /// Only those with this label: NAME=TEXT; may be repeated
        #[arg(long = "label", value_name = "NAME=TEXT", value_parser = pair)]
        labels: Vec<(String, String)>,
        /// Only deleted ones
        #[arg(long)]
        deleted: bool,
    },
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
    /// Refuse all calls of an application until `app resume`; its tasks in flight continue
    Suspend {
        /// Its name or id
        app: String,
    },
    /// Allow the calls of a suspended application again
    Resume {
        /// Its name or id
        app: String,
    },
    /// Delete an application and end its keys, for good
    ///
    /// Its name becomes free. Its id stays in the ledger, the tasks, the audit trail and the acts.
    /// Its tasks in flight continue to their end, and are refunded as any other.
    Delete {
        /// Its name or id
        app: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Change the request budget of an application; the requests of the last minute still count
    Rate {
        /// Its name or id
        app: String,
        /// Its request budget in any 60 seconds
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        requests_per_minute: u32,
    },
    /// Set labels of an application, such as owner=Ada; an empty text removes a label
    Label {
        /// Its name or id
        app: String,
        /// The labels; `owner`, `contact` and `customer` are common
        #[arg(value_name = "NAME=TEXT", required = true, value_parser = pair)]
        labels: Vec<(String, String)>,
    },
}

/// Parses a name and a text with `=` between them.
fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, text) = text.split_once('=').ok_or("expected NAME=TEXT, such as owner=Ada")?;
    Ok((name.to_owned(), text.to_owned()))
}

/// Commands about keys.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KeyCommand {
    /// Create a key, and show its secret once
    Create {
        /// The application's name or id
        app: String,
        /// Its end: 90 (days), 12h, 2026-12-31, 2026-12-31T18:00Z or never, the default
        #[arg(long, value_name = "WHEN")]
        expires: Option<KeyEnd>,
    },
    /// List keys, with the age, end and last use of each live secret
    List(KeyQuery),
    /// Show one key with the latest acts on it
    Show {
        /// The key's id
        key: String,
    },
    /// Give a key a new secret; the current one stays valid until the next rotation, an older one
    /// ends
    Rotate {
        /// The key's id
        key: String,
        /// End the current secret after this time span, such as 7d
        #[arg(long, value_name = "SPAN", value_parser = parse_span)]
        grace: Option<Duration>,
    },
    /// End the older secret of a rotated key at once
    EndOld {
        /// The key's id
        key: String,
    },
    /// Move the end of a key
    Expire {
        /// The key's id
        key: String,
        /// Its end: 90 (days), 12h, 2026-12-31, 2026-12-31T18:00Z or never
        #[arg(value_name = "WHEN")]
        at: KeyEnd,
    },
    /// Refuse a key until `key resume`; it keeps its secrets
    Suspend {
        /// The key's id
        key: String,
    },
    /// Allow a suspended key again
    Resume {
        /// The key's id
        key: String,
    },
    /// Set labels of a key, such as owner=Ada; an empty text removes a label
    Label {
        /// The key's id
        key: String,
        /// The labels; `owner`, `contact` and `customer` are common
        #[arg(value_name = "NAME=TEXT", required = true, value_parser = pair)]
        labels: Vec<(String, String)>,
    },
    /// Revoke a key at once, with all its secrets
    Revoke {
        /// The key's id
        key: String,
    },
    /// Turn on keys that have been off since the data was restored from a backup
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
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetCommand {
    /// List {targets}, and which applications see each
    List(TargetQuery),
    /// Count {targets} by their states and by what they offer at present
    States {
        /// Only {targets} that this application sees
        #[arg(long, value_name = "APP")]
        app: Option<String>,
        /// Only {targets} whose ids begin so
        #[arg(long, value_name = "PREFIX", default_value = "")]
        prefix: String,
    },
    /// Let an application see {targets}
    Assign {
        /// The application's name or id
        app: String,
        /// The {targets}
        #[arg(value_name = "{TARGET}", required_unless_present_any = ["all", "prefixes"])]
        ids: Vec<String>,
        /// Every {target}, including future ones
        #[arg(long = flags::ALL, conflicts_with = "ids")]
        all: bool,
        /// Every {target} whose id begins so, including future ones; may be repeated
        #[arg(long = "prefix", value_name = "PREFIX", conflicts_with = "all")]
        #[serde(default)]
        prefixes: Vec<String>,
    },
    /// Hide {targets} from an application, also single ones of those that it sees by --all or
    /// --prefix
    Unassign {
        /// The application's name or id
        app: String,
        /// The {targets}
        #[arg(value_name = "{TARGET}", required_unless_present_any = ["all", "prefixes"])]
        ids: Vec<String>,
        /// Every {target}
        #[arg(long = flags::ALL, conflicts_with = "ids")]
        all: bool,
        /// Every {target} whose id begins so; may be repeated
        #[arg(long = "prefix", value_name = "PREFIX", conflicts_with = "all")]
        #[serde(default)]
        prefixes: Vec<String>,
    },
    /// Let an application see exactly these {targets}, in one step
    Set {
        /// The application's name or id
        app: String,
        /// `*` for all, `abc*` for all whose ids begin so, an id, or `!` and an id for an
        /// exception; without one, it sees none
        #[arg(value_name = "TERM")]
        terms: Vec<String>,
    },
}

/// Commands about tasks.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TaskCommand {
    /// List tasks, newest first
    ///
    /// Examines at most 100,000 tasks. The answer says how many it examined, and where the next
    /// page begins.
    List(TaskListQuery),
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
#[serde(rename_all = "snake_case", deny_unknown_fields)]
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
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AuditCommand {
    /// Show its last lines
    Tail {
        /// Number of lines, at most 10000
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
              value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=TAIL_MAX as u64))]
        lines: usize,
        /// Then print each new line, until it is interrupted; needs a running server
        #[arg(short, long)]
        #[serde(default)]
        follow: bool,
    },
    /// The lines after a place. The command line asks for them to follow the trail.
    #[command(skip)]
    After {
        /// The `next` of the answer before; `None` for the end of the trail.
        place: Option<String>,
    },
    /// List lines, newest first, by caller, tool, outcome, operator or time
    ///
    /// Examines at most 1 GiB. The answer says how far it looked, and where the next page begins.
    List(Box<AuditQuery>),
    /// Check that its lines were not changed, removed or added after they were written
    ///
    /// After the lines of each second comes a seal: a hash of these lines and of the previous seal,
    /// keyed by the master key. The database records a recent seal, and the pruned files. The
    /// command fails if a line does not match its seal, or if a file or the end of the trail is
    /// missing. Lines without a seal, such as those of the last second before a kill, are counted
    /// and are not faults. Each replica of a shared store has a trail of its own. Verify each in
    /// its folder; the answer names the others.
    Verify,
}
