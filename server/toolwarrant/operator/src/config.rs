//! The configuration file of a service: TOML, with a key for each flag of its server and the tables that the service declares.
//!
//! This module reads the file and reports mistakes in it, each with its place, its line and what is allowed. Which flags there are
//! [`cli`](crate::cli) knows, and what a table means its service. No secret belongs into the file; a service reads each from a
//! [`CredentialSource`](crate::CredentialSource). Start at [`Config::entries`].

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
pub use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use toolwarrant_reader::shape::{self, Misshape};
use toolwarrant_reader::{Excerpt, excerpt, line_column, suggestion};

/// Maximum size of a file, in bytes. A larger one was named by mistake.
const LONGEST: u64 = 1 << 20;

/// The configuration of a program: its file, or none. It was read once, at the start.
#[derive(Clone, Default)]
pub struct Config(Option<Arc<ConfigFile>>);

struct ConfigFile {
    path: PathBuf,
    text: String,
}

/// A table of the file that a service declares.
#[derive(Clone, Copy, Debug)]
pub struct ConfigTable {
    /// Its name, which is no flag's.
    pub name: &'static str,
    /// Reads and judges the table; answers with what would hold, without secrets. It is called before a server
    /// starts and by `config check`, also where the file has no such table or there is no file.
    pub judge: fn(&Config) -> Result<Value, ConfigError>,
}

/// What is wrong with a configuration file. The text has all mistakes, each with file, line, column and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No file is named, and the command is about one.
    #[error("no configuration file is named: --{} FILE names it", crate::flags::CONFIG)]
    Absent,
    /// The file cannot be read.
    #[error("cannot read the configuration file {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The file has mistakes.
    #[error("{}", listed(path, mistakes))]
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
    /// What is wrong.
    pub message: String,
    /// What is allowed.
    pub help: Option<String>,
    /// All of this with the text of the line.
    #[serde(skip)]
    rendered: String,
}

/// Collects mistakes in a file.
pub struct Findings<'a> {
    config: &'a Config,
    found: Vec<ConfigMistake>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no TOML.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |why: String| ConfigError::Unreadable { path: path.to_owned(), why };
        let about = fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        // Opening a pipe would block.
        if !about.is_file() || about.len() > LONGEST {
            return Err(unreadable(format!("expected a file of at most {LONGEST} bytes")));
        }
        let text = fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Self::parse(path, text)
    }

    /// Takes `text` as the content of the file at `path`, which need not be there.
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

    /// The path of the file, which is absolute.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref().map(|file| &*file.path)
    }

    /// A path that stands in the file: a relative one is relative to the folder of the file.
    #[must_use]
    pub fn beside(&self, path: &Path) -> PathBuf {
        self.path().and_then(Path::parent).map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }

    /// The table `name` as a `T`, or `None` if there is none or no file. `T` should deny unknown fields. `toml::Spanned` in it keeps the
    /// place of a value or a key, for [`Findings::add`].
    ///
    /// # Errors
    /// All unknown and missing keys, and values of a wrong type.
    pub fn table<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        let Some((_, value)) = self.root().remove_entry(name) else { return Ok(None) };
        let (span, mut found) = (value.span(), self.findings());
        let read = shape::read(value, &mut |Misshape { span, message, help }| found.add(span, message, help));
        if read.is_none() && found.found.is_empty() {
            found.add(span, format!("`{name}` cannot be read"), None);
        }
        found.finish().map(|()| read)
    }

    /// The entries `[name.KEY]`, each with its key: those that are sound as a `T`, so that a mistake in one hides none in another. `T`
    /// should deny unknown fields, and be no enum with a tag inside, in which serde loses places. Mistakes go to `found`.
    pub fn entries<T: DeserializeOwned>(&self, name: &str, found: &mut Findings<'_>) -> Vec<(Spanned<String>, T)> {
        let Some((_, value)) = self.root().remove_entry(name) else { return Vec::new() };
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            found.add(span, format!("`{name}` is no table"), Some(format!("write `[{name}.NAME]`")));
            return Vec::new();
        };
        let read = |(key, value): (Spanned<DeString<'_>>, Spanned<DeValue<'_>>)| {
            let before = found.found.len();
            let read = shape::read(value, &mut |Misshape { span, message, help }| found.add(span, message, help));
            let key = Spanned::new(key.span(), key.into_inner().into_owned());
            // What resembles a known key was read as that one, which is good to find mistakes and for nothing else.
            read.filter(|_| found.found.len() == before).map(|read| (key, read))
        };
        table.into_iter().filter_map(read).collect()
    }

    /// Collects what is wrong with the file otherwise, such as a name that is taken or a URL that is none.
    #[must_use]
    pub fn findings(&self) -> Findings<'_> {
        Findings { config: self, found: Vec::new() }
    }

    /// All that the file has.
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
    /// Adds a mistake at `span`, in bytes of the file, as `toml::Spanned` has it. `message` says what is wrong, `help` what is allowed.
    pub fn add(&mut self, span: Range<usize>, message: impl Into<String>, help: Option<String>) {
        let (text, message) = (self.config.text(), message.into());
        let span = span.start.min(text.len())..span.end.min(text.len());
        let (line, column) = line_column(text, span.start);
        let is_unknown = message.starts_with(UNKNOWN);
        let text = if is_unknown { without_value(text, span.end) } else { text.to_owned() };
        let path = self.config.path().unwrap_or(Path::new("")).display().to_string();
        let rendered =
            excerpt(&Excerpt { path: &path, text: &text, span, id: None, message: &message, help: help.as_deref() });
        self.found.push(ConfigMistake { line, column, message, help, rendered });
    }

    /// Adds that the key at `span` is none of `known`.
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

    /// The end of the collection.
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

/// How the report of an unknown key begins.
const UNKNOWN: &str = "unknown key ";

/// The text with no value behind the key that ends at `at`. What stands under a key that nobody knows may be a secret, and a report
/// may go to a log.
fn without_value(text: &str, at: usize) -> String {
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    match text[at..end].find('=') {
        Some(length) => [&text[..=at + length], " ...", &text[end..]].concat(),
        None => text.to_owned(),
    }
}

fn listed(path: &Path, mistakes: &[ConfigMistake]) -> String {
    let all: Vec<_> = mistakes.iter().map(|mistake| &*mistake.rendered).collect();
    let count = mistakes.len();
    format!("{} has {count} mistake{}\n\n{}", path.display(), if count == 1 { "" } else { "s" }, all.join("\n\n"))
}

/// Whether a value is one of a kind, and its text as the command line has it.
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
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Limits {
        calls: Spanned<u32>,
        name: Option<String>,
    }

    fn config(text: &str) -> Config {
        Config::parse(Path::new("/etc/shop.toml"), text).unwrap()
    }

    fn said<T: fmt::Debug>(read: Result<T, ConfigError>) -> Vec<(usize, usize, String)> {
        match read.unwrap_err() {
            ConfigError::Mistakes { mistakes, .. } => {
                mistakes.into_iter().map(|mistake| (mistake.line, mistake.column, mistake.message)).collect()
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_table_is_typed_and_keeps_the_places_of_its_values() {
        let file = config("[limits]\n  calls = 7 # some\n");
        let limits: Limits = file.table("limits").unwrap().unwrap();
        assert!(limits.name.is_none() && *limits.calls.get_ref() == 7);
        let mut found = file.findings();
        found.add(limits.calls.span(), "too few", None);
        assert_eq!(said(found.finish()), [(2, 11, "too few".to_owned())]);
        assert!(file.table::<Limits>("others").unwrap().is_none());
        assert!(Config::default().table::<Limits>("limits").unwrap().is_none());
        assert_eq!(file.beside(Path::new("keys/a")), Path::new("/etc/keys/a"));
        assert_eq!(file.beside(Path::new("/keys/a")), Path::new("/keys/a"));
        assert!(!format!("{file:?}").contains("calls"));
    }

    #[test]
    fn all_mistakes_of_a_table_are_told_in_the_order_of_the_file() {
        let file = config("[limits]\nname = 3\ncals = 1\nx = 2\n");
        let expected = [
            (2, 8, "invalid type: integer `3`, expected a string".to_owned()),
            (3, 1, "unknown key `cals`".to_owned()),
            (4, 1, "unknown key `x`".to_owned()),
        ];
        assert_eq!(said(file.table::<Limits>("limits")), expected);
        let file = config("limits = 3");
        assert_eq!(said(file.table::<Limits>("limits")).len(), 1);
        let mut found = file.findings();
        assert!(file.entries::<Limits>("limits", &mut found).is_empty());
        assert_eq!(said(found.finish()), [(1, 10, "`limits` is no table".to_owned())]);
    }

    #[test]
    fn one_entry_is_read_where_another_has_a_mistake() {
        let file = config("[limits.a]\ncalls = 1\n[limits.b]\ncals = 2\n[limits]\nc = 3\n");
        let mut found = file.findings();
        let read: Vec<(_, Limits)> = file.entries("limits", &mut found);
        assert_eq!(read.iter().map(|(name, _)| name.get_ref().as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(said(found.finish()).iter().map(|(line, _, _)| *line).collect::<Vec<_>>(), [4, 6]);
    }
}
