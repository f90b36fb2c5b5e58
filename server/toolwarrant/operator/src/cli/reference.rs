//! The reference of all flags, taken from the command line itself.

use clap::{Arg, Command};
use std::fmt::Write;
use toolwarrant_common::table_row;

pub(super) fn page(command: &Command) -> String {
    let name = command.get_name();
    let mut out = format!(
        "# Flags of {name}\n\nA flag overrides its variable. \
         An empty variable counts as not set. The variable of a switch is 1, 0, true, false, yes or no. The file of `--config` has a key for \
         each flag of serving except `--config` and `--json`, with the name of the flag; the variable overrides the file. Every command has the flags that are marked with \u{2217}.\n"
    );
    section(&mut out, "Serving", command);
    for inner in subcommands_in_order(command) {
        if inner.get_name() != "serve" {
            commands(&mut out, "", inner);
        }
    }
    out
}

fn commands(out: &mut String, before: &str, command: &Command) {
    let path = format!("{before}{}", command.get_name());
    section(out, &format!("`{path}`"), command);
    for inner in subcommands_in_order(command) {
        commands(out, &format!("{path} "), inner);
    }
}

fn subcommands_in_order(command: &Command) -> Vec<&Command> {
    let mut inner: Vec<_> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
    inner.sort_by_key(|inner| inner.get_name());
    inner
}

fn section(out: &mut String, title: &str, command: &Command) {
    let shown: Vec<_> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    if shown.is_empty() {
        return;
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(
        out,
        "\n## {title}\n\n{}.\n\n| flag | variable | default | description |\n|---|---|---|---|\n",
        about.trim_end_matches('.')
    );
    for arg in shown {
        *out += &table_row([flag(arg), variable(arg), default(arg), help(arg)]);
    }
}

fn flag(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let value = if arg.get_action().takes_values() { names } else { String::new() };
    let value = if arg.get_long().is_some() && !value.is_empty() { format!(" {value}") } else { value };
    let long = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    format!("`{long}{value}`{}", if arg.is_global_set() { " \u{2217}" } else { "" })
}

fn variable(arg: &Arg) -> String {
    arg.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default()
}

fn default(arg: &Arg) -> String {
    let values: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    match values.is_empty() || !arg.get_action().takes_values() || arg.is_hide_default_value_set() {
        true => String::new(),
        false => format!("`{}`", values.join(" ")),
    }
}

fn help(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}
