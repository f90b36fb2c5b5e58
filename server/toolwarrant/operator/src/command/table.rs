//! The table of commands: the row of each says how it is judged, carried out and recorded.

use super::applications::AppCommand;
use super::audit::AuditCommand;
use super::clock::ClockCommand;
use super::cluster::{ClusterCommand, StoreCommand};
use super::console::{ConsoleAct, ConsoleCommand};
use super::keys::KeyCommand;
use super::operator::OperatorCommand;
use super::targets::TargetCommand;
use super::tasks::TaskCommand;
use crate::error::OperatorError;
use serde_json::Value;
use std::time::Duration;
use toolwarrant_core::act::Role;

impl OperatorCommand {
    /// Returns the row of the command. A command of the service decides itself if it changes
    /// something; until then it counts as a change.
    pub(crate) fn row(&self) -> CommandRow<'_> {
        match self {
            Self::App(AppCommand::Create { .. }) => CommandRow { begins: true, ..operate("app create") },
            Self::App(AppCommand::Rename { app, .. }) => operate("app rename").on(app),
            Self::App(AppCommand::List { .. }) => view("app list"),
            Self::App(AppCommand::Show { .. }) => view("app show"),
            Self::App(AppCommand::Grant { app, .. }) => operate("app grant").on(app),
            Self::App(AppCommand::Revoke { app, .. }) => operate("app revoke").on(app),
            Self::App(AppCommand::Suspend { app }) => operate("app suspend").on(app),
            Self::App(AppCommand::Resume { app }) => operate("app resume").on(app),
            Self::App(AppCommand::Delete { app, yes }) => {
                let question = format!("Delete the application `{app}`, and end all its keys for good?");
                operate("app delete").on(app).ask(*yes, question)
            }
            Self::App(AppCommand::Call { app, .. }) => operate("app call").on(app),
            Self::App(AppCommand::Rate { app, .. }) => operate("app rate").on(app),
            Self::App(AppCommand::Label { app, .. }) => operate("app label").on(app),
            Self::Key(KeyCommand::Create { app, .. }) => operate("key create").on(app),
            Self::Key(KeyCommand::List(_)) => view("key list"),
            Self::Key(KeyCommand::Show { .. }) => view("key show"),
            Self::Key(KeyCommand::Rotate { key, .. }) => operate("key rotate").on(key),
            Self::Key(KeyCommand::EndOld { key }) => operate("key end-old").on(key),
            Self::Key(KeyCommand::Expire { key, .. }) => operate("key expire").on(key),
            Self::Key(KeyCommand::Suspend { key }) => operate("key suspend").on(key),
            Self::Key(KeyCommand::Resume { key }) => operate("key resume").on(key),
            Self::Key(KeyCommand::Label { key, .. }) => operate("key label").on(key),
            Self::Key(KeyCommand::Revoke { key }) => operate("key revoke").on(key),
            Self::Key(KeyCommand::Confirm { .. }) => operate("key confirm"),
            Self::Target { resource, command } => {
                let row = match command {
                    TargetCommand::List(_) => view("list"),
                    TargetCommand::States { .. } => view("states"),
                    TargetCommand::Assign { app, .. } => operate("assign").on(app),
                    TargetCommand::Unassign { app, .. } => operate("unassign").on(app),
                    TargetCommand::Set { app, .. } => operate("set").on(app),
                };
                CommandRow { name: format!("{resource} {}", row.name), ..row }
            }
            Self::Task(TaskCommand::List(_)) => view("task list"),
            Self::Task(TaskCommand::Count(_)) => view("task count"),
            Self::Task(TaskCommand::Show { .. }) => view("task show"),
            Self::Refunds(query) if query.sums => view("refunds").wait_long(),
            Self::Refunds(_) => view("refunds"),
            Self::Find { .. } => view("find"),
            Self::Acts(_) => view("acts"),
            Self::Tools { .. } => view("tools"),
            Self::Audit(AuditCommand::Tail { .. }) => view("audit tail"),
            Self::Audit(AuditCommand::List(_)) => view("audit list"),
            Self::Audit(AuditCommand::Verify) => view("audit verify").wait_long(),
            Self::Console(ConsoleCommand { act: Some(ConsoleAct::List), .. }) => view("console list"),
            Self::Console(ConsoleCommand { act: Some(ConsoleAct::End { .. }), .. }) => operate("console end"),
            Self::Console(ConsoleCommand { act: None, link }) if link.operate => operate("console"),
            Self::Console(ConsoleCommand { act: None, .. }) => view("console"),
            Self::Clock(ClockCommand::Accept) => {
                owner("clock accept").on_files("replicas take the time from PostgreSQL")
            }
            Self::Backup { .. } => {
                owner("backup").wait_long().on_files("back PostgreSQL up with its own tools, such as pg_basebackup")
            }
            Self::Restore { .. } => owner("restore")
                .wait_long()
                .on_files("restore PostgreSQL with its own tools, and run `store begin-again`"),
            Self::Overview => view("overview"),
            Self::Doctor => view("doctor").wait_long(),
            // A health check does not wait for a server that stands still.
            Self::Ready => CommandRow { patience: Duration::from_secs(5), ..view("ready") },
            Self::Store(StoreCommand::Init) => owner("store init"),
            Self::Store(StoreCommand::Check) => view("store check"),
            Self::Store(StoreCommand::BeginAgain { yes }) => owner("store begin-again").mend(*yes),
            Self::Store(StoreCommand::Grant { .. }) => owner("store grant"),
            Self::Cluster(ClusterCommand::List) => view("cluster list"),
            Self::Cluster(ClusterCommand::AcceptLoss { yes }) => owner("cluster accept-loss").mend(*yes),
            Self::Own { command, patience } => {
                CommandRow { patience: *patience, begins: true, ..operate(name_own(command)) }
            }
        }
    }
}

pub(crate) struct CommandRow<'a> {
    /// The words of the command without its arguments, such as `key revoke`.
    pub(crate) name: String,
    /// The lowest role that may use the command. A command for the role `View` changes nothing.
    pub(crate) role: Role,
    /// The name or id of the application or key that the command changes, as it was given.
    pub(crate) object: Option<&'a str>,
    /// The longest wait for a running server to carry out the command.
    pub(crate) patience: Duration,
    pub(crate) question: Option<String>,
    /// The advice for replicas with a shared store, if the command needs a data folder with a
    /// database.
    pub(crate) instead: Option<&'static str>,
    /// True if the command may begin a data folder that the command line names.
    pub(crate) begins: bool,
    /// True if the command puts a store in order that has lost writes.
    pub(crate) mends: bool,
}

fn view<'a>(name: impl Into<String>) -> CommandRow<'a> {
    CommandRow {
        name: name.into(),
        role: Role::View,
        object: None,
        patience: Duration::from_secs(30),
        question: None,
        instead: None,
        begins: false,
        mends: false,
    }
}

fn operate<'a>(name: impl Into<String>) -> CommandRow<'a> {
    CommandRow { role: Role::Operate, ..view(name) }
}

/// Makes the row of a command that copies, replaces or redates all data.
fn owner<'a>(name: impl Into<String>) -> CommandRow<'a> {
    CommandRow { role: Role::Owner, ..view(name) }
}

impl<'a> CommandRow<'a> {
    fn on(self, object: &'a str) -> Self {
        Self { object: Some(object), ..self }
    }

    fn wait_long(self) -> Self {
        Self { patience: Duration::from_mins(10), ..self }
    }

    fn on_files(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }

    fn ask(self, yes: bool, question: impl Into<String>) -> Self {
        Self { question: (!yes).then(|| question.into()), ..self }
    }

    fn mend(self, yes: bool) -> Self {
        Self { mends: true, ..self.ask(yes, "Turn all keys off, and end the tasks in flight as `timeout`?") }
    }

    pub(crate) fn refuse_on_files(&self) -> Result<(), OperatorError> {
        let Some(instead) = self.instead else { return Ok(()) };
        let name = self.name.split(' ').next().unwrap_or_default();
        Err(OperatorError::refusal(format!("`{name}` is for a data folder with a database: {instead}")))
    }
}

fn name_own(command: &Value) -> String {
    let (name, inner) = split_variant(command);
    // The variants of a group are in camel case, and fields are not.
    match split_variant(inner) {
        (word, _) if word.starts_with(char::is_uppercase) => format!("{name} {word}").to_lowercase(),
        _ => name.to_lowercase(),
    }
}

fn split_variant(value: &Value) -> (&str, &Value) {
    let object = value.as_object().and_then(|members| members.iter().next());
    object.map_or((value.as_str().unwrap_or_default(), &Value::Null), |(name, inner)| (name, inner))
}
