//! The configuration file of a service: TOML, with a key for each flag of its server and the tables
//! that the service declares. Start at [`Config::entries`].
//!
//! Each mistake is reported with its line and the allowed values. [`cli`](crate::cli) defines the
//! flags, and the service interprets its tables. Secrets do not belong in the file.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
pub use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use toolwarrant_common::shape::{self, Misshape, PROBLEMS_MAX};
use toolwarrant_common::{Excerpt, excerpt, line_column, shorten, suggestion};

/// A larger file was probably named by mistake.
const LONGEST: u64 = 1 << 20;

/// Each mistake in a report shows a part of the file.
const MISTAKES_MAX: usize = 100;

/// The content of a program's configuration file, if it has one. Read once, at the start.
#[derive(Clone, Default)]
pub struct Config(Option<Arc<ConfigFile>>);

struct ConfigFile {
    path: PathBuf,
    text: String,
}

/// A table of the file that a service declares.
#[derive(Clone, Copy, Debug)]
pub struct ConfigTable {
    /// Its name, which differs from the names of all flags.
    pub name: &'static str,
    /// Reads and checks the table, and returns the values in force, without secrets. It is called
    /// before a server starts and by `config check`, also if there is no table or no file.
    pub judge: fn(&Config) -> Result<Value, ConfigError>,
}

/// The mistakes in a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The command needs a file, and the command line names none.
    #[error("no configuration file is given; name it with --{} FILE", crate::flags::CONFIG)]
    Absent,
    /// The file cannot be read.
    #[error("cannot read the configuration file {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file has mistakes.
    #[error("{}", list_mistakes(path, mistakes))]
    Mistakes {
        /// The file.
        path: PathBuf,
        /// The mistakes, in the order of the file.
        mistakes: Vec<ConfigMistake>,
    },
}

/// One mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigMistake {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The mistake in words.
    pub message: String,
    /// The allowed values.
    pub help: Option<String>,
    #[serde(skip)]
    rendered: String,
}

type Entries<T> = Vec<(Spanned<String>, T)>;

type ReadEntry<T> = fn(Range<usize>, Spanned<DeValue<'_>>, &mut dyn FnMut(Misshape)) -> Option<T>;

/// Collects mistakes in a file.
pub struct Findings<'a> {
    config: &'a Config,
    found: Vec<ConfigMistake>,
}

impl Config {
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |error: io::Error| ConfigError::Unreadable { path: path.to_owned(), why: error.to_string() };
        Self::parse(path, read_text(path, LONGEST).map_err(unreadable)?)
    }

    /// Uses `text` as the content of the file at `path`, which need not exist.
    ///
    /// # Errors
    /// Every mistake in its syntax.
    pub fn parse(path: &Path, text: impl Into<String>) -> Result<Self, ConfigError> {
        let path = absolute(path).unwrap_or_else(|_| path.to_owned());
        let config = Self(Some(Arc::new(ConfigFile { path, text: text.into() })));
        let mut found = config.findings();
        for error in DeTable::parse_recoverable(config.text()).1 {
            found.add(error.span().unwrap_or_default(), error.message(), None);
        }
        found.finish()?;
        Ok(config)
    }

    /// Returns the absolute path of the file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref().map(|file| &*file.path)
    }

    /// Resolves a path from the file: a relative path is relative to the folder of the file.
    #[must_use]
    pub fn beside(&self, path: &Path) -> PathBuf {
        self.path().and_then(Path::parent).map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }

    /// Returns the entries `[name.KEY]` that are valid as a `T`. A mistake in one entry, which goes
    /// to `found`, does not hide mistakes in another. `T` should deny unknown fields.
    /// `toml::Spanned` in it records a place for [`Findings::add`].
    pub fn entries<T: DeserializeOwned>(&self, name: &str, found: &mut Findings<'_>) -> Entries<T> {
        self.read_entries(name, found, |_, entry, report| shape::read(entry, report))
    }

    /// Does the same as [`Self::entries`] for an enum: the key `kind` of an entry names its
    /// variant. The enum must not have a tag of serde, which loses places.
    pub fn entries_by_kind<T: DeserializeOwned>(&self, name: &str, found: &mut Findings<'_>) -> Entries<T> {
        self.read_entries(name, found, read_by_kind)
    }

    fn read_entries<T>(&self, name: &str, found: &mut Findings<'_>, read_entry: ReadEntry<T>) -> Entries<T> {
        let Some((_, value)) = self.root().remove_entry(name) else { return Vec::new() };
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            found.add(span, format!("`{name}` is not a table"), Some(format!("write `[{name}.NAME]`")));
            return Vec::new();
        };
        let read = |(key, value): (Spanned<DeString<'_>>, Spanned<DeValue<'_>>)| {
            let before = found.found.len();
            if found.is_full() {
                return None;
            }
            let mut report = |Misshape { span, message, help }| found.add(span, message, help);
            let read = read_entry(key.span(), value, &mut report);
            let key = Spanned::new(key.span(), key.into_inner().into_owned());
            // A key that resembles a known key was read as that key to find more mistakes. The
            // value must not be used.
            read.filter(|_| found.found.len() == before).map(|read| (key, read))
        };
        table.into_iter().filter_map(read).collect()
    }

    /// Starts a collection of further mistakes, such as a duplicate name or an invalid URL.
    #[must_use]
    pub fn findings(&self) -> Findings<'_> {
        Findings { config: self, found: Vec::new() }
    }

    pub(crate) fn root(&self) -> DeTable<'_> {
        DeTable::parse_recoverable(self.text()).0.into_inner()
    }

    fn text(&self) -> &str {
        self.0.as_deref().map_or("", |file| &file.text)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Config").field(&self.path()).finish()
    }
}

impl Findings<'_> {
    /// Adds a mistake at `span`, in bytes of the file. `message` describes the mistake, `help` the
    /// allowed values. Only the first 100 are reported.
    pub fn add(&mut self, span: Range<usize>, message: impl Into<String>, help: Option<String>) {
        if self.is_full() {
            return;
        }
        let (text, message) = (self.config.text(), shorten(&message.into()).into_owned());
        let span = span.start.min(text.len())..span.end.min(text.len());
        let (line, column) = line_column(text, span.start);
        let is_unknown = message.starts_with(UNKNOWN);
        let text = if is_unknown { without_value(text, span.end).into() } else { Cow::Borrowed(text) };
        let path = self.config.path().unwrap_or(Path::new("")).display().to_string();
        let rendered =
            excerpt(&Excerpt { path: &path, text: &text, span, id: None, message: &message, help: help.as_deref() });
        self.found.push(ConfigMistake { line, column, message, help, rendered });
    }

    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MISTAKES_MAX
    }

    pub(crate) fn unknown<'k>(&mut self, span: Range<usize>, key: &str, known: impl IntoIterator<Item = &'k str>) {
        self.add(span, format!("{UNKNOWN}`{key}`"), Some(suggestion(key, known)));
    }

    /// Adds the mistakes of an error about the same file.
    ///
    /// # Errors
    /// The error is about something else.
    pub fn take(&mut self, error: ConfigError) -> Result<(), ConfigError> {
        let ConfigError::Mistakes { mistakes, .. } = error else { return Err(error) };
        self.found.extend(mistakes);
        Ok(())
    }

    /// Ends the collection.
    ///
    /// # Errors
    /// All mistakes, if there are any.
    pub fn finish(self) -> Result<(), ConfigError> {
        let Self { config, found: mut mistakes } = self;
        if mistakes.is_empty() {
            return Ok(());
        }
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        mistakes.dedup();
        Err(ConfigError::Mistakes { path: config.path().unwrap_or(Path::new("")).to_owned(), mistakes })
    }
}

pub(crate) fn read_text(path: &Path, longest: u64) -> io::Result<String> {
    let unexpected = || io::Error::other(format!("expected a file of at most {longest} bytes"));
    // Opening a pipe would block.
    if !fs::metadata(path)?.is_file() {
        return Err(unexpected());
    }
    let mut bytes = Vec::new();
    if File::open(path)?.take(longest + 1).read_to_end(&mut bytes)? as u64 > longest {
        return Err(unexpected());
    }
    String::from_utf8(bytes).map_err(|error| {
        io::Error::other(format!("it is not UTF-8 at byte offset {}", error.utf8_error().valid_up_to()))
    })
}

/// Reads the entry as a table with the variant as its only key, at the place `at`, as serde
/// expects.
fn read_by_kind<T: DeserializeOwned>(
    at: Range<usize>,
    entry: Spanned<DeValue<'_>>,
    report: &mut dyn FnMut(Misshape),
) -> Option<T> {
    #[derive(Deserialize)]
    struct EntryKind {
        kind: Spanned<String>,
    }
    let span = entry.span();
    let DeValue::Table(mut keys) = entry.get_ref().clone() else {
        let help = Some("an entry is a table with `kind` and its keys".to_owned());
        report(Misshape { span: at, message: format!("{UNKNOWN}here"), help });
        return None;
    };
    let EntryKind { kind } = shape::read(entry, report)?;
    keys.remove("kind");
    let variant = Spanned::new(kind.span(), kind.get_ref().as_str().into());
    let nested = DeTable::from_iter([(variant, Spanned::new(span, DeValue::Table(keys)))]);
    shape::read(Spanned::new(at, DeValue::Table(nested)), &mut |misshape| {
        let is_unknown = misshape.message.starts_with(UNKNOWN);
        let of = if is_unknown { format!(" for the kind `{}`", kind.get_ref()) } else { String::new() };
        report(Misshape { message: misshape.message + &of, ..misshape });
    })
}

const UNKNOWN: &str = "unknown key ";

/// Cuts the value of an unknown key, which may be a secret: a report may go to a log.
fn without_value(text: &str, at: usize) -> String {
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    match text[at..end].find('=') {
        Some(length) => [&text[..=at + length], " ...", &text[end..]].concat(),
        None => text.to_owned(),
    }
}

fn list_mistakes(path: &Path, mistakes: &[ConfigMistake]) -> String {
    let all: Vec<_> = mistakes.iter().map(|mistake| &*mistake.rendered).collect();
    let count = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        count @ PROBLEMS_MAX.. => format!("at least {count} mistakes"),
        count => format!("{count} mistakes"),
    };
    format!("{} has {count}\n\n{}", path.display(), all.join("\n\n"))
}

pub(crate) fn plain_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Limits {
        calls: Spanned<u32>,
        name: Option<String>,
    }

    fn config(text: &str) -> Config {
        Config::parse(Path::new("/etc/shop.toml"), text).unwrap()
    }

    fn mistakes_of<T: fmt::Debug>(read: Result<T, ConfigError>) -> Vec<(usize, usize, String)> {
        match read.unwrap_err() {
            ConfigError::Mistakes { mistakes, .. } => {
                mistakes.into_iter().map(|mistake| (mistake.line, mistake.column, mistake.message)).collect()
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn an_entry_is_typed_and_records_the_places_of_its_values() {
        let file = config("[limits.a]\n  calls = 7 # some\n");
        let mut found = file.findings();
        let read: Vec<(_, Limits)> = file.entries("limits", &mut found);
        let [(key, limits)] = &read[..] else { panic!("{read:?}") };
        assert!(key.get_ref() == "a" && limits.name.is_none() && *limits.calls.get_ref() == 7);
        found.add(limits.calls.span(), "too few", None);
        assert_eq!(mistakes_of(found.finish()), [(2, 11, "too few".to_owned())]);
        for other in [file.clone(), Config::default()] {
            assert!(other.entries::<Limits>("others", &mut other.findings()).is_empty());
        }
        assert_eq!(file.beside(Path::new("keys/a")), Path::new("/etc/keys/a"));
        assert_eq!(file.beside(Path::new("/keys/a")), Path::new("/keys/a"));
        assert!(!format!("{file:?}").contains("calls"));
    }

    #[test]
    fn all_mistakes_of_entries_are_reported_in_the_order_of_the_file() {
        let file = config("[limits.a]\nname = 3\ncals = 1\nx = 2\n");
        let mut found = file.findings();
        assert!(file.entries::<Limits>("limits", &mut found).is_empty());
        let expected = [
            (2, 8, "invalid type: integer `3`, expected a string".to_owned()),
            (3, 1, "unknown key `cals`".to_owned()),
            (4, 1, "unknown key `x`".to_owned()),
        ];
        assert_eq!(mistakes_of(found.finish()), expected);
        let file = config("limits = 3");
        let mut found = file.findings();
        assert!(file.entries::<Limits>("limits", &mut found).is_empty());
        assert_eq!(mistakes_of(found.finish()), [(1, 10, "`limits` is not a table".to_owned())]);
    }

    #[test]
    fn very_long_text_is_not_repeated_in_a_report() {
        let long = "z".repeat(400_000);
        for (text, place) in [
            (format!("[limits.a]\ncalls = \"{long}\"\n"), "2:9"),
            (format!("[limits.a]\n{long} = 1\n"), "2:1"),
            (format!("[limits.a]\ncalls = 1\n[limits.b]\ncalls = 1\nx.{long} = 1\n"), "5:1"),
        ] {
            let file = config(&text);
            let mut found = file.findings();
            file.entries::<Limits>("limits", &mut found);
            let said = found.finish().unwrap_err().to_string();
            assert!(said.len() < 3_000 && said.contains(&format!("shop.toml:{place}")), "{said}");
        }
    }

    #[test]
    fn of_very_many_mistakes_the_first_are_reported() {
        use std::fmt::Write;
        let mut one = "[limits.a]\ncalls = 1\n".to_owned();
        (0..60_000).for_each(|n| writeln!(one, "c{n} = 1").unwrap());
        let several = (0..20_000).fold(String::new(), |all, n| all + &format!("[limits.a{n}]\ncals = 1\n"));
        for (text, count) in [(one, 20), (several, MISTAKES_MAX)] {
            let file = config(&text);
            let mut found = file.findings();
            assert_eq!(file.entries::<Limits>("limits", &mut found).len(), 0);
            let error = found.finish().unwrap_err();
            assert!(error.to_string().contains(&format!("has at least {count} mistakes")));
            assert_eq!(mistakes_of(Err::<(), _>(error)).len(), count);
        }
        let text = "]\n".repeat(100_000);
        assert_eq!(mistakes_of(Config::parse(Path::new("/etc/shop.toml"), text)).len(), MISTAKES_MAX);
    }

    #[test]
    fn an_entry_is_read_even_if_another_has_a_mistake() {
        let file = config("[limits.a]\ncalls = 1\n[limits.b]\ncals = 2\n[limits]\nc = 3\n");
        let mut found = file.findings();
        let read: Vec<(_, Limits)> = file.entries("limits", &mut found);
        assert_eq!(read.iter().map(|(name, _)| name.get_ref().as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(mistakes_of(found.finish()).iter().map(|(line, _, _)| *line).collect::<Vec<_>>(), [4, 6]);
    }
}
