//! The context in which a tool is lowered.

use crate::lower::require::at;
use crate::lower::types::Types;
use crate::lower::words::Words;
use crate::model::{ErrorCode, Field, PermissionSpec, ProbeSpec, ResourceSpec, ToolsetSpec};
use crate::raw::{At, Files, Unread};
use crate::report::{Report, Source};
use crate::rules::Rule;
use std::sync::Arc;
use toolwarrant_common::line_column;

pub(crate) struct Scope<'a> {
    pub(crate) permissions: Vec<Arc<PermissionSpec>>,
    pub(crate) toolsets: Vec<Arc<ToolsetSpec>>,
    pub(crate) probes: Vec<Arc<ProbeSpec>>,
    pub(crate) errors: Vec<Arc<ErrorCode>>,
    pub(crate) resources: Vec<Arc<ResourceSpec>>,
    pub(crate) types: Types,
    pub(crate) words: Words,
    /// A name in the files is known even if its entry could not be read or lowered.
    pub(crate) files: &'a Files,
}

pub(super) struct Arguments<'a> {
    /// Those without a problem.
    pub(super) lowered: Vec<Field>,
    pub(super) names: Vec<&'a str>,
}

impl Arguments<'_> {
    /// Returns `Ok(None)` if the argument's problem is already reported.
    pub(super) fn find(&self, name: &str) -> Result<Option<&Field>, ()> {
        let found = self.lowered.iter().find(|field| field.name == name);
        if found.is_none() && !self.names.contains(&name) { Err(()) } else { Ok(found) }
    }
}

pub(super) struct Lowering<'a> {
    pub(super) file: usize,
    pub(super) source: &'a Source,
    pub(super) scope: &'a Scope<'a>,
    pub(super) report: &'a mut Report,
}

impl Lowering<'_> {
    pub(super) fn find<T>(
        &mut self,
        rule: Rule,
        kind: &str,
        name: &At<String>,
        unread: &Unread,
        all: &[Arc<T>],
        key: fn(&T) -> &String,
    ) -> Option<Arc<T>> {
        let found = all.iter().find(|candidate| key(candidate) == &**name).cloned();
        if found.is_none() && !unread.may_be(name) {
            self.unknown(rule, kind, name, all.iter().map(|candidate| key(candidate).as_str()));
        }
        found
    }

    pub(super) fn unknown<'n>(
        &mut self,
        rule: Rule,
        kind: &str,
        name: &At<String>,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        self.report.unknown(rule, at(self.file, name.span()), kind, name, known);
    }

    pub(super) fn add<T>(&mut self, rule: Rule, place: &At<T>, message: impl Into<String>, help: Option<String>) {
        self.report.add(rule, at(self.file, place.span()), message, help);
    }

    pub(super) fn place_text<T>(&self, place: &At<T>) -> String {
        format!("{}:{}", self.source.shown, line_column(&self.source.text, place.span().start).0)
    }
}
