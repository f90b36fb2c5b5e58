//! The help of the program: its commands in groups, the flags that people need, and examples. That
//! of `serve` has all flags of a server.

use crate::flags;
use clap::{Arg, Command};
use std::fmt::Write;

pub(super) const FILES: &str = "files";
pub(super) const COMPLETION: &str = "completion";

/// The service's own commands stand at the end of the first group, and those for resources at the
/// end of the second.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Serve", &["serve", "stdio", "console", "config", FILES, COMPLETION]),
    ("Applications and keys", &["app", "key"]),
    ("What happened", &["overview", "task", "refunds", "find", "acts", "audit"]),
    ("Use it", &["call", "bridge", "sign"]),
    ("Keep it", &["ready", "doctor", "backup", "restore", "clock"]),
    ("Several machines", &["store", "cluster"]),
    ("Contract", &["tools"]),
];

/// The flags in the help of the program.
const SHOWN: [&str; 5] = [flags::DATA, flags::CONFIG, flags::JSON, flags::AS, flags::REASON];

/// The flags of every command that only some commands show: those of the store, and of sockets.
const STORE: [&str; 5] = [flags::STORE, flags::STORE_PASSWORD, flags::REPLICA, flags::CELL, flags::AUTHORITY_LEASE];
const SOCKETS: [&str; 2] = [flags::SOCKET, flags::OPERATOR_SOCKETS];

/// The commands that show the flags of the store.
pub(super) const WITH_STORE: [&str; 3] = ["serve", "store", "cluster"];

/// Sets the help of the whole command line. `permission` is one for the examples.
pub(super) fn set(command: Command, resources: &[&str], permission: &str) -> Command {
    let name = command.get_name().to_owned();
    let copies = |named: &[&str]| -> Vec<Arg> {
        let is_one = |arg: &&Arg| arg.get_long().is_some_and(|long| named.contains(&long));
        command.get_arguments().filter(is_one).cloned().collect()
    };
    let (store, sockets) = (copies(&STORE), copies(&SOCKETS));
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        list(&command, resources)
    );
    let resource = resources.first().copied().unwrap_or("RESOURCE");
    let examples = format!(
        "`{name} serve --help` shows all flags of a server with their variables, such as --store and --socket.\n\n\
         Examples:\n  {name} app create agent --permission {permission} --assign '{resource}:*' --key"
    );
    let command = command.mut_args(|arg| match arg.get_long() {
        Some(long) if !SHOWN.contains(&long) => arg.hide(true),
        _ => arg,
    });
    let show = |command: Command, name| command.mut_subcommand(name, |inner| inner.args(&store));
    let command = WITH_STORE.into_iter().fold(command, show);
    let command = command.mut_subcommand("serve", |serve| serve.args(&sockets));
    command.help_template(template).after_help(examples)
}

/// Lists the commands by group.
fn list(command: &Command, resources: &[&str]) -> String {
    let width = command.get_subcommands().map(|inner| inner.get_name().len()).max().unwrap_or(0);
    let known = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let mut out = String::new();
    for (at, (title, names)) in GROUPS.iter().enumerate() {
        let named = names.iter().filter_map(|name| command.find_subcommand(name));
        let added = command.get_subcommands().filter(|inner| {
            let name = inner.get_name();
            !known(name) && at == usize::from(resources.contains(&name))
        });
        let _ = writeln!(out, "{title}:");
        for inner in named.chain(added) {
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(out, "  {:width$}  {about}", inner.get_name());
        }
        out.push('\n');
    }
    out
}
