//! The configuration file of a service: TOML, with a key for each flag of its server and the tables
//! that the service declares. Start at [`Config::entries`].
//!
//! The first mistake is reported with its line and the allowed values. [`cli`](crate::cli) defines
//! the flags, and the service interprets its tables. Secrets do not belong in the file.

use serde::de::{DeserializeOwned, Error as _};
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
use toml::de::{DeString, DeTable, DeValue, Error, ValueDeserializer};
use toolwarrant_common::{Excerpt, excerpt, line_column, shorten};

/// A larger file was probably named by mistake.
const LONGEST: u64 = 1 << 20;

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

/// The reason why a configuration file cannot be used.
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
    /// The file has a mistake.
    #[error("{} has a mistake\n\n{}", .0.path.display(), .0.rendered)]
    Mistake(Box<ConfigMistake>),
}

/// A mistake in the file.
#[derive(Debug, Serialize)]
pub struct ConfigMistake {
    /// The file.
    #[serde(skip)]
    pub path: PathBuf,
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

impl Config {
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |error: io::Error| ConfigError::Unreadable { path: path.to_owned(), why: error.to_string() };
        Self::parse(path, read_text(path).map_err(unreadable)?)
    }

    /// Uses `text` as the content of the file at `path`, which need not exist.
    ///
    /// # Errors
    /// The first mistake in its syntax.
    pub fn parse(path: &Path, text: impl Into<String>) -> Result<Self, ConfigError> {
        let path = absolute(path).unwrap_or_else(|_| path.to_owned());
        let config = Self(Some(Arc::new(ConfigFile { path, text: text.into() })));
        let (_, errors) = DeTable::parse_recoverable(config.text());
        let first = errors.iter().min_by_key(|error| error.span().map_or(0, |span| span.start));
        first.map_or(Ok(()), |error| Err(config.describe(error)))?;
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

    /// Returns the entries `[name.KEY]` as values of `T`, which should deny unknown fields.
    /// `toml::Spanned` in it records a place for [`Self::mistake`].
    ///
    /// # Errors
    /// The first entry that is not a valid `T`.
    pub fn entries<T: DeserializeOwned>(&self, name: &str) -> Result<Entries<T>, ConfigError> {
        self.read_entries(name, |entry| Ok(entry))
    }

    /// Does the same as [`Self::entries`] for an enum: the key `kind` of an entry names its
    /// variant. The enum must not have a tag of serde, which loses places.
    ///
    /// # Errors
    /// As [`Self::entries`].
    pub fn entries_by_kind<T: DeserializeOwned>(&self, name: &str) -> Result<Entries<T>, ConfigError> {
        self.read_entries(name, nest_in_kind)
    }

    fn read_entries<T: DeserializeOwned>(&self, name: &str, shape: ShapeEntry) -> Result<Entries<T>, ConfigError> {
        let Some((_, value)) = self.root().remove_entry(name) else { return Ok(Vec::new()) };
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            return Err(self.mistake(span, format!("`{name}` is not a table"), Some(format!("write `[{name}.NAME]`"))));
        };
        let read = |(key, value)| {
            let key: Spanned<DeString<'_>> = key;
            let entry = shape(value).and_then(|entry| T::deserialize(ValueDeserializer::from(entry)));
            let entry = entry.map_err(|error| self.describe(&error))?;
            Ok((Spanned::new(key.span(), key.into_inner().into_owned()), entry))
        };
        table.into_iter().map(read).collect()
    }

    /// Makes an error of a mistake at `span`, in bytes of the file. `message` describes the
    /// mistake, `help` the allowed values.
    pub fn mistake(&self, span: Range<usize>, message: impl Into<String>, help: Option<String>) -> ConfigError {
        let (text, message) = (self.text(), shorten(&message.into()).into_owned());
        let span = span.start.min(text.len())..span.end.min(text.len());
        let (line, column) = line_column(text, span.start);
        let is_unknown = message.starts_with("unknown ");
        let text = if is_unknown { without_value(text, span.end).into() } else { Cow::Borrowed(text) };
        let path = self.path().unwrap_or(Path::new("")).to_owned();
        let shown = path.display().to_string();
        let rendered =
            excerpt(&Excerpt { path: &shown, text: &text, span, id: None, message: &message, help: help.as_deref() });
        ConfigError::Mistake(Box::new(ConfigMistake { path, line, column, message, help, rendered }))
    }

    fn describe(&self, error: &Error) -> ConfigError {
        self.mistake(error.span().unwrap_or_default(), error.message(), None)
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

fn read_text(path: &Path) -> io::Result<String> {
    let unexpected = || io::Error::other(format!("expected a file of at most {LONGEST} bytes"));
    // Opening a pipe would block.
    if !fs::metadata(path)?.is_file() {
        return Err(unexpected());
    }
    let mut bytes = Vec::new();
    if File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)? as u64 > LONGEST {
        return Err(unexpected());
    }
    String::from_utf8(bytes).map_err(|error| {
        io::Error::other(format!("it is not UTF-8 at byte offset {}", error.utf8_error().valid_up_to()))
    })
}

type ShapeEntry = for<'a> fn(Spanned<DeValue<'a>>) -> Result<Spanned<DeValue<'a>>, Error>;

/// Makes the entry a table with the variant as its only key, as serde expects.
fn nest_in_kind(entry: Spanned<DeValue<'_>>) -> Result<Spanned<DeValue<'_>>, Error> {
    #[derive(Deserialize)]
    struct EntryKind {
        kind: Spanned<String>,
    }
    let span = entry.span();
    let EntryKind { kind } = EntryKind::deserialize(ValueDeserializer::from(entry.clone()))?;
    let DeValue::Table(mut keys) = entry.into_inner() else { return Err(Error::custom("not a table")) };
    keys.remove("kind");
    let variant = Spanned::new(kind.span(), kind.into_inner().into());
    let nested = DeTable::from_iter([(variant, Spanned::new(span.clone(), DeValue::Table(keys)))]);
    Ok(Spanned::new(span, DeValue::Table(nested)))
}

/// Cuts the value of an unknown key, which may be a secret: a report may go to a log.
fn without_value(text: &str, at: usize) -> String {
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    match text[at..end].find('=') {
        Some(length) => [&text[..=at + length], " ...", &text[end..]].concat(),
        None => text.to_owned(),
    }
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

    fn mistake_of<T>(read: Result<T, ConfigError>) -> (usize, usize, String) {
        match read.err() {
            Some(ConfigError::Mistake(mistake)) => (mistake.line, mistake.column, mistake.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_entry_is_typed_and_records_the_places_of_its_values() {
        let file = config("[limits.a]\n  calls = 7 # some\n");
        let read: Vec<(_, Limits)> = file.entries("limits").unwrap();
        let [(key, limits)] = &read[..] else { panic!("{read:?}") };
        assert!(key.get_ref() == "a" && limits.name.is_none() && *limits.calls.get_ref() == 7);
        let few: Result<(), _> = Err(file.mistake(limits.calls.span(), "too few", None));
        assert_eq!(mistake_of(few), (2, 11, "too few".to_owned()));
        for other in [file.clone(), Config::default()] {
            assert!(other.entries::<Limits>("others").unwrap().is_empty());
        }
        assert_eq!(file.beside(Path::new("keys/a")), Path::new("/etc/keys/a"));
        assert_eq!(file.beside(Path::new("/keys/a")), Path::new("/keys/a"));
        assert!(!format!("{file:?}").contains("calls"));
    }

    #[test]
    fn a_mistake_has_its_place_and_an_unknown_key_shows_no_value() {
        for (text, line, column, message) in [
            ("[limits.a]\nname = 3\n", 2, 8, "invalid type: integer `3`, expected a string"),
            ("[limits.a]\ncals = \"hidden\"\n", 2, 1, "unknown field `cals`, expected `calls` or `name`"),
            ("[limits.a]\nname = \"n\"\n", 1, 1, "missing field `calls`"),
            ("limits = 3", 1, 10, "`limits` is not a table"),
        ] {
            let read = config(text).entries::<Limits>("limits");
            assert!(!read.as_ref().unwrap_err().to_string().contains("hidden"));
            assert_eq!(mistake_of(read), (line, column, message.to_owned()));
        }
        assert_eq!(mistake_of(Config::parse(Path::new("/etc/shop.toml"), "x = 1\n]\n")).0, 2);
        let said = config("[limits.a]\ncals = \"hidden\"\n").entries::<Limits>("limits").unwrap_err().to_string();
        assert!(said.ends_with("\n2 | cals = ...\n  | ^^^^"), "{said}");
    }

    #[test]
    fn very_long_text_is_not_repeated_in_a_report() {
        let long = "z".repeat(400_000);
        for (text, place) in
            [(format!("[limits.a]\ncalls = \"{long}\"\n"), "2:9"), (format!("[limits.a]\n{long} = 1\n"), "2:1")]
        {
            let said = config(&text).entries::<Limits>("limits").unwrap_err().to_string();
            assert!(said.len() < 3_000 && said.contains(&format!("shop.toml:{place}")), "{said}");
        }
    }

    #[test]
    fn a_file_that_never_ends_or_is_no_text_is_refused_by_its_name() {
        let home = tempfile::TempDir::new().unwrap();
        let [long, bytes] = ["long", "bytes"].map(|name| home.path().join(name));
        fs::write(&long, vec![b'#'; LONGEST as usize + 1]).unwrap();
        fs::write(&bytes, b"# \xe9").unwrap();
        let size = "expected a file of at most 1048576 bytes";
        for (file, expected) in
            [(Path::new("/dev/zero"), size), (&long, size), (&bytes, "it is not UTF-8 at byte offset 2")]
        {
            let said = Config::read(file).unwrap_err().to_string();
            assert!(said.contains(&format!("{}: {expected}", file.display())), "{said}");
        }
    }
}
