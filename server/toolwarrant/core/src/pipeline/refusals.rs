//! The failures of the steps of a call. Their messages say what to do next.

use crate::access::{AccessError, Caller};
use crate::advice::Advice;
use crate::catalogue::{Catalogue, ToolDef};
use crate::failure::Failure;
use crate::handler::{Call, Flag};
use crate::tasks::WriteRefusal;
use toolwarrant_base::text::Remark;
use toolwarrant_base::wording::Words;
use toolwarrant_base::words;

pub(super) const USED: &str = "this X-Nonce was used before: sign each request, a retry too, with a nonce of its own.";

const NO_LEASE: &str = "this replica of the server cannot reach its store, so it does not know at present which keys are live: repeat \
                        the request after `retry_after_seconds`.";

pub(super) fn no_caller(catalogue: &'static Catalogue, error: AccessError) -> Failure {
    match error {
        AccessError::Unauthenticated => Failure::plain(catalogue.roles.unauthenticated),
        // Something may have been done before the answer, so the remedy of the code does not fit.
        AccessError::NoLease => Failure::exactly(catalogue.roles.overloaded, NO_LEASE),
    }
}

pub(super) fn not_found(catalogue: &'static Catalogue, tool: &'static ToolDef, caller: &Caller) -> Failure {
    let named = target_name(tool);
    let failure = Failure::new(catalogue.roles.not_found, words!["no such ", named, " for this application"]);
    failure.with_advice(find_target(catalogue, tool), caller.application.permissions)
}

pub(super) fn has_left(call: &Call<'_>) -> Failure {
    let after = " was there and is gone: it was removed or disconnected, and it has this id again if it comes back. \
                 Report it; take another only if any will do.";
    Failure::exactly(call.catalogue.roles.not_found, words!["this ", target_name(call.tool), after])
}

fn target_name(tool: &'static ToolDef) -> &'static str {
    tool.target.as_ref().map_or("target", |target| target.resource)
}

pub(super) fn unavailable(call: &Call<'_>, why: Remark, seconds: Option<u64>) -> Failure {
    with_wait(Failure::fault(call.catalogue.roles.upstream_unavailable, why), seconds)
}

fn with_wait(failure: Failure, seconds: Option<u64>) -> Failure {
    match seconds {
        Some(seconds) => failure.with("retry_after_seconds", seconds),
        None => failure,
    }
}

pub(super) fn find_target(catalogue: &'static Catalogue, tool: &'static ToolDef) -> Advice {
    let resource = tool.target.as_ref().and_then(|target| catalogue.resource(target.resource));
    resource.map_or(Advice::NONE, |resource| resource.find)
}

/// The seconds until a repeat, if one target is not ready. Most need a minute or more.
const PASSING_SECONDS: u64 = 30;

pub(super) fn passing(call: &Call<'_>, flag: &Flag, seconds: Option<u64>) -> Failure {
    let what = explain_flag(call, flag, " at present");
    with_wait(Failure::new(call.catalogue.roles.upstream_unavailable, what), Some(seconds.unwrap_or(PASSING_SECONDS)))
}

fn explain_flag(call: &Call<'_>, flag: &Flag, when: &'static str) -> Words {
    let target = call.tool.target.as_ref();
    let (named, name) = target.map_or(("target", ""), |target| (target.resource, target.requires.unwrap_or_default()));
    words!["`capabilities.", name, "` is false for this ", named, when, ": ", flag.refusal().unwrap_or_default()]
}

/// Is not retryable even if there is a remedy: only the remedy changes the flag.
pub(super) fn not_supported(call: &Call<'_>, flag: &Flag) -> Failure {
    let what = explain_flag(call, flag, "");
    let (role, reader) = (call.catalogue.roles.not_supported, call.caller.application.permissions);
    match flag {
        Flag::Curable { why: _, cure } => {
            let stays = call.catalogue.phrases.curable.for_reader(reader);
            Failure::from_sentences(role, words![what, ". ", stays]).with_advice(*cure, reader)
        }
        Flag::Offered | Flag::Unreachable | Flag::Passing(_) | Flag::Refused(_) => Failure::new(role, what),
    }
}

pub(super) fn not_accepted(call: &Call<'_>, refused: WriteRefusal) -> Failure {
    let roles = &call.catalogue.roles;
    match refused {
        WriteRefusal::Busy { task_id, retry_after_seconds } => {
            Failure::plain(roles.target_busy).with("retry_after_seconds", retry_after_seconds).with("task_id", task_id)
        }
        WriteRefusal::UsedNonce => Failure::exactly(roles.unauthenticated, USED),
        WriteRefusal::Full => overload(call.catalogue, "the queue of tasks is full"),
        WriteRefusal::Unavailable => overload(call.catalogue, "the server cannot write at present"),
        WriteRefusal::Broken(why) => internal_failure(call, &why),
    }
}

/// Makes a failure that generated code rules out: a handler is missing, or answered for another
/// tool.
#[must_use]
pub fn no_route(call: &Call<'_>) -> Failure {
    internal_failure(call, "the handler's answer is not this tool's")
}

/// Logs the cause. The client gets only the id of the request.
pub(super) fn internal_failure(call: &Call<'_>, why: &str) -> Failure {
    tracing::error!(request_id = call.request_id, why, "internal error");
    Failure::plain(call.catalogue.roles.internal).with("request_id", call.request_id)
}

/// Refuses the answer of a call that was carried out. A client may send a call again if its key was
/// refused, so the code is not that.
pub(super) fn withheld(call: &Call<'_>) -> Failure {
    let what = "this call was carried out, and its right ended meanwhile: the key, the permission or the target was taken away. Its \
                answer is withheld. Do not repeat it; report it.";
    Failure::exactly(call.catalogue.roles.forbidden, what)
}

pub(super) fn unknown_outcome(call: &Call<'_>, failure: Failure) -> Failure {
    let role = call.catalogue.roles.outcome_unknown.filter(|_| call.tool.acts_once());
    role.map_or(failure, |role| Failure::plain(role).with("request_id", call.request_id))
}

pub(super) fn overload(catalogue: &'static Catalogue, what: &'static str) -> Failure {
    Failure::new(catalogue.roles.overloaded, what)
}

pub(super) fn rate_limited(catalogue: &Catalogue, requests: u32, limit: u32) -> Failure {
    let role = catalogue.roles.rate_limited;
    if requests > limit {
        let fewer = " requests a minute: send fewer at once.";
        return Failure::exactly(role, words!["a batch of ", requests, " never fits the application's ", limit, fewer]);
    }
    let spent = " requests a minute are spent; all its keys share them";
    Failure::new(role, words!["the application's ", limit, spent])
}
