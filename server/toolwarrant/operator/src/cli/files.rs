//! The files of an installation, in the names of the service. Start at [`all`].

use super::file;
use crate::alerts;
use crate::error::OperatorError;
use crate::names::Names;
use clap::{Arg, Command};
use clap_complete::{Shell, generate};
use std::fs::{self, create_dir_all};
use std::path::Path;

const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "completions/{program}.bash"),
    (Shell::Zsh, "completions/_{program}"),
    (Shell::Fish, "completions/{program}.fish"),
];

const TEMPLATES: [(&str, &str); 6] = [
    ("{program}.service", include_str!("../files/unit.service")),
    ("{program}.sysusers", include_str!("../files/sysusers.conf")),
    ("{program}.tmpfiles", include_str!("../files/tmpfiles.conf")),
    ("Containerfile", include_str!("../files/Containerfile")),
    ("compose.yaml", include_str!("../files/compose.yaml")),
    ("compose-replicas.yaml", include_str!("../files/compose-replicas.yaml")),
];

/// Returns each file with its name. `command` is the whole command line.
pub(super) fn all(command: &mut Command, names: &Names, about: &str) -> Vec<(String, String)> {
    let fill = |text: &str| {
        let text = text.replace("{program}", names.program).replace("{environment}", &names.environment);
        text.replace("{about}", about.trim_end_matches('.'))
    };
    let templates = TEMPLATES.map(|(name, text)| (fill(name), fill(text)));
    let made = [("{program}.toml", file::sample(command)), ("{program}.rules.yml", alerts::rules(names))];
    let made = made.map(|(name, text)| (fill(name), text));
    let completions = COMPLETIONS.map(|(shell, name)| (fill(name), completion(shell, command)));
    templates.into_iter().chain(made).chain(completions).collect()
}

pub(super) fn completion(shell: Shell, command: &mut Command) -> String {
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    match shell {
        Shell::Zsh => generate(shell, &mut escape_colons(command.clone()), name, &mut script),
        _ => generate(shell, command, name, &mut script),
    }
    String::from_utf8_lossy(&script).into_owned()
}

/// For zsh, a colon ends the name of a value, and `clap_complete` does not escape it.
fn escape_colons(command: Command) -> Command {
    let escape = |arg: Arg| match arg.get_value_names() {
        Some(names) => {
            let names: Vec<_> = names.iter().map(|name| name.replace(':', r"\:")).collect();
            arg.value_names(names)
        }
        None => arg,
    };
    command.mut_args(escape).mut_subcommands(escape_colons)
}

/// Writes into an empty or a new folder, so that no file of the reader is lost.
pub(super) fn write(folder: &Path, files: &[(String, String)]) -> Result<(), OperatorError> {
    let failed = |path: &Path, error| OperatorError::refusal(format!("cannot write {}: {error}", path.display()));
    if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(OperatorError::refusal(format!("{} is not empty; name a new folder", folder.display())));
    }
    for (name, text) in files {
        let path = folder.join(name);
        let written = create_dir_all(path.parent().unwrap_or(folder)).and_then(|()| fs::write(&path, text));
        written.map_err(|error| failed(&path, error))?;
    }
    Ok(())
}
