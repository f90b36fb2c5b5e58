//! The properties of a command by which it is judged and recorded.

use super::{
    AppCommand, AuditCommand, ClockCommand, ClusterCommand, KeyCommand, OperatorCommand, StoreCommand, TargetCommand,
    TaskCommand,
};
use serde::Serialize;
use serde_json::Value;
use toolwarrant_core::act::Role;

/// The authority that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The command reads.
    Reads,
    /// The command changes something.
    Changes,
    /// The command is the owner's, because it copies, replaces or redates all data.
    Owner,
}

impl Authority {
    /// Returns the lowest role that has it.
    pub(crate) fn least_role(self) -> Role {
        match self {
            Self::Reads => Role::View,
            Self::Changes => Role::Operate,
            Self::Owner => Role::Owner,
        }
    }
}

impl OperatorCommand {
    /// Returns the authority that the command needs. A command of the service decides itself; until
    /// then it counts as a change.
    #[must_use]
    pub fn authority(&self) -> Authority {
        match self {
            Self::App(AppCommand::List { .. } | AppCommand::Show { .. })
            | Self::Key(KeyCommand::List(_) | KeyCommand::Show { .. })
            | Self::Target { command: TargetCommand::List(_) | TargetCommand::States { .. }, .. }
            | Self::Task(TaskCommand::List(_) | TaskCommand::Show { .. })
            | Self::Audit(
                AuditCommand::Tail { .. } | AuditCommand::After { .. } | AuditCommand::List(_) | AuditCommand::Verify,
            )
            | Self::Refunds(_)
            | Self::Find { .. }
            | Self::Export
            | Self::Apply { dry_run: true, .. }
            | Self::Acts(_)
            | Self::Tools { .. }
            | Self::Store(StoreCommand::Check)
            | Self::Cluster(ClusterCommand::List)
            | Self::Doctor => Authority::Reads,
            Self::App(
                AppCommand::Create { .. }
                | AppCommand::Rename { .. }
                | AppCommand::Grant { .. }
                | AppCommand::Revoke { .. }
                | AppCommand::Suspend { .. }
                | AppCommand::Resume { .. }
                | AppCommand::Delete { .. }
                | AppCommand::Rate { .. }
                | AppCommand::Label { .. },
            )
            | Self::Key(
                KeyCommand::Create { .. }
                | KeyCommand::EndOld { .. }
                | KeyCommand::Expire { .. }
                | KeyCommand::Suspend { .. }
                | KeyCommand::Resume { .. }
                | KeyCommand::Label { .. }
                | KeyCommand::Rotate { .. }
                | KeyCommand::Revoke { .. }
                | KeyCommand::Confirm { .. },
            )
            | Self::Target {
                command: TargetCommand::Assign { .. } | TargetCommand::Unassign { .. } | TargetCommand::Set { .. },
                ..
            }
            | Self::Apply { dry_run: false, .. }
            | Self::Own { .. } => Authority::Changes,
            Self::Backup { .. }
            | Self::Restore { .. }
            | Self::Store(StoreCommand::Init | StoreCommand::BeginAgain { .. } | StoreCommand::Grant { .. })
            | Self::Cluster(ClusterCommand::AcceptLoss { .. })
            | Self::Clock(ClockCommand::Accept) => Authority::Owner,
        }
    }

    /// Returns true if the command puts a store in order that has lost writes.
    pub(crate) fn mends(&self) -> bool {
        matches!(self, Self::Cluster(ClusterCommand::AcceptLoss { .. }) | Self::Store(StoreCommand::BeginAgain { .. }))
    }

    /// Returns the question for the operator before the command is carried out.
    pub(crate) fn question(&self) -> Option<String> {
        match self {
            Self::App(AppCommand::Delete { app, yes: false }) => {
                Some(format!("Delete the application `{app}`, and end all its keys for good?"))
            }
            Self::Cluster(ClusterCommand::AcceptLoss { yes: false })
            | Self::Store(StoreCommand::BeginAgain { yes: false }) => {
                Some("Turn all keys off, and end the tasks in flight as `timeout`?".to_owned())
            }
            _ => None,
        }
    }

    /// Returns the words of the command without its arguments, such as `key revoke`.
    #[must_use]
    pub(crate) fn words(&self) -> String {
        match self {
            Self::App(command) => format!("app {}", name_variant(command)),
            Self::Key(command) => format!("key {}", name_variant(command)),
            Self::Task(command) => format!("task {}", name_variant(command)),
            Self::Audit(command) => format!("audit {}", name_variant(command)),
            Self::Clock(command) => format!("clock {}", name_variant(command)),
            Self::Store(command) => format!("store {}", name_variant(command)),
            Self::Cluster(command) => format!("cluster {}", name_variant(command)),
            Self::Target { resource, command } => format!("{resource} {}", name_variant(command)),
            Self::Own { command, .. } => match command.as_object().and_then(|members| members.iter().next()) {
                // The variants of a group are in camel case, and fields are not.
                Some((group, inner)) => match name_variant(inner) {
                    word if word.starts_with(char::is_uppercase) => format!("{group} {word}").to_lowercase(),
                    _ => group.to_lowercase(),
                },
                None => name_variant(command).to_lowercase(),
            },
            other => name_variant(other),
        }
    }

    /// Returns the name or id of the application or key that the command is about, as it was given.
    pub(crate) fn object(&self) -> Option<&str> {
        match self {
            Self::App(command) => command.app(),
            Self::Key(KeyCommand::Create { app, .. })
            | Self::Target {
                command:
                    TargetCommand::Assign { app, .. } | TargetCommand::Unassign { app, .. } | TargetCommand::Set { app, .. },
                ..
            } => Some(app),
            Self::Key(
                KeyCommand::Rotate { key, .. }
                | KeyCommand::Revoke { key }
                | KeyCommand::EndOld { key }
                | KeyCommand::Expire { key, .. }
                | KeyCommand::Suspend { key }
                | KeyCommand::Resume { key }
                | KeyCommand::Label { key, .. },
            ) => Some(key),
            _ => None,
        }
    }
}

impl AppCommand {
    /// Returns the application that the command changes, as it was given.
    pub(crate) fn app(&self) -> Option<&str> {
        match self {
            Self::Rename { app, .. }
            | Self::Grant { app, .. }
            | Self::Revoke { app, .. }
            | Self::Suspend { app }
            | Self::Resume { app }
            | Self::Delete { app, .. }
            | Self::Rate { app, .. }
            | Self::Label { app, .. } => Some(app),
            Self::Create { .. } | Self::List { .. } | Self::Show { .. } => None,
        }
    }
}

/// Returns the name of an enum's variant, as serde writes it.
fn name_variant(command: &impl Serialize) -> String {
    match serde_json::to_value(command) {
        Ok(Value::String(name)) => name.replace('_', "-"),
        Ok(Value::Object(members)) => {
            members.into_iter().next().map(|(name, _)| name.replace('_', "-")).unwrap_or_default()
        }
        _ => String::new(),
    }
}
