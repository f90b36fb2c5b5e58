//! The first checks of a call.

use super::refusals::find_target;
use crate::access::Caller;
use crate::args::{self, Arguments, Taken};
use crate::catalogue::{Catalogue, ToolDef};
use crate::failure::Failure;
use crate::handler::{Call, Grant};
use toolwarrant_base::wording::Echo;
use toolwarrant_base::words;

pub(super) fn find(catalogue: &'static Catalogue, caller: &Caller, name: &str) -> Result<&'static ToolDef, Failure> {
    catalogue.tool(name).filter(|tool| caller.application.toolsets.offers(tool)).ok_or_else(|| {
        let mut visible = catalogue.tools.iter().filter(|tool| caller.application.permissions.covers(tool.right));
        let meant = visible.find(|tool| name.strip_suffix(tool.name).is_some_and(|rest| rest.ends_with("__")));
        let unknown = words!["there is no tool `", Echo::of(name), "`"];
        match meant {
            Some(tool) => {
                let what = words![unknown, "; the server's own name is `", tool.name, "`"];
                Failure::exactly(catalogue.roles.unknown_tool, what)
            }
            None => Failure::new(catalogue.roles.unknown_tool, unknown),
        }
    })
}

pub(super) fn permit(catalogue: &'static Catalogue, caller: &Caller, tool: &'static ToolDef) -> Result<Grant, Failure> {
    if caller.application.permissions.covers(tool.right) {
        return Ok(Grant::new(tool));
    }
    let (application, permission) = (Echo::of(&caller.application.name), tool.permission.name);
    if caller.application.suspended {
        let what = words!["the application `", application, "` is suspended; its operator can resume it"];
        return Err(Failure::exactly(catalogue.roles.forbidden, what));
    }
    let what = words![
        "the application `",
        application,
        "` lacks the permission `",
        permission,
        "`, which `",
        tool.name,
        "` needs"
    ];
    Err(Failure::new(catalogue.roles.forbidden, what))
}

pub(super) fn parse<A: Arguments>(call: &Call<'_>, raw: &str) -> Result<A, Failure> {
    match args::parse::<A>(raw) {
        Ok(Taken { args, shown, left_out }) => {
            if !left_out.is_empty() {
                let (request_id, tool) = (call.request_id, call.tool.name);
                tracing::debug!(request_id, tool, ?left_out, "the arguments have members that no tool has");
                call.note_left_out(&left_out);
            }
            call.note_arguments(shown);
            Ok(args)
        }
        Err(refused) => {
            call.note_arguments(Some(serde_json::value::to_raw_value(&refused.names).unwrap_or_default()));
            let wrong_id = call.tool.target.as_ref().is_some_and(|target| refused.wrong.contains(&target.arg));
            let failure = Failure::new(call.catalogue.roles.invalid_argument, refused.what);
            Err(match wrong_id {
                true => failure.and(find_target(call.catalogue, call.tool)),
                false if refused.wrong.contains(&"task_id") => failure.and(call.catalogue.phrases.lost_task),
                false => failure,
            })
        }
    }
}
