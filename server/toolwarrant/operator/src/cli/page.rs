//! Commands as forms, for pages: the inputs that a command takes, and the command that a filled
//! form is. The parser of the command line judges both, so a page cannot ask for anything else. A
//! mistake names its input.

use super::with_targets;
use crate::command::{OperatorCommand, TargetCommand};
use crate::error::{FailureCode, OperatorError};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, FromArgMatches, Subcommand};
use toolwarrant_core::catalogue::Catalogue;

/// The inputs of a command.
pub struct CommandForm {
    pub about: String,
    pub inputs: Vec<CommandInput>,
}

/// An input of a command. One without dashes on the command line is given by its place.
pub struct CommandInput {
    pub name: String,
    pub help: String,
    /// Such as `WHEN`.
    pub value_name: String,
    pub has_dashes: bool,
    pub is_switch: bool,
    pub is_many: bool,
    /// The only values, if there are few.
    pub choices: Vec<String>,
}

fn command_of(catalogue: &Catalogue) -> clap::Command {
    let command = clap::Command::new("page").no_binary_name(true).disable_help_flag(true).subcommand_required(true);
    with_targets(OperatorCommand::augment_subcommands(command), catalogue)
}

/// Parses a command from its words, without the name of the program.
pub fn parse_words(catalogue: &Catalogue, words: &[String]) -> Result<OperatorCommand, OperatorError> {
    let mut all = command_of(catalogue);
    let matches = all.try_get_matches_from_mut(words);
    let mut command = &all;
    while let Some(inner) = words.iter().find_map(|word| command.find_subcommand(word)) {
        command = inner;
    }
    let wrong = |error: clap::Error| describe_mistake(&error, command);
    let matches = matches.map_err(wrong)?;
    match matches.subcommand() {
        Some((name, inner)) if catalogue.resource(name).is_some() => {
            let command = TargetCommand::from_arg_matches(inner).map_err(wrong)?;
            Ok(OperatorCommand::Target { resource: name.to_owned(), command })
        }
        _ => OperatorCommand::from_arg_matches(&matches).map_err(wrong),
    }
}

/// Says a mistake in words, with the input that it is about.
fn describe_mistake(error: &clap::Error, command: &clap::Command) -> OperatorError {
    let about = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => Some(arg),
        Some(ContextValue::Strings(args)) => args.first(),
        _ => None,
    };
    let is_it = |arg: &&clap::Arg| about.is_some_and(|about| arg.to_string() == *about);
    let arg = command.get_arguments().find(is_it);
    let (given, cause) = (error.get(ContextKind::InvalidValue), std::error::Error::source(error));
    let message = match (error.kind(), arg) {
        (ErrorKind::MissingRequiredArgument, Some(arg)) if is_many(arg) => "choose at least one".to_owned(),
        (ErrorKind::MissingRequiredArgument, Some(_)) => "this is needed".to_owned(),
        (ErrorKind::ArgumentConflict, Some(_)) => "this does not go together with another field".to_owned(),
        (ErrorKind::ValueValidation, Some(_)) => {
            let cause = cause.map(ToString::to_string).unwrap_or_default();
            format!("`{}` cannot be taken: {cause}", given.map(ToString::to_string).unwrap_or_default())
        }
        _ => {
            let text = error.to_string();
            let why = text.split("\n\nUsage").next().unwrap_or_default();
            why.trim_start_matches("error: ").trim_end().to_owned()
        }
    };
    OperatorError { field: arg.map(name_input), ..OperatorError::new(FailureCode::Usage, message) }
}

fn name_input(arg: &clap::Arg) -> String {
    arg.get_long().map_or_else(|| arg.get_id().to_string(), str::to_owned)
}

fn is_many(arg: &clap::Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

/// Returns the form of a command, or `None` if there is no such command.
#[must_use]
pub fn describe_form(catalogue: &Catalogue, words: &[&str]) -> Option<CommandForm> {
    let all = command_of(catalogue);
    let command = words.iter().try_fold(&all, |command, word| command.find_subcommand(word))?;
    let input = |arg: &clap::Arg| CommandInput {
        name: name_input(arg),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default().replace("; may be repeated", ""),
        value_name: arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string).unwrap_or_default(),
        has_dashes: arg.get_long().is_some(),
        is_switch: matches!(arg.get_action(), ArgAction::SetTrue),
        is_many: is_many(arg),
        choices: match arg.get_action() {
            ArgAction::SetTrue => Vec::new(),
            _ => arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
        },
    };
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    Some(CommandForm { about, inputs: command.get_arguments().map(input).collect() })
}

impl CommandForm {
    /// Returns the words of the command with these values. Those of an input that takes many stand
    /// on a line each.
    pub fn fill(&self, words: &[&str], fields: &[(String, String)]) -> Vec<String> {
        let mut filled: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut placed = Vec::new();
        for input in &self.inputs {
            let before = placed.len();
            let given = fields.iter().filter(|(name, _)| *name == input.name).map(|(_, value)| value.as_str());
            let lines = given.flat_map(|value| value.split(|c| input.is_many && c == '\n'));
            for value in lines.map(str::trim).filter(|value| !value.is_empty()) {
                match (input.has_dashes, input.is_switch) {
                    (true, true) => filled.push(format!("--{}", input.name)),
                    (true, false) => filled.push(format!("--{}={value}", input.name)),
                    (false, _) => placed.push(value.to_owned()),
                }
            }
            // The next value keeps its place.
            if !input.has_dashes && !input.is_many && placed.len() == before {
                placed.push(String::new());
            }
        }
        placed.truncate(placed.iter().rposition(|value| !value.is_empty()).map_or(0, |last| last + 1));
        // A value that begins with a dash is no flag.
        filled.push("--".to_owned());
        filled.extend(placed);
        filled
    }
}
