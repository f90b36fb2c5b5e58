//! Checks that the flags and the limits of a field fit each other, its type and its place.

use super::require::at;
use crate::fit;
use crate::model::{Kind, NamedType, Type};
use crate::raw::{self, At};
use crate::report::Report;
use crate::rules::Rule;
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldPlace {
    Argument,
    /// Of an object that only arguments have.
    ArgumentPart,
    Result,
}

/// The most levels of objects in an argument.
const LEVELS: usize = 4;

/// The most bytes of a value in an argument. They leave room for the other arguments in a request
/// of 1 MiB.
const VALUE_MAX: usize = 1_000_000;

pub(super) struct FieldCheck<'a> {
    pub(super) file: usize,
    pub(super) name: &'a At<String>,
    pub(super) raw: &'a raw::Field,
    pub(super) ty: &'a Type,
    pub(super) place: FieldPlace,
    pub(super) report: &'a mut Report,
}

fn is(flag: &Option<At<bool>>) -> bool {
    flag.as_ref().is_some_and(|flag| **flag)
}

impl FieldCheck<'_> {
    pub(super) fn check(mut self) {
        self.check_flags();
        self.check_size();
        let raw::Field { r#type, doc, nullable, secret, untrusted, ours, default, .. } = self.raw;
        let (argument, ty) = (self.place != FieldPlace::Result, self.ty);
        if !argument && any_text(ty) && ![secret, untrusted, ours].into_iter().any(is) {
            let message = format!("`{name}` does not say whose text it is", name = **self.name);
            let help = match (matches!(ty.element(), Type::String), is_free(ty)) {
                (true, _) => {
                    "add `untrusted = true` for text from outside, which is cleaned and capped, `secret = true` for a secret, or \
                     `ours = true` for the service's own words; an address is a `url`"
                }
                (_, true) => "add `untrusted = true`: characters that deceive are written out",
                _ => "give its type a `charset`, or make the field a `string` and say it there",
            };
            self.add(Rule::UnmarkedText, r#type.span(), &message, Some(help));
        }
        if is(nullable) && self.place != FieldPlace::ArgumentPart && !doc.contains("null") {
            let help = match argument {
                true => "say it with the word `null`, for whoever calls the tool",
                false => "say it with the word `null`, for whoever reads the result",
            };
            self.add(Rule::UnexplainedNull, doc.span(), "the text does not say what null means", Some(help));
        }
        if let Some(default) = default {
            self.check_default(default);
        }
    }

    fn add(&mut self, rule: Rule, span: Range<usize>, message: &str, help: Option<&str>) {
        self.report.add(rule, at(self.file, span), message, help.map(str::to_owned));
    }

    fn check_flags(&mut self) {
        let raw::Field { optional, nullable, secret, untrusted, ours, told, formerly, .. } = self.raw;
        let (argument, part) = (self.place != FieldPlace::Result, self.place == FieldPlace::ArgumentPart);
        let (text, free) = (matches!(self.ty.element(), Type::String), is_free(self.ty));
        let misplaced = [
            (is(optional) && !argument, optional, "`optional` is for arguments; a result's field may be `nullable`"),
            (is(nullable) && part, nullable, "a part of an argument cannot be `nullable`; it may be `optional`"),
            (
                is(nullable) && argument && !part && !is(optional),
                nullable,
                "a `nullable` argument is `optional`, too: null differs from absent",
            ),
            (
                is(untrusted) && (argument || !(text || free)),
                untrusted,
                "`untrusted` is for texts of others in results; leave it out",
            ),
            (is(ours) && (argument || !text), ours, "`ours` is for results of type `string`"),
            (is(told) && argument, told, "`told` is for results; clients are told the doc of every argument"),
            (is(secret) && part, secret, "a secret stands at the top of the arguments; move it there"),
            (
                is(secret) && !is_text(self.ty.element()) && !matches!(self.ty, Type::Url),
                secret,
                "`secret` is for texts, which can be wiped: a string, a list of strings, or a url",
            ),
            (
                is(secret) && argument && !part && self.is_list_of_texts(),
                secret,
                "a list of texts cannot be `secret`; a list of strings, or one text, can",
            ),
            (is(ours) && is(untrusted), ours, "a text is `ours` or `untrusted`"),
        ];
        for (_, flag, message) in misplaced.into_iter().filter(|(wrong, ..)| *wrong) {
            self.add(Rule::Field, flag.as_ref().map_or(self.name.span(), At::span), message, None);
        }
        if let (Some(formerly), true) = (formerly, self.place != FieldPlace::Argument) {
            self.add(Rule::Field, formerly.span(), "`formerly` is for arguments of tools; leave it out", None);
        }
    }

    fn is_list_of_texts(&self) -> bool {
        let element = self.ty.element();
        matches!(self.ty, Type::List(_)) && is_text(element) && element.needs_body()
    }

    /// Checks that each value of a stranger has a limit.
    fn check_size(&mut self) {
        let (name, is_list) = (&self.raw.r#type, matches!(self.ty, Type::List(_)));
        if let Some(max) = &self.raw.max_items {
            if self.place == FieldPlace::Result || !is_list || is(&self.raw.secret) {
                let message = "`max_items` is for lists of arguments, and for no secret; leave it out";
                self.add(Rule::Field, max.span(), message, None);
            } else if **max == 0 {
                self.add(Rule::Bounds, max.span(), "must be at least 1", None);
            }
        } else if self.place != FieldPlace::Result && is_list && self.ty.element().needs_body() && !is(&self.raw.secret)
        {
            let help = Some("add `max_items = 50`");
            self.add(Rule::Bounds, name.span(), "a list of such items needs `max_items`", help);
        }
        let levels = levels(self.ty);
        if self.place == FieldPlace::Argument && levels > LEVELS {
            let message = format!("this argument has {levels} levels of objects; clients take {LEVELS}");
            self.add(Rule::Bounds, name.span(), &message, Some("put the inner members into the outer object"));
        }
        let mut longest = 0;
        self.ty.visit(&mut |named| {
            longest = longest.max(match &named.kind {
                Kind::Text(max) => max.saturating_mul(4),
                Kind::String(rule) if rule.charset.is_empty() => rule.max.saturating_mul(4),
                Kind::String(rule) => rule.max,
                Kind::Json(max) => *max,
                _ => 0,
            });
        });
        if self.place == FieldPlace::Argument && longest > VALUE_MAX {
            let message =
                format!("a value of this argument can have {longest} bytes; requests have room for {VALUE_MAX}");
            let help =
                "lower its `max_length` or `max_bytes`: a request has at most 1 MiB, and a character up to 4 bytes";
            self.add(Rule::Bounds, name.span(), &message, Some(help));
        }
    }

    fn check_default(&mut self, default: &At<Value>) {
        let wrong = if !is(&self.raw.optional) {
            "only an `optional` argument has a default".to_owned()
        } else if is(&self.raw.nullable) {
            "a `nullable` argument has no default: absent has its own meaning".to_owned()
        } else if is(&self.raw.secret) {
            "a default is no secret: the schema shows it".to_owned()
        } else if !takes_default(self.ty) {
            "a value of this type has no default; leave it out, and say in the doc what absent means".to_owned()
        } else if let Err(why) = fit::fits(self.ty, default, fit::arguments) {
            format!("the default does not fit: {why}")
        } else {
            return;
        };
        self.add(Rule::Field, default.span(), &wrong, None);
    }
}

fn takes_default(ty: &Type) -> bool {
    let has_parts = |named: &Arc<NamedType>| matches!(named.kind, Kind::Object(_) | Kind::Map { .. } | Kind::Json(_));
    !matches!(ty.element(), Type::Timestamp) && !ty.element().as_named().is_some_and(has_parts)
}

fn levels(ty: &Type) -> usize {
    match ty.element().as_named().map(|named| &named.kind) {
        Some(Kind::Object(fields)) => 1 + fields.iter().map(|field| levels(&field.ty)).max().unwrap_or_default(),
        Some(Kind::Map { values, .. }) => 1 + levels(values),
        Some(Kind::Json(_)) => 1,
        _ => 0,
    }
}

pub(super) fn is_text(ty: &Type) -> bool {
    match ty {
        Type::String => true,
        Type::Named(named) => matches!(named.kind, Kind::String(_) | Kind::Text(_)),
        _ => false,
    }
}

/// Returns true for lines of text, and for members that no contract names.
pub(super) fn is_free(ty: &Type) -> bool {
    let is = |named: &Arc<NamedType>| matches!(named.kind, Kind::Text(_) | Kind::Map { .. } | Kind::Json(_));
    ty.element().as_named().is_some_and(is)
}

pub(super) fn any_text(ty: &Type) -> bool {
    match ty.element() {
        Type::String => true,
        Type::Named(named) if matches!(&named.kind, Kind::String(rule) if rule.charset.is_empty()) => true,
        _ => is_free(ty),
    }
}
