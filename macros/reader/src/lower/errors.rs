//! Lowers errors: first those that the framework answers with, in the contract's words, then the
//! contract's own errors.

use super::require::{at, list_missing, require_name, require_text};
use super::tools;
use super::types::{self, Types};
use super::words::{Words, first};
use crate::model::{ErrorCode, Field};
use crate::raw::{self, At, Files, Named};
use crate::report::Report;
use crate::rules::{OUTCOME_UNKNOWN, ROLES, Rule};
use crate::source::{DEFAULTS, ERRORS};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

type RawError<'a> = (&'a At<String>, &'a raw::Error);

const SERVER_ERROR: i32 = -32000;

/// The status that makes a balancer repeat a request.
const HANDED_OVER: u16 = 425;

pub(super) fn lower(files: &Files, types: &Types, words: &Words, report: &mut Report) -> Vec<Arc<ErrorCode>> {
    let own = &files.errors.error;
    let mut played: HashMap<&str, RawError<'_>> = HashMap::new();
    let mut others: Vec<(RawError<'_>, bool)> = Vec::new();
    for (code, error) in own.iter() {
        check(code, error, files, report);
        let by_code = || files.defaults.error.get(code)?.role.as_ref();
        if let (None, Some(role)) = (&error.role, by_code()) {
            let message = format!("the framework answers with `{}` itself", **code);
            let help = format!("add `role = \"{}\"` to word that error, or choose another code for your own", **role);
            report.add(Rule::Role, at(ERRORS, code.span()), message, Some(help));
        }
        match error.role.as_ref().or_else(by_code) {
            None => others.push(((code, error), true)),
            Some(role) if !ROLES.contains(&role.as_str()) => {
                report.unknown(Rule::UnknownRole, at(ERRORS, role.span()), "role", role, ROLES);
                others.push(((code, error), false));
            }
            Some(role) => match played.entry(role) {
                Entry::Occupied(entry) => {
                    let message = format!("`{}` plays the role `{}` already", **entry.get().0, **role);
                    let place = error.role.as_ref().map_or(code.span(), At::span);
                    report.add(Rule::Role, at(ERRORS, place), message, None);
                    others.push(((code, error), false));
                }
                Entry::Vacant(entry) => drop(entry.insert((code, error))),
            },
        }
    }
    let mut lowering = ErrorLowering { types, words, report };
    let mut lowered: Vec<Arc<ErrorCode>> = Vec::new();
    for role in ROLES {
        let plays = |(_, error): &RawError<'_>| error.role.as_ref().is_some_and(|known| known.as_str() == role);
        let default = files.defaults.error.iter().find(plays);
        let written = played.get(role).copied();
        let default = default.filter(|_| role != OUTCOME_UNKNOWN || written.is_some() || words.acts_once);
        if let (None, Some((code, _))) = (written, default)
            && let Some((taken, _)) = own.iter().find(|(taken, _)| taken.as_str() == code.as_str())
        {
            let message = format!("the framework's error of the role `{role}` has the code `{}` too", **code);
            let help = Some(format!("choose another code, or declare an error with `role = \"{role}\"`"));
            lowering.report.add(Rule::Role, at(ERRORS, taken.span()), message, help);
        }
        lowered.extend(lowering.error(written, default, Some(role), true));
    }
    lowered.extend(others.into_iter().filter_map(|(written, whole)| lowering.error(Some(written), None, None, whole)));
    lowered
}

fn check(code: &At<String>, error: &raw::Error, files: &Files, report: &mut Report) {
    let raw::Error { role, retryable: _, retry_after_seconds, http, jsonrpc: _, meaning, brief, remedy, fields: _ } =
        error;
    require_name(ERRORS, code, report);
    for text in [meaning, brief, remedy].into_iter().flatten() {
        require_text(ERRORS, text, report);
    }
    if files.reserved.errors.iter().flatten().any(|name| **name == **code) {
        let message = format!("`{code}` was retired and is reserved", code = **code);
        report.add(Rule::ReservedName, at(ERRORS, code.span()), message, Some(tools::RETIRED.to_owned()));
    }
    if let Some(seconds) = retry_after_seconds.as_ref().filter(|seconds| ***seconds == 0) {
        report.add(Rule::Bounds, at(ERRORS, seconds.span()), "must be at least 1", None);
    }
    if let Some(http) = http.as_ref().filter(|http| !(400..=599).contains(&***http)) {
        report.add(Rule::Bounds, at(ERRORS, http.span()), "an error's status lies between 400 and 599", None);
    }
    let by_code = || files.defaults.error.get(code)?.role.as_ref();
    let is_hand_over = role.as_ref().or_else(by_code).is_some_and(|role| role.as_str() == "handed_over");
    if let Some(http) = http.as_ref().filter(|http| (***http == HANDED_OVER) != is_hand_over) {
        let message = "425 is the status of the role `handed_over` and of no other: balancers repeat the request";
        let help = if is_hand_over { "leave `http` out" } else { "choose another status" };
        report.add(Rule::Role, at(ERRORS, http.span()), message, Some(help.to_owned()));
    }
}

struct ErrorLowering<'a> {
    types: &'a Types,
    words: &'a Words,
    report: &'a mut Report,
}

impl ErrorLowering<'_> {
    /// Reports a key that is in neither only if the error is `whole`; otherwise another problem is
    /// the cause.
    fn error(
        &mut self,
        own: Option<RawError<'_>>,
        default: Option<RawError<'_>>,
        role: Option<&str>,
        whole: bool,
    ) -> Option<Arc<ErrorCode>> {
        let (code, _) = own.or(default)?;
        let (own, default) = (own.map(|(_, error)| error), default.map(|(_, error)| error));
        let tables = [own, default];
        let (retryable, http) = (first(tables, |error| &error.retryable), first(tables, |error| &error.http));
        let text = |key: fn(&raw::Error) -> &Option<At<String>>| first(tables, key);
        let (meaning, brief, remedy) =
            (text(|error| &error.meaning), text(|error| &error.brief), text(|error| &error.remedy));
        let lacks = [
            ("retryable", retryable.is_none()),
            ("http", http.is_none()),
            ("meaning", meaning.is_none()),
            ("remedy", remedy.is_none()),
        ];
        let lacks = list_missing(&lacks);
        if whole && !lacks.is_empty() {
            let message = format!("the error `{}` lacks {lacks}", **code);
            let help =
                "add it; only an error with a `role` takes what it leaves out from the framework's own".to_owned();
            self.report.add(Rule::Shape, at(ERRORS, code.span()), message, Some(help));
        }
        let retryable = retryable.copied().unwrap_or_default();
        let delay = first(tables, |error| &error.retry_after_seconds);
        if let (Some(own), Some(true)) = (own, default.map(|default| default.retryable != Some(retryable))) {
            let place = own.role.as_ref().map_or(code.span(), At::span);
            let message = format!("the framework answers with `{}`, and decides whether that is retryable", **code);
            self.report.add(Rule::Role, at(ERRORS, place), message, Some("leave `retryable` out".to_owned()));
        }
        if let Some(seconds) = own.and_then(|own| own.retry_after_seconds.as_ref()).filter(|_| !retryable) {
            let message = "only a retryable error has `retry_after_seconds`";
            self.report.add(Rule::Bounds, at(ERRORS, seconds.span()), message, None);
        }
        if whole && retryable && delay.is_none() {
            let message = format!("`{}` is retryable, and says not after how many seconds", **code);
            let help = Some("add `retry_after_seconds = 5`".to_owned());
            self.report.add(Rule::RetryableWithoutDelay, at(ERRORS, code.span()), message, help);
        }
        let fill = |text: Option<&At<String>>| text.map(|text| self.words.fill(text)).unwrap_or_default();
        Some(Arc::new(ErrorCode {
            code: code.to_string(),
            role: role.map(str::to_owned),
            retryable,
            retry_after_seconds: delay.filter(|_| retryable).map_or(0, |delay| **delay),
            http: http.map_or(500, |http| **http),
            jsonrpc: first(tables, |error| &error.jsonrpc).copied().unwrap_or(SERVER_ERROR),
            meaning: fill(meaning),
            // The description of a tool names its own resource.
            brief: brief.map(|text| self.words.fill_shared(text)).unwrap_or_default(),
            remedy: fill(remedy),
            fields: self.fields(own, default),
        }))
    }

    fn fields(&mut self, own: Option<&raw::Error>, default: Option<&raw::Error>) -> Vec<Field> {
        let mut lower = |file, error: Option<&raw::Error>| {
            let written: Option<&Named<raw::Field>> = error.and_then(|error| error.fields.as_ref());
            self.types.fields(file, written, types::FieldPlace::Result, self.report)
        };
        let (mut described, mut fields) = (lower(ERRORS, own), lower(DEFAULTS, default));
        let kind = |Field { ty, nullable, secret, untrusted, ours, .. }: &Field| {
            format!("{ty:?} {nullable} {secret} {untrusted} {ours}")
        };
        for field in &mut fields {
            let Some(at_own) = described.iter().position(|own| own.name == field.name) else { continue };
            let described = described.remove(at_own);
            if kind(&described) != kind(field) {
                let message = format!("`{}` is the framework's: only its doc can be another", field.name);
                let mut names = own.and_then(|own| own.fields.as_ref()).into_iter().flat_map(Named::keys);
                let name = names.find(|name| ***name == field.name);
                let place = name.map(At::span).unwrap_or_default();
                self.report.add(Rule::Field, at(ERRORS, place), message, None);
            }
            field.doc = described.doc;
        }
        fields.extend(described);
        fields
    }
}
