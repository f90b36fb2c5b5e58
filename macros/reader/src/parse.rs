//! Parses text into `raw`, and checks syntax and shape. Each entry is read separately, so that
//! one mistake does not hide the next.

use crate::raw::{At, Defaults, ErrorsFile, Files, Named, ReservedFile, ServiceFile, ToolsFile, TypesFile, Unread};
use crate::report::{Place, Report, Source};
use crate::rules::Rule;
use crate::source::{DEFAULTS, ERRORS, FIRST_TOOLS, RESERVED, SERVICE, TYPES};
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use toolwarrant_common::shape::{self, Misshape};

pub(crate) fn common(sources: &[Source], report: &mut Report) -> Files {
    let mut root = |file: usize| root(file, &sources[file], report);
    let (mut service, mut errors, mut types) = (root(SERVICE), root(ERRORS), root(TYPES));
    let (mut reserved, mut defaults) = (root(RESERVED), root(DEFAULTS));
    let files = Files {
        service: ServiceFile {
            service: service.require("service", report),
            protocol: service.one("protocol", report),
            limits: service.one("limits", report),
            readers: service.one("readers", report),
            phrase: service.one("phrase", report),
            text: service.parse_named("text", report),
            number: service.parse_named("number", report),
            permission: service.parse_named("permission", report),
            toolset: service.parse_named("toolset", report),
            resource: service.parse_named("resource", report),
            probe: service.parse_named("probe", report),
            state: service.parse_named("state", report),
        },
        errors: ErrorsFile { error: errors.parse_named("error", report) },
        types: TypesFile { r#type: types.parse_named("type", report) },
        reserved: ReservedFile {
            tools: reserved.one("tools", report),
            errors: reserved.one("errors", report),
            values: reserved.one("values", report),
            allowed: reserved.parse_named("allowed", report),
        },
        defaults: Defaults {
            protocol: defaults.require("protocol", report),
            limits: defaults.require("limits", report),
            readers: defaults.require("readers", report),
            phrase: defaults.require("phrase", report),
            state: defaults.parse_named("state", report),
            read_task: defaults.require("read_task", report),
            error: defaults.parse_named("error", report),
        },
        tools: Vec::new(),
        is_whole: true,
    };
    for root in [service, errors, types, reserved, defaults] {
        root.finish(report);
    }
    files
}

pub(crate) fn tools(sources: &[Source], report: &mut Report) -> (Vec<(String, ToolsFile)>, bool) {
    let mut is_whole = true;
    let one = |(file, source): (usize, &Source)| {
        let mut root = root(file, source, report);
        let name = source.shown.rsplit('/').next().and_then(|name| name.strip_suffix(".toml")).unwrap_or_default();
        if !root.table.contains_key("tool") && !root.broken {
            let help = Some("write a `[[tool]]`, or remove the file".to_owned());
            report.add(Rule::Shape, root.place(0..0), "this file declares no tool", help);
        }
        let (tool, whole) = root.list("tool", report);
        is_whole &= whole && !root.broken;
        root.finish(report);
        (name.to_owned(), ToolsFile { tool })
    };
    let files = sources.iter().enumerate().skip(FIRST_TOOLS).map(one).collect();
    (files, is_whole)
}

fn root<'i>(file: usize, source: &'i Source, report: &mut Report) -> Root<'i> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    let mut twice = Vec::new();
    for error in errors {
        let span = error.span().unwrap_or_default();
        let (line, header) = (line(&source.text, span.start), header(&source.text, span.start));
        if error.message() == "duplicate key" && twice.contains(&header) {
            // The table is given twice. Its keys are not another problem.
            continue;
        }
        if line == header {
            twice.push(header);
        }
        report.add(Rule::Syntax, Place { file, span }, error.message().to_owned(), None);
    }
    Root { file, table: table.into_inner(), broken: !report.is_readable(file), known: Vec::new() }
}

fn line(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |before| before + 1)
}

fn header(text: &str, at: usize) -> usize {
    text[..at].rfind("\n[").map_or(0, |before| before + 1)
}

/// Entries are taken out by name; those that remain at the end are unknown.
struct Root<'i> {
    file: usize,
    table: DeTable<'i>,
    /// If the file is absent or has syntax errors, an entry that seems to be missing may only be
    /// unreadable.
    broken: bool,
    known: Vec<&'static str>,
}

impl<'i> Root<'i> {
    fn take(&mut self, key: &'static str) -> Option<(Spanned<DeString<'i>>, Spanned<DeValue<'i>>)> {
        self.known.push(key);
        self.table.remove_entry(key)
    }

    fn one<T: DeserializeOwned>(&mut self, key: &'static str, report: &mut Report) -> Option<T> {
        let (_, value) = self.take(key)?;
        read(self.file, value, report)
    }

    fn require<T: DeserializeOwned>(&mut self, key: &'static str, report: &mut Report) -> Option<T> {
        if !self.table.contains_key(key) && !self.broken {
            let help = Some(format!("write a table `[{key}]`"));
            report.add(Rule::Shape, self.place(0..0), format!("missing table `[{key}]`"), help);
        }
        self.one(key, report)
    }

    fn parse_named<T: DeserializeOwned>(&mut self, key: &'static str, report: &mut Report) -> Named<T> {
        let mut named = Named { entries: Vec::new(), unread: Unread { names: Vec::new(), anything: self.broken } };
        let Some((_, value)) = self.take(key) else { return named };
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            let help = Some(format!("write `[{key}.NAME]`"));
            report.add(Rule::Shape, self.place(span), format!("`{key}` is a table of named entries"), help);
            named.unread.anything = true;
            return named;
        };
        for (name, value) in table {
            let text = name.get_ref().to_string();
            let at = Spanned::new(name.span(), DeValue::String(name.into_inner()));
            match (read(self.file, at, report), read(self.file, value, report)) {
                (Some(name), Some(value)) => named.entries.push((name, value)),
                _ => named.unread.names.push(text),
            }
        }
        named
    }

    fn list<T: DeserializeOwned>(&mut self, key: &'static str, report: &mut Report) -> (Vec<At<T>>, bool) {
        let Some((_, value)) = self.take(key) else { return (Vec::new(), true) };
        let span = value.span();
        let DeValue::Array(array) = value.into_inner() else {
            report.add(Rule::Shape, self.place(span), format!("`{key}` is a list: write `[[{key}]]`"), None);
            return (Vec::new(), false);
        };
        let written = array.len();
        let read: Vec<_> = array.into_iter().filter_map(|value| read(self.file, value, report)).collect();
        let whole = read.len() == written;
        (read, whole)
    }

    fn finish(self, report: &mut Report) {
        for (key, _) in &self.table {
            let place = self.place(key.span());
            report.unknown(Rule::Shape, place, "key", key.get_ref(), self.known.iter().copied());
        }
    }

    fn place(&self, span: Range<usize>) -> Place {
        Place { file: self.file, span }
    }
}

/// Leaves out problems where the parser guessed.
fn read<T: DeserializeOwned>(file: usize, value: Spanned<DeValue<'_>>, report: &mut Report) -> Option<T> {
    shape::read(value, &mut |Misshape { span, message, help }| {
        let place = Place { file, span };
        if report.is_readable_at(&place) {
            report.add(Rule::Shape, place, message, help);
        }
    })
}
