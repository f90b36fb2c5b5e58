//! The files of an installation, in the names of the service. Start at [`all`].

use super::file;
use crate::error::OperatorError;
use crate::names::Names;
use clap::{Arg, Command};
use clap_complete::{Shell, generate};
use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
use std::fs::{File, create_dir_all};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "completions/{program}.bash"),
    (Shell::Zsh, "completions/_{program}"),
    (Shell::Fish, "completions/{program}.fish"),
];

/// The folder of the completions.
const INNER: &str = "completions";

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const NEW_FILE: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);

const TEMPLATES: [(&str, &str); 7] = [
    ("{program}.service", include_str!("../files/unit.service")),
    ("{program}.sysusers", include_str!("../files/sysusers.conf")),
    ("{program}.tmpfiles", include_str!("../files/tmpfiles.conf")),
    ("Containerfile", include_str!("../files/Containerfile")),
    ("compose.yaml", include_str!("../files/compose.yaml")),
    ("compose-replicas.yaml", include_str!("../files/compose-replicas.yaml")),
    ("{program}.rules.yml", RULES),
];

/// The alert rules, for Prometheus. No rule finds that a program is down: that is `up`, whose `job`
/// only the operator's own configuration knows. If a program is up and not ready, the rule of the
/// reason fires.
const RULES: &str = include_str!("../files/rules.yml");

/// Returns each file with its name. `command` is the whole command line.
pub(super) fn all(command: &mut Command, names: &Names, about: &str) -> Vec<(String, String)> {
    let fill = |text: &str| {
        let text = text.replace("{program}", names.program).replace("{environment}", &names.environment);
        text.replace("{metrics}", &names.metrics).replace("{about}", about.trim_end_matches('.'))
    };
    let templates = TEMPLATES.map(|(name, text)| (fill(name), fill(text)));
    let sample = [(fill("{program}.toml"), file::sample(command))];
    let completions = COMPLETIONS.map(|(shell, name)| (fill(name), completion(shell, command)));
    templates.into_iter().chain(sample).chain(completions).collect()
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
    // With a separator at its end, a path leads through a link.
    let folder: &Path = &folder.components().collect::<PathBuf>();
    let opened = create_dir_all(folder).and_then(|()| Ok(open(folder, FOLDER, Mode::empty())?));
    let opened = opened.map_err(|error| failed(folder, error))?;
    fill(&opened, files).map_err(|(name, error)| failed(&folder.join(name), error))
}

/// Follows no link and replaces nothing that another user puts into the folder meanwhile.
fn fill<'f>(folder: &OwnedFd, files: &'f [(String, String)]) -> Result<(), (&'f str, io::Error)> {
    let made =
        mkdirat(folder, INNER, Mode::from_raw_mode(0o777)).and_then(|()| openat(folder, INNER, FOLDER, Mode::empty()));
    let inner = &made.map_err(|error| (INNER, error.into()))?;
    for (path, text) in files {
        let (folder, name) = path.split_once('/').map_or((folder, &**path), |(_, name)| (inner, name));
        let made = openat(folder, name, NEW_FILE, Mode::from_raw_mode(0o666)).map_err(io::Error::from);
        made.and_then(|file| File::from(file).write_all(text.as_bytes())).map_err(|error| (&**path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::TABLE;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_rule_has_all_parts_and_names_only_metrics_of_the_table() {
        let names = RULES.split(|c: char| !(c.is_ascii_alphanumeric() || "_{}".contains(c)));
        let names = names.filter_map(|word| {
            word.strip_prefix("{metrics}").or(Some(word).filter(|word| word.starts_with("process_")))
        });
        let names: Vec<_> = names.map(|name| name.split('{').next().unwrap()).collect();
        let unknown = names.iter().find(|name| !TABLE.iter().any(|metric| metric.name == **name));
        assert!(names.len() > 20 && unknown.is_none(), "{unknown:?}");
        let all = RULES.matches("\n  - alert: ").count();
        for part in ["expr: ", "for: ", "labels: {severity: ", "annotations:\n      summary: "] {
            assert_eq!(RULES.matches(&format!("\n    {part}")).count(), all, "{part}");
        }
    }

    #[test]
    fn a_name_that_another_user_takes_meanwhile_leads_nowhere_and_is_not_replaced() {
        let files = ["one", "completions/two"].map(|name| (name.to_owned(), "ours".to_owned()));
        type Take = fn(&Path, &Path) -> io::Result<()>;
        let takes: [Take; 4] = [
            |to, at| symlink(to, at),
            |to, at| fs::hard_link(to.join("file"), at),
            |to, at| symlink(to.join("new"), at),
            |_, at| fs::write(at, "theirs"),
        ];
        for (name, take) in ["one", INNER].into_iter().flat_map(|name| takes.map(|take| (name, take))) {
            let home = tempfile::tempdir().unwrap();
            let [folder, other] = ["folder", "other"].map(|name| home.path().join(name));
            [&folder, &other].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
            fs::write(other.join("file"), "root's").unwrap();
            let opened = open(&folder, FOLDER, Mode::empty()).unwrap();
            take(&other, &folder.join(name)).unwrap();
            let (refused, error) = fill(&opened, &files).unwrap_err();
            assert_eq!((refused, error.kind()), (name, io::ErrorKind::AlreadyExists));
            fs::remove_file(other.join("file")).unwrap();
            symlink(&other, home.path().join("link")).unwrap();
            assert!(write(&home.path().join("link/"), &files).is_err());
            assert_eq!(other.read_dir().unwrap().count(), 0, "{name}");
        }
    }
}
