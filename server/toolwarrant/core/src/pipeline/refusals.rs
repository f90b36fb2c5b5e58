//! The failures of the steps of a call. Their messages say what to do next.

use crate::access::AccessError;
use crate::advice::Advice;
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::handler::{Call, Flag};
use crate::tasks::WriteRefusal;
use toolwarrant_base::wording::Words;
use toolwarrant_base::words;

pub(super) const USED: &str = "this X-Nonce was used before: sign each request, a retry too, with a nonce of its own.";

const NO_LEASE: &str = "this replica of the server cannot reach its store, so it does not know at present which keys are live: repeat \
                        the request after `retry_after_seconds`.";

/// Makes the failure for a request that has no caller, or no longer has one.
pub(super) fn no_caller(catalogue: &'static Catalogue, error: AccessError) -> Failure {
    match error {
        AccessError::Unauthenticated => Failure::plain(catalogue.roles.unauthenticated),
        // Something may have been done before the answer, so the remedy of the code does not fit.
        AccessError::NoLease => Failure::exactly(catalogue.roles.overloaded, NO_LEASE),
    }
}

/// Makes the failure for a target that does not exist or is not granted. A client cannot see the
/// difference.
pub(super) fn not_found(call: &Call<'_>) -> Failure {
    missing(call, ["no such ", " for this application"])
}

/// Makes the failure for a target that is granted and has left.
pub(super) fn has_left(call: &Call<'_>) -> Failure {
    let after = " was there and is gone: it was removed or disconnected, and it has this id again if it comes back";
    missing(call, ["this ", after])
}

fn missing(call: &Call<'_>, [before, after]: [&'static str; 2]) -> Failure {
    let named = call.tool.target.as_ref().map_or("target", |target| target.resource);
    let failure = Failure::new(call.catalogue.roles.not_found, words![before, named, after]);
    failure.with_advice(find_target(call), call.caller.application.permissions)
}

/// Makes the failure for a target that is unavailable, with the seconds until a repeat if they are
/// known.
pub(super) fn unavailable(call: &Call<'_>, seconds: Option<u64>) -> Failure {
    with_wait(Failure::plain(call.catalogue.roles.upstream_unavailable), seconds)
}

fn with_wait(failure: Failure, seconds: Option<u64>) -> Failure {
    match seconds {
        Some(seconds) => failure.with("retry_after_seconds", seconds),
        None => failure,
    }
}

/// Returns the advice for finding the id of the target.
pub(super) fn find_target(call: &Call<'_>) -> Advice {
    let resource = call.tool.target.as_ref().and_then(|target| call.catalogue.resource(target.resource));
    resource.map_or(Advice::NONE, |resource| resource.find)
}

/// Makes the failure for a flag that is false and becomes true by itself.
pub(super) fn passing(call: &Call<'_>, flag: &Flag, seconds: Option<u64>) -> Failure {
    let what = explain_flag(call, flag, " at present");
    with_wait(Failure::new(call.catalogue.roles.upstream_unavailable, what), seconds)
}

/// Says of which capability a flag is false, and why.
fn explain_flag(call: &Call<'_>, flag: &Flag, when: &'static str) -> Words {
    let target = call.tool.target.as_ref();
    let (named, name) = target.map_or(("target", ""), |target| (target.resource, target.requires.unwrap_or_default()));
    words!["`capabilities.", name, "` is false for this ", named, when, ": ", flag.refusal().unwrap_or_default()]
}

/// Makes the failure for a flag that is false. It is not retryable even if there is a remedy,
/// because only the remedy changes the flag.
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

/// Makes the failure for a handler that answered for another tool, or is missing. Generated code
/// rules out both.
#[must_use]
pub fn no_route(call: &Call<'_>) -> Failure {
    internal_failure(call, "the handler's answer is not this tool's")
}

/// Logs why the server failed. The failure gives the client the id of the request.
pub(super) fn internal_failure(call: &Call<'_>, why: &str) -> Failure {
    tracing::error!(request_id = call.request_id, why, "internal error");
    Failure::plain(call.catalogue.roles.internal).with("request_id", call.request_id)
}

pub(super) fn overload(catalogue: &'static Catalogue, what: &'static str) -> Failure {
    Failure::new(catalogue.roles.overloaded, what)
}

/// Makes the failure for `requests` that the budget of an application does not admit.
pub(super) fn rate_limited(catalogue: &Catalogue, requests: u32, limit: u32) -> Failure {
    let role = catalogue.roles.rate_limited;
    if requests > limit {
        let fewer = " requests a minute: send fewer at once.";
        return Failure::exactly(role, words!["a batch of ", requests, " never fits the application's ", limit, fewer]);
    }
    let spent = " requests a minute are spent; all its keys share them";
    Failure::new(role, words!["the application's ", limit, spent])
}
