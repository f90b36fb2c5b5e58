//! Text to [`raw`]: syntax and shape. Every entry is read by itself, so that one mistake does not hide the next.

use crate::names;
use crate::raw::{At, ErrorsFile, Files, Named, ReservedFile, ServiceFile, ToolsFile, TypesFile};
use crate::report::{Place, Report};
use crate::rules::Rule;
use crate::source::Source;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};

pub(crate) fn parse(sources: &[Source], report: &mut Report) -> Files {
    let mut files = sources.iter().enumerate().map(|(file, source)| {
        let (table, errors) = DeTable::parse_recoverable(&source.text);
        (file, source, table.into_inner(), errors)
    });
    let mut next = |report: &mut Report| {
        let (file, source, table, errors) = files.next()?;
        let broken = !errors.is_empty();
        for error in errors {
            let place = Place { file, span: error.span().unwrap_or_default() };
            report.add(Rule::Syntax, place, error.message().to_owned(), None);
        }
        Some((source, Root { file, table, broken, known: Vec::new() }))
    };
    let mut root = |report: &mut Report| next(report).map_or_else(Root::default, |(_, root)| root);

    let (mut service, mut errors, mut types, mut reserved) = (root(report), root(report), root(report), root(report));
    let files = Files {
        service: ServiceFile {
            service: service.required("service", report),
            protocol: service.required("protocol", report),
            limits: service.required("limits", report),
            phrase: service.one("phrase", report),
            permission: service.named("permission", report),
            resource: service.named("resource", report),
            probe: service.named("probe", report),
            state: service.named("state", report),
        },
        errors: ErrorsFile { error: errors.named("error", report) },
        types: TypesFile { r#type: types.named("type", report) },
        reserved: ReservedFile { tools: reserved.one("tools", report), errors: reserved.one("errors", report) },
        tools: std::iter::from_fn(|| {
            let (source, mut root) = next(report)?;
            let name = source.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let tool = root.list("tool", report);
            root.finish(report);
            Some((name, ToolsFile { tool }))
        })
        .collect(),
    };
    for root in [service, errors, types, reserved] {
        root.finish(report);
    }
    files
}

/// The top of a file, from which entries are taken by name; what is left at the end is unknown.
#[derive(Default)]
struct Root<'i> {
    file: usize,
    table: DeTable<'i>,
    /// The file has syntax errors: what seems to be missing may only be unreadable.
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

    fn required<T: DeserializeOwned>(&mut self, key: &'static str, report: &mut Report) -> Option<T> {
        if !self.table.contains_key(key) && !self.broken {
            report.add(Rule::Shape, self.place(0..0), format!("missing table `[{key}]`"), None);
        }
        self.one(key, report)
    }

    fn named<T: DeserializeOwned>(&mut self, key: &'static str, report: &mut Report) -> Named<T> {
        let Some((_, value)) = self.take(key) else { return Named::default() };
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            report.add(Rule::Shape, self.place(span), format!("`{key}` is a table of named entries"), None);
            return Named::default();
        };
        let entry = |(name, value): (Spanned<DeString<'i>>, _)| {
            let at = Spanned::new(name.span(), DeValue::String(name.into_inner()));
            Some((read(self.file, at, report)?, read(self.file, value, report)?))
        };
        Named(table.into_iter().filter_map(entry).collect())
    }

    fn list<T: DeserializeOwned>(&mut self, key: &'static str, report: &mut Report) -> Vec<At<T>> {
        let Some((_, value)) = self.take(key) else { return Vec::new() };
        let span = value.span();
        let DeValue::Array(array) = value.into_inner() else {
            report.add(Rule::Shape, self.place(span), format!("`{key}` is a list: write `[[{key}]]`"), None);
            return Vec::new();
        };
        array.into_iter().filter_map(|value| read(self.file, value, report)).collect()
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

/// Reads one entry. Failures are noted where they stand; an unknown key is taken out and the rest read on, so that all of them show.
fn read<T: DeserializeOwned>(file: usize, mut value: Spanned<DeValue<'_>>, report: &mut Report) -> Option<T> {
    let mut pruned = false;
    loop {
        let error = match T::deserialize(ValueDeserializer::from(value.clone())) {
            Ok(read) => return (!pruned).then_some(read),
            Err(error) => error,
        };
        let span = error.span().unwrap_or_else(|| value.span());
        let help = unknown_field(error.message()).map(|(name, known)| names::help(name, known));
        report.add(Rule::Shape, Place { file, span: span.clone() }, error.message(), help);
        if !prune(value.get_mut(), &span) {
            return None;
        }
        pruned = true;
    }
}

/// Takes the key at `key` out of whichever table has it.
fn prune(value: &mut DeValue<'_>, key: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => {
            let found = table.keys().find(|name| name.span() == *key).cloned();
            found.and_then(|name| table.remove(&name)).is_some()
                || table.iter_mut().any(|(_, value)| prune(value.get_mut(), key))
        }
        DeValue::Array(array) => array.iter_mut().any(|value| prune(value.get_mut(), key)),
        _ => false,
    }
}

/// The name and the known names in serde's message about an unknown field or variant.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let mut quoted = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    Some((quoted.next()?, quoted.collect()))
}
