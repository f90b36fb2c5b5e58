//! Calls a tool as an application. The line of the call and that of its operator have the same id.
//! Only a tool that issues something leaves an act, also if its call is refused after that.

use super::answer::refusal;
use crate::answers::CalledTool;
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::lines::ActLine;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Weak;
use toolwarrant_base::json;
use toolwarrant_core::act::{ACT_PREFIX, Changes, Origin};
use toolwarrant_core::failure::Failure;

pub(super) async fn call(
    context: &OperatorContext,
    origin: &Origin,
    app: &str,
    (tool, arguments): (&str, &str),
) -> Result<CalledTool, OperatorError> {
    let unknown = || OperatorError::not_found(format!("there is no tool `{tool}`; `tools` lists them")).at("tool");
    let tool = context.program.catalogue.tool(tool).ok_or_else(unknown)?;
    if tool.acts || tool.task.is_some() {
        let why = format!("`{}` changes something; an operator calls tools that read or issue", tool.name);
        return Err(refusal(why).at("tool"));
    }
    let arguments = json::read::<&RawValue>(arguments).ok().filter(|json| json.get().starts_with('{'));
    let arguments = arguments.ok_or_else(|| refusal("the arguments are no JSON object").at("arguments"))?;
    let absent = || OperatorError::unavailable("no server runs here, and a call needs one: start it");
    let tools = context.caller.as_ref().and_then(Weak::upgrade).ok_or_else(absent)?;
    let app = context.registry.find(app).await.map_err(|error| OperatorError::from(error).at("app"))?;
    let keyless = context.program.catalogue.roles.unauthenticated;
    // A refusal here leaves the line of a refused command alone.
    let caller = tools.stand_in(&app.id, tool.name).map_err(|failure| match failure.def() == keyless {
        true => refusal(format!("`{}` has no live key, and a call needs the right of one", app.name)).at("app"),
        false => describe(&failure),
    })?;
    let act = context.registry.act(origin, Some(&app.id), Changes::of("calls", Value::Null, tool.name))?;
    let (id, act_id) = match &context.audit {
        Some(audit) if tool.hints.read_only => {
            let id = act.id.replacen(ACT_PREFIX, "call_", 1);
            let (Origin { operator, command }, object, changes) = (origin, Some(&*app.id), Some(&act.changes));
            let (time, request_id, outcome) = (context.clock.latest(), Some(&*id), "ok");
            let line = ActLine { time, act_id: None, request_id, operator, command, object, changes, outcome };
            if !line.write(audit, context.clock.now()) {
                return Err(OperatorError::unavailable("the audit trail has no room; try again"));
            }
            (id, None)
        }
        _ => {
            let id = act.id.clone();
            context.registry.wait_for_lease().await?;
            context.store.put_acts(vec![act]).await?;
            (id.clone(), Some(id))
        }
    };
    let result = tools.call_as(&caller, tool.name, arguments, &id).await.map_err(|failure| describe(&failure))?;
    let unread = |error| refusal(format!("the result is not JSON: {error}"));
    let result = json::read_bytes(&result).map_err(unread)?;
    Ok(CalledTool { result, request_id: id, act_id })
}

fn describe(failure: &Failure) -> OperatorError {
    let message = format!("{}: {}", failure.def().code, failure.message());
    if failure.def().retryable() { OperatorError::unavailable(message) } else { refusal(message) }
}
