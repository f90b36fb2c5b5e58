//! The commands of operators. Each kind of command has its own file; [`CommandRow`] has all else.
//! Start at [`execute`], the one place that decides if an operator may use a command.
//!
//! A command that changes something leaves an act in the store and a line in the audit trail. A
//! command that was refused leaves a line alone.

mod acts;
mod answer;
mod applications;
mod audit;
mod call;
mod clock;
mod cluster;
mod console;
mod contract;
mod find;
mod grants;
mod keys;
mod operator;
mod overview;
mod table;
mod targets;
mod tasks;
mod trail;

pub use answer::CommandAnswer;
pub use audit::AuditCommand;
pub(crate) use cluster::StoreCommand;
pub use console::ConsoleCommand;
pub(crate) use contract::tools;
pub use keys::KeyCommand;
pub use operator::OperatorCommand;
pub(crate) use table::CommandRow;
pub use targets::{TargetCommand, TargetQuery, note_unreadable};
pub use tasks::{TaskCommand, TaskListQuery};

use crate::answers::{OwnAnswer, Readiness};
use crate::backup;
use crate::context::OperatorContext;
use crate::doctor;
use crate::error::{FailureCode, OperatorError};
use crate::lines::ActLine;
use answer::{put_act, refusal, resolve};
use applications::AppCommand;
use clock::ClockCommand;
use serde_json::Value;
use toolwarrant_core::act::{Changes, Operator, Origin, Role};
use toolwarrant_http::monitor::MonitorSource;

pub async fn execute(context: &OperatorContext, operator: &Operator, command: OperatorCommand) -> CommandAnswer {
    let CommandRow { name, role, object, .. } = judge(context, &command)?;
    let origin = Origin { operator: operator.clone(), command: name };
    if role == Role::View {
        return carry_out(context, &origin, command).await;
    }
    let object = match object {
        Some(named) => resolve(context, named).await,
        None => None,
    };
    let done = match operator.role >= role {
        true => carry_out(context, &origin, command).await,
        false => Err(not_allowed(&origin, role)),
    };
    if done.is_ok() && context.server.is_some() {
        let (operator, command) = (&*origin.operator.name, &*origin.command);
        tracing::info!(command, object, operator, "an operator changed something");
    }
    if let (Err(error), Some(audit)) = (&done, &context.audit) {
        let now = context.clock.latest();
        let Origin { operator, command } = &origin;
        let (object, outcome) = (object.as_deref(), error.code.as_str());
        let (act_id, request_id, changes) = (None, None, None);
        let line = ActLine { time: now, act_id, request_id, operator, command, object, changes, outcome };
        if !line.refuse(audit, now) {
            tracing::error!(command, outcome, "the audit trail has no room for the line of a refused command");
        }
    }
    context.write_lines().await;
    done
}

fn judge<'a>(context: &OperatorContext, command: &'a OperatorCommand) -> Result<CommandRow<'a>, OperatorError> {
    if let OperatorCommand::Target { resource, .. } = command
        && context.program.catalogue.resource(resource).is_none()
    {
        return Err(refusal("the contract has no such resource"));
    }
    let row = command.row();
    if let OperatorCommand::App(AppCommand::Call { tool, .. }) = command {
        let reads = context.program.catalogue.tool(tool);
        // The tools of a toolset, such as pictures of screens, are not for everybody who may view.
        let reads = reads.is_none_or(|tool| tool.hints.read_only && tool.toolset.is_none());
        return Ok(if reads { CommandRow { role: Role::View, ..row } } else { row });
    }
    let OperatorCommand::Own { command, .. } = command else { return Ok(row) };
    let own = context.own.as_ref().ok_or_else(|| refusal("the service has no commands of its own"))?;
    let changes = (own.changes)(command.clone()).map_err(refusal)?;
    Ok(if changes { row } else { CommandRow { role: Role::View, ..row } })
}

fn not_allowed(origin: &Origin, role: Role) -> OperatorError {
    let Origin { operator, command } = origin;
    let (who, how) = match role {
        Role::Owner => ("the owner of the data folder", "run it as that user or as root"),
        Role::Operate | Role::View => (
            "operators who may change something",
            "ask a member of the group of operate.sock, or the owner of the data folder",
        ),
    };
    let name = &operator.name;
    OperatorError::new(
        FailureCode::NotAllowed,
        format!("`{command}` is for {who}, and {name} may only {}; {how}", describe(operator.role)),
    )
}

fn describe(role: Role) -> &'static str {
    match role {
        Role::View => "read here",
        Role::Operate => "read and change here",
        Role::Owner => "do everything here",
    }
}

async fn carry_out(context: &OperatorContext, origin: &Origin, command: OperatorCommand) -> CommandAnswer {
    if context.shared.is_some() {
        command.row().refuse_on_files()?;
    }
    match command {
        OperatorCommand::App(command) => applications::execute(context, origin, command).await,
        OperatorCommand::Key(command) => keys::execute(context, origin, command).await,
        OperatorCommand::Target { resource, command } => targets::execute(context, origin, &resource, command).await,
        OperatorCommand::Task(TaskCommand::List(query)) => Ok(tasks::list(context, query).await?.into()),
        OperatorCommand::Task(TaskCommand::Count(query)) => Ok(tasks::count(context, query).await?.into()),
        OperatorCommand::Task(TaskCommand::Show { task }) => Ok(tasks::show(context, &task).await?.into()),
        OperatorCommand::Refunds(query) => tasks::refunds(context, query).await,
        OperatorCommand::Find { id } => Ok(find::find(context, &id).await?.into()),
        OperatorCommand::Acts(query) => acts::list(context, query).await,
        OperatorCommand::Tools { name } => tools(context.program.catalogue, name.as_deref()),
        OperatorCommand::Audit(command) => audit::execute(context, command).await,
        OperatorCommand::Backup { file } => {
            // The backup contains its own act. A folder that nothing can be written to is also
            // saved.
            let act_id = put_act(context, origin, Changes::default()).await;
            context.write_lines().await;
            context.lines.wait_until_recorded(&*context.store).await;
            let _ = context.registry.store_uses().await;
            Ok(backup::take(context, file, act_id).await?.into())
        }
        OperatorCommand::Restore { .. } => Err(refusal("a server uses the data folder; stop it first")),
        OperatorCommand::Store(StoreCommand::BeginAgain { .. }) => cluster::begin_again(context, origin, None).await,
        OperatorCommand::Store(_) => Err(refusal("a server runs here; this command needs only the URL of the store")),
        OperatorCommand::Cluster(command) => cluster::execute(context, origin, command).await,
        OperatorCommand::Console(command) => console::execute(context, origin, command).await,
        OperatorCommand::Clock(ClockCommand::Accept) => clock::accept(context, origin).await,
        OperatorCommand::Own { command, patience: _ } => own(context, origin, command).await,
        OperatorCommand::Ready => ready(context).await,
        OperatorCommand::Overview => Ok(Box::new(overview::describe(context).await?).into()),
        OperatorCommand::Doctor => {
            audit::flush(context).await;
            let found = doctor::examine(
                &context.folder,
                &context.program,
                Ok((&*context.store, context.shared.as_deref())),
                context.clock.now(),
            );
            let mut found = found.await;
            // Without a server there are no calls, so the check stands here only if it warns.
            let since = context.clock.now().minus(doctor::LOOKED_BACK);
            if let Some(why) = context.server.as_ref().and_then(|server| server.describe_unavailable(since)) {
                found.warn(&doctor::UPSTREAM, Ok(vec![why]));
            }
            Ok(found.into())
        }
    }
}

async fn ready(context: &OperatorContext) -> CommandAnswer {
    let server = context.server.as_ref().ok_or_else(|| refusal("no server runs in this process"))?;
    match server.unready().await {
        Some(why) => Err(OperatorError::unavailable(why)),
        None => Ok(Readiness { ready: true, remark: server.remark() }.into()),
    }
}

/// Stores the act first, because the service may be killed after its change.
async fn own(context: &OperatorContext, origin: &Origin, command: Value) -> CommandAnswer {
    let own = context.own.as_ref().ok_or_else(|| refusal("the service has no commands of its own"))?;
    let act_id = match (own.changes)(command.clone()).map_err(refusal)? {
        true => Some(put_act(context, origin, Changes::default()).await?),
        false => None,
    };
    let is_change = act_id.is_some();
    let mut value = (own.run)(command).await.map_err(refusal)?;
    if let (Some(act_id), Value::Object(members)) = (act_id, &mut value) {
        members.insert("act_id".to_owned(), act_id.into());
    }
    Ok(OwnAnswer { value, is_change }.into())
}
