//! The report of all mistakes in a contract, each rendered in the style of rustc.

use crate::model::Contract;
use crate::rules::Rule;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toolwarrant_common::{Excerpt, excerpt, line_column, suggestion};

#[derive(Debug, Default)]
pub struct Report {
    found: Vec<Found>,
    pub problems: Vec<Problem>,
    /// A change to any of these can correct the contract.
    pub files: Vec<PathBuf>,
    /// If each problem is a text that is too long.
    pub overlong: Option<Box<Contract>>,
    pub names: Vec<String>,
}

#[derive(Debug)]
pub struct Problem {
    pub rule: Rule,
    /// Relative to the folder that contains the spec folder.
    pub file: String,
    pub line: usize,
    /// In characters.
    pub column: usize,
    pub span: Range<usize>,
    pub message: String,
    pub help: Option<String>,
    pub rendered: String,
}

#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the folder that contains the spec folder.
    pub(crate) shown: String,
    pub(crate) path: Option<PathBuf>,
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) span: Range<usize>,
}

#[derive(Debug)]
struct Found {
    rule: Rule,
    place: Place,
    message: String,
    help: Option<String>,
}

impl Report {
    pub(crate) fn add(&mut self, rule: Rule, place: Place, message: impl Into<String>, help: Option<String>) {
        self.found.push(Found { rule, place, message: message.into(), help });
    }

    pub(crate) fn breaks(&self, rule: Rule) -> bool {
        self.found.iter().any(|found| found.rule == rule)
    }

    pub(crate) fn is_readable(&self, file: usize) -> bool {
        let breaks = |found: &Found| found.place.file == file && [Rule::Unreadable, Rule::Syntax].contains(&found.rule);
        !self.found.iter().any(breaks)
    }

    /// Returns true unless the place touches a syntax error, after which the parser guesses values.
    pub(crate) fn is_readable_at(&self, Place { file, span }: &Place) -> bool {
        let touches = |other: &Range<usize>| other.start <= span.end && span.start <= other.end;
        !self
            .found
            .iter()
            .any(|found| found.rule == Rule::Syntax && found.place.file == *file && touches(&found.place.span))
    }

    pub(crate) fn is_reported(&self, place: &Place) -> bool {
        self.found.iter().any(|found| found.place == *place)
    }

    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    pub(crate) fn unknown<'a>(
        &mut self,
        rule: Rule,
        place: Place,
        kind: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) {
        self.add(rule, place, format!("unknown {kind} `{name}`"), Some(suggestion(name, known)));
    }

    pub(crate) fn no_folder(mut self, dir: &Path, error: &std::io::Error) -> Result<Contract, Self> {
        let shown = dir.display().to_string();
        let help = Some("a contract is a folder with `service.toml`, `types.toml` and a folder `tools`".to_owned());
        let place = Place { file: 0, span: 0..0 };
        self.add(Rule::Unreadable, place, format!("cannot read the folder `{shown}`: {error}"), help);
        self.finish(vec![Source { shown, path: None, text: String::new() }], None)
    }

    pub(crate) fn finish(mut self, sources: Vec<Source>, contract: Option<Contract>) -> Result<Contract, Self> {
        let files: Vec<_> = sources.iter().filter_map(|source| source.path.clone()).collect();
        match contract.map(|contract| Box::new(Contract { files: files.clone(), ..contract })) {
            Some(contract) if self.found.is_empty() => return Ok(*contract),
            contract => self.overlong = contract.filter(|_| self.found.iter().all(|found| found.rule.is_of_length())),
        }
        // Guesses of the parser must not be checked.
        let broken: Vec<_> =
            self.found.iter().filter(|found| found.rule == Rule::Syntax).map(|found| found.place.file).collect();
        self.found.retain(|found| found.rule == Rule::Syntax || !broken.contains(&found.place.file));
        self.found.sort_by_key(|found| (found.place.file, found.place.span.start));
        // A shared part of the contract is checked with each part that uses it.
        self.found.dedup_by(|a, b| (&a.place, &a.message) == (&b.place, &b.message));
        self.problems = self.found.drain(..).map(|found| found.render(&sources)).collect();
        self.files = files;
        Err(self)
    }
}

impl Found {
    fn render(self, sources: &[Source]) -> Problem {
        let Self { rule, place, message, help } = self;
        let source = &sources[place.file];
        let span = place.span.start.min(source.text.len())..place.span.end.min(source.text.len());
        let (line, column) = line_column(&source.text, span.start);
        let (path, text, id) = (&*source.shown, &*source.text, Some(rule.id()));
        let rendered =
            excerpt(&Excerpt { path, text, span: span.clone(), id, message: &message, help: help.as_deref() });
        Problem { rule, file: source.shown.clone(), line, column, span, message, help, rendered }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{}\n", problem.rendered)?;
        }
        let files = self.problems.iter().map(|problem| &problem.file).collect::<std::collections::BTreeSet<_>>().len();
        write!(f, "{} problem(s) in {files} file(s) of the contract", self.problems.len())
    }
}

impl std::error::Error for Report {}
