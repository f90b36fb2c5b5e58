//! The service's words in the help texts of commands that every service has.

use clap::builder::{Resettable, Str, StyledStr};
use toolwarrant_core::catalogue::Catalogue;

#[derive(Clone)]
pub(super) struct HelpWords {
    /// The noun for the targets of tools, in the singular.
    target: String,
    permissions: String,
}

impl HelpWords {
    pub(super) fn of_all(catalogue: &Catalogue) -> Self {
        let target = match catalogue.resources {
            [one] => one.name,
            _ => "target",
        };
        let permissions: Vec<_> = catalogue.permissions.iter().map(|permission| permission.name).collect();
        Self { target: target.to_owned(), permissions: permissions.join(", ") }
    }

    pub(super) fn of_one(&self, resource: &str) -> Self {
        Self { target: resource.to_owned(), ..self.clone() }
    }

    fn text(&self, text: &str) -> String {
        let target = &self.target;
        let text = text.replace("{targets}", &format!("{target}s")).replace("{target}", target);
        text.replace("{TARGET}", &target.to_uppercase()).replace("{permissions}", &self.permissions)
    }

    fn help(&self, help: Option<&StyledStr>) -> Resettable<StyledStr> {
        help.map(|help| self.text(&help.to_string()).into()).into()
    }

    pub(super) fn fill(&self, command: clap::Command) -> clap::Command {
        let (about, long_about) = (self.help(command.get_about()), self.help(command.get_long_about()));
        let command = command.about(about).long_about(long_about);
        command.mut_args(|arg| self.arg(arg)).mut_subcommands(|inner| self.fill(inner))
    }

    fn arg(&self, arg: clap::Arg) -> clap::Arg {
        let (help, long) = (self.help(arg.get_help()), arg.get_long().map(|long| Str::from(self.text(long))));
        let arg = arg.help(help).long(Resettable::from(long));
        match arg.get_value_names().and_then(|names| names.first()).map(|name| self.text(name)) {
            Some(name) => arg.value_name(name),
            None => arg,
        }
    }
}
