//! Words of a service in the help texts of commands that every service has.

use super::resources;
use toolwarrant_core::catalogue::Catalogue;

/// The words that replace `{...}` in help texts.
#[derive(Clone)]
pub(super) struct HelpWords {
    /// The noun for what tools act on, in the singular.
    target: String,
    permissions: String,
}

impl HelpWords {
    /// The words for commands that are about every resource.
    pub(super) fn of_all(catalogue: &Catalogue) -> Self {
        let target = match resources(catalogue)[..] {
            [one] => one,
            _ => "target",
        };
        let permissions: Vec<_> = catalogue.permissions.iter().map(|permission| permission.name).collect();
        Self { target: target.to_owned(), permissions: permissions.join(", ") }
    }

    /// The words for commands that are about one resource.
    pub(super) fn of_one(&self, resource: &str) -> Self {
        Self { target: resource.to_owned(), ..self.clone() }
    }

    fn text(&self, text: &str) -> String {
        let target = &self.target;
        let text = text.replace("{targets}", &format!("{target}s")).replace("{target}", target);
        text.replace("{TARGET}", &target.to_uppercase()).replace("{permissions}", &self.permissions)
    }

    /// Replaces the words in a command, its arguments and its subcommands.
    pub(super) fn fill(&self, command: clap::Command) -> clap::Command {
        let command = match command.get_about().map(|about| self.text(&about.to_string())) {
            Some(about) => command.about(about),
            None => command,
        };
        let command = match command.get_long_about().map(|about| self.text(&about.to_string())) {
            Some(about) => command.long_about(about),
            None => command,
        };
        command.mut_args(|arg| self.arg(arg)).mut_subcommands(|inner| self.fill(inner))
    }

    fn arg(&self, arg: clap::Arg) -> clap::Arg {
        let arg = match arg.get_help().map(|help| self.text(&help.to_string())) {
            Some(help) => arg.help(help),
            None => arg,
        };
        let arg = match arg.get_long().filter(|long| long.contains('{')).map(|long| self.text(long)) {
            Some(long) => arg.long(long),
            None => arg,
        };
        match arg.get_value_names().and_then(|names| names.first()).map(|name| self.text(name)) {
            Some(name) => arg.value_name(name),
            None => arg,
        }
    }
}
