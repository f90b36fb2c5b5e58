//! The recipient of an answer, and the check that it may see each target whose id is in the result.

use super::frame::Frame;
use crate::access::Granted;
use crate::handler::Call;
use serde::ser::Error;
use std::sync::Arc;
use toolwarrant_base::text::{Secret, clean};
use zeroize::Zeroize;

/// Receives the resource and the id of each target in a value.
pub type VisitId<'a> = &'a mut dyn FnMut(&'static str, &Arc<str>);

/// A value of a result, which may hold ids of targets. The generator implements it by the contract.
pub trait TargetIds {
    /// Passes the id of each target in this value to `visit`. Default: there is none.
    fn visit_ids(&self, _visit: VisitId<'_>) {}
}

impl<T: TargetIds> TargetIds for Option<T> {
    fn visit_ids(&self, visit: VisitId<'_>) {
        self.iter().for_each(|value| value.visit_ids(visit));
    }
}

impl<T: TargetIds> TargetIds for Vec<T> {
    fn visit_ids(&self, visit: VisitId<'_>) {
        self.iter().for_each(|value| value.visit_ids(visit));
    }
}

impl<T: TargetIds + Zeroize> TargetIds for Secret<T> {
    fn visit_ids(&self, visit: VisitId<'_>) {
        self.expose().visit_ids(visit);
    }
}

/// Returns the first id in a value that `admits` refuses, with its resource.
pub(crate) fn find_refused(
    value: &impl TargetIds,
    admits: impl Fn(&str, &str) -> bool,
) -> Option<(&'static str, Arc<str>)> {
    let mut refused = None;
    value.visit_ids(&mut |resource, id| {
        if refused.is_none() && !admits(resource, id) {
            refused = Some((resource, Arc::clone(id)));
        }
    });
    refused
}

/// The recipient of an answer: the frame of its transport, and the targets that its caller may see.
#[derive(Clone, Copy)]
pub struct Recipient<'a> {
    pub(super) frame: Frame<'a>,
    /// The call, unless its caller may see every target.
    narrow: Option<&'a Call<'a>>,
}

impl<'a> From<&'a Call<'a>> for Recipient<'a> {
    fn from(call: &'a Call<'a>) -> Self {
        let grants = &call.caller.application.grants;
        let all = call.catalogue.resources.iter().all(|resource| grants.of(resource.name) == Some(&Granted::All));
        Self { frame: call.frame, narrow: (!all).then_some(call) }
    }
}

#[cfg(test)]
impl<'a> From<Frame<'a>> for Recipient<'a> {
    fn from(frame: Frame<'a>) -> Self {
        Self { frame, narrow: None }
    }
}

impl Recipient<'_> {
    /// Checks that the caller may see each target in a value, or made a task on it.
    pub(super) fn check(&self, value: &impl TargetIds) -> serde_json::Result<()> {
        let refused = self.narrow.and_then(|call| find_refused(value, |resource, id| call.may_show(resource, id)));
        refused.map_or(Ok(()), |(resource, id)| {
            let id = clean(&id);
            let why = format!("the result holds the {resource} `{id}`, which is not granted to the application");
            Err(serde_json::Error::custom(why))
        })
    }
}
