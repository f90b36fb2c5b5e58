//! The recipient of an answer, and the check that it may see each target in the result.

use super::frame::Frame;
use crate::catalogue::BodyDef;
use crate::picture::Picture;
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

impl TargetIds for Picture {}

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

pub(crate) trait Sight: Sync {
    fn admits(&self, resource: &str, id: &str) -> bool;
}

/// The reader of an answer: how it is framed, and which targets it may contain.
#[derive(Clone, Copy)]
pub struct Recipient<'a> {
    pub(crate) frame: Frame<'a>,
    /// `None` if the caller may see every target.
    pub(crate) sight: Option<&'a dyn Sight>,
    pub(crate) body: Option<BodyDef>,
}

#[cfg(test)]
impl<'a> From<Frame<'a>> for Recipient<'a> {
    fn from(frame: Frame<'a>) -> Self {
        Self { frame, sight: None, body: None }
    }
}

impl Recipient<'_> {
    /// Returns true if rendered JSON can be copied into the answer.
    pub(super) fn is_written_whole(&self) -> bool {
        self.body.is_none() || matches!(self.frame, Frame::Plain)
    }

    /// Admits targets of tasks that the caller made, too.
    pub(super) fn check(&self, value: &impl TargetIds) -> serde_json::Result<()> {
        let refused = self.sight.and_then(|sight| find_refused(value, |resource, id| sight.admits(resource, id)));
        refused.map_or(Ok(()), |(resource, id)| {
            let id = clean(&id);
            let why = format!("the result holds the {resource} `{id}`, which is not granted to the application");
            Err(serde_json::Error::custom(why))
        })
    }
}
