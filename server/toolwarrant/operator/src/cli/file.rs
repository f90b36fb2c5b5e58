//! The flags of a server in its configuration file, which has a key with the name of each flag.
//!
//! A value in the file becomes the default of its flag. So the command line overrides the
//! environment, and the environment overrides the file.

use super::help::WITH_STORE;
use crate::config::{Config, ConfigError};
use crate::flags::{AS, CONFIG, JSON, REASON, SOCKET};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};
use std::any::TypeId;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeValue;
use toolwarrant_common::suggestion;

/// The name of each flag that the file sets, and its values in the form of the command line.
pub(super) type FileFlags = Vec<(String, Vec<String>)>;

pub(super) fn read(command: &Command, config: &Config, tables: &[&str]) -> Result<FileFlags, ConfigError> {
    let mut values = FileFlags::new();
    for (key, value) in config.root() {
        let name = key.get_ref().as_ref();
        if tables.contains(&name) {
            continue;
        }
        let Some(arg) = configurable_flags(command).find(|arg| arg.get_long() == Some(name)) else {
            let known = configurable_flags(command).filter_map(Arg::get_long).chain(tables.iter().copied());
            return Err(config.mistake(key.span(), format!("unknown key `{name}`"), Some(suggestion(name, known))));
        };
        values.push((name.to_owned(), texts(arg, value, config)?));
    }
    Ok(values)
}

pub(super) fn set(command: Command, values: &FileFlags) -> Command {
    let set = |arg: Arg| {
        let Some((_, values)) = values.iter().find(|(name, _)| arg.get_long() == Some(name)) else { return arg };
        arg.required(false).default_values(values)
    };
    let set_in = |command: Command, name| command.mut_subcommand(name, |inner| inner.mut_args(set));
    WITH_STORE.into_iter().fold(command.mut_args(set), set_in)
}

pub(super) fn describe_flags(command: &Command, matches: &ArgMatches, values: &FileFlags) -> Vec<Value> {
    let row = |arg: &Arg| {
        let (id, name) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
        let from = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => "command line",
            Some(ValueSource::EnvVariable) => "environment",
            _ if values.iter().any(|(known, _)| known == name) => "file",
            _ => "default",
        };
        let raw = matches.get_raw(id).into_iter().flatten().map(|text| text.to_string_lossy());
        let text = raw.collect::<Vec<_>>().join(", ");
        json!({"flag": name, "value": Some(text).filter(|text| !text.is_empty()), "from": from})
    };
    configurable_flags(command).map(row).collect()
}

/// Returns a file in which each key is commented out, with its default or the form of its value.
pub(super) fn sample(command: &Command) -> String {
    let mut text =
        format!("# Remove the `#` before a key to set it. `{} serve --help` explains all.\n", command.get_name());
    for arg in configurable_flags(command) {
        let kind = Kind::of(arg);
        let default = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
        let form = || arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
        let value = match (kind, default) {
            (Kind::Switch, _) => "true".to_owned(),
            (Kind::Number, Some(number)) => number,
            (_, default) => format!("{:?}", default.unwrap_or_else(form)),
        };
        let value = if matches!(arg.get_action(), ArgAction::Append) { format!("[{value}]") } else { value };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = write!(text, "\n# {help}\n# {} = {value}\n", arg.get_long().unwrap_or_default());
    }
    text
}

fn configurable_flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let sets = |arg: &&Arg| arg.get_action().takes_values() || matches!(arg.get_action(), ArgAction::SetTrue);
    let is_general =
        |arg: &&Arg| arg.get_long().is_some_and(|long| ![AS, CONFIG, JSON, REASON, SOCKET].contains(&long));
    command.get_arguments().filter(sets).filter(is_general)
}

pub(super) fn is_switch(arg: &Arg) -> bool {
    Kind::of(arg) == Kind::Switch
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Switch,
    Number,
    Path,
    Text,
}

impl Kind {
    fn of(arg: &Arg) -> Self {
        let parsed = arg.get_value_parser().type_id();
        let is_any = |types: &[TypeId]| types.iter().any(|known| parsed == *known);
        if !arg.get_action().takes_values() || is_any(&[TypeId::of::<bool>()]) {
            return Self::Switch;
        }
        let small = [TypeId::of::<u8>(), TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()];
        let other = [TypeId::of::<usize>(), TypeId::of::<i32>(), TypeId::of::<i64>(), TypeId::of::<f64>()];
        match is_any(&[TypeId::of::<PathBuf>()]) {
            true => Self::Path,
            false if is_any(&small) || is_any(&other) => Self::Number,
            false => Self::Text,
        }
    }

    fn has(self, value: &DeValue<'_>) -> bool {
        match self {
            Self::Switch => value.is_bool(),
            Self::Number => value.is_integer() || value.is_float(),
            Self::Path | Self::Text => value.is_str(),
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Switch => "true or false",
            Self::Number => "a number",
            Self::Path => "a path in quotes",
            Self::Text => "a text in quotes",
        }
    }
}

fn texts(arg: &Arg, value: Spanned<DeValue<'_>>, config: &Config) -> Result<Vec<String>, ConfigError> {
    let (kind, span) = (Kind::of(arg), value.span());
    let name = arg.get_long().unwrap_or_default();
    let items = match (arg.get_action(), value.into_inner()) {
        (ArgAction::Append, DeValue::Array(items)) => items.into_iter().collect(),
        (ArgAction::Append, _) => {
            let help = format!("expected a list, as in `{name} = [...]`, of {} each", kind.describe());
            return Err(config.mistake(span, format!("`{name}` is not a list"), Some(help)));
        }
        (_, one) => vec![Spanned::new(span, one)],
    };
    let text = |item: Spanned<DeValue<'_>>| {
        let mistake = |message, help| Err(config.mistake(item.span(), message, Some(help)));
        match config_text(kind, item.get_ref(), config) {
            None => mistake(format!("`{name}` has the wrong type"), format!("expected {}", kind.describe())),
            Some(text) => match refusal(arg, kind, &text) {
                Some(why) => mistake(format!("`{name}` cannot be `{text}`"), why),
                None => Ok(text),
            },
        }
    };
    items.into_iter().map(text).collect()
}

/// Returns a value in the form of the command line. A relative path is relative to the file; an
/// empty one stays empty.
fn config_text(kind: Kind, value: &DeValue<'_>, config: &Config) -> Option<String> {
    let text = crate::config::plain_text(value).filter(|_| kind.has(value))?;
    match kind {
        Kind::Path if !text.is_empty() => Some(config.beside(Path::new(&text)).display().to_string()),
        _ => Some(text),
    }
}

fn refusal(arg: &Arg, kind: Kind, text: &str) -> Option<String> {
    if kind == Kind::Switch {
        return None;
    }
    // Only this flag is parsed: without the others, its relations to them cannot be checked.
    let value = Arg::new("value").value_parser(arg.get_value_parser().clone());
    let error = Command::new("flag").no_binary_name(true).arg(value).try_get_matches_from(["--", text]).err()?;
    if let Some(why) = error.source() {
        return Some(why.to_string());
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => Some(format!("possible values are {}", values.join(", "))),
        _ => error.to_string().lines().next().map(|line| line.trim_start_matches("error: ").to_owned()),
    }
}
