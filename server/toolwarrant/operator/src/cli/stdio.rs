//! The command `stdio`, and the data folder that a command uses.

use super::options::{LogOptions, ServeOptions};
use super::toolsets;
use crate::config::Config;
use crate::data::{SOCKET, is_begun};
use crate::flags;
use crate::names::Names;
use crate::place::StoreOptions;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::toolsets::StdioApplication;

pub(super) const STDIO: &str = "stdio";

#[derive(Debug, Args)]
struct StdioOptions {
    /// Permission of the client, which may be repeated; by default, it has all ({permissions})
    #[arg(long = flags::PERMISSION, value_name = "NAME", value_delimiter = ',')]
    permission: Vec<String>,
}

/// Returns the options of its server, which listens on a free port of this machine, for pages.
pub(super) fn read(matches: &ArgMatches, store: &StoreOptions) -> Result<ServeOptions, clap::Error> {
    if !store.is_folder() {
        let why = format!("`{STDIO}` has its data in a folder; leave --{} out", flags::STORE);
        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, why));
    }
    let StdioOptions { permission } = StdioOptions::from_arg_matches(matches)?;
    let application = StdioApplication::new(permission, toolsets::names(matches));
    let defaults = ServeOptions::augment_args(clap::Command::new(STDIO).no_binary_name(true));
    let defaults = ServeOptions::from_arg_matches(&defaults.try_get_matches_from([""; 0])?)?;
    Ok(ServeOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), stdio: Some(application), ..defaults })
}

/// `data` is the flag of every command, whose default is another one here.
pub(super) fn command<F: Args>(
    data: &Arg,
    catalogue: &'static Catalogue,
    fleets: &[(&'static str, &'static str)],
) -> clap::Command {
    let data = data.clone().hide_default_value(true).long_help(None);
    let data = data.help("Folder for stored data; by default, one for each kind of targets in the home folder");
    let command = StdioOptions::augment_args(clap::Command::new(STDIO)).arg(data);
    let permissions = PossibleValuesParser::new(catalogue.permissions.iter().map(|known| known.name));
    let command = command.mut_arg(flags::PERMISSION, |arg| arg.value_parser(permissions).hide_possible_values(true));
    let switch = |(name, help): &(&'static str, &'static str)| {
        Arg::new(*name).long(*name).help(*help).action(ArgAction::SetTrue)
    };
    let command = LogOptions::augment_args(F::augment_args(
        command.args(toolsets::flag(catalogue)).args(fleets.iter().map(switch)),
    ));
    command.about("Serve a client on standard input and output, without keys").long_about(None)
}

/// The folders that a command may use.
pub(super) struct Folders<'a> {
    pub(super) names: &'a Names,
    pub(super) fleets: &'a [(&'static str, &'static str)],
    pub(super) named: Option<PathBuf>,
    pub(super) here: PathBuf,
}

impl Folders<'_> {
    /// Returns the data folder, and the switch of `stdio` that it belongs to.
    pub(super) fn find(
        self,
        matches: &ArgMatches,
        config: &Config,
    ) -> Result<(PathBuf, Option<&'static str>), clap::Error> {
        let stdio = matches.subcommand_matches(STDIO);
        let fleets = || self.fleets.iter().map(|(name, _)| *name);
        let asked = stdio.and_then(|stdio| fleets().find(|name| stdio.get_flag(name)));
        let usual = if self.named.is_none() && stdio.is_some() {
            let why = format!("name a folder with --{}: HOME is not set, or there is --{}", flags::DATA, flags::CONFIG);
            let home = self.home(asked).filter(|_| config.path().is_none());
            vec![home.ok_or_else(|| clap::Error::raw(ErrorKind::MissingRequiredArgument, why))?]
        } else {
            let homes = fleets().map(Some).chain([None]).filter_map(|fleet| self.home(fleet));
            let installed = Path::new("/var/lib").join(self.names.program);
            [self.here.clone()].into_iter().chain(homes).chain([installed]).collect()
        };
        let starts = matches!(matches.subcommand_name(), None | Some("serve" | STDIO));
        let data = choose_folder(self.named.clone(), starts, &usual, self.names);
        let is_of = |name: &&str| data.file_name().is_some_and(|file| *file == *self.folder_name(Some(name)));
        let fleet = asked.or_else(|| fleets().find(is_of));
        Ok((data, fleet))
    }

    /// Uses the home folder alone, because a host passes few variables on.
    fn home(&self, fleet: Option<&str>) -> Option<PathBuf> {
        let home = std::env::var_os("HOME").filter(|home| Path::new(home).is_absolute())?;
        Some(Path::new(&home).join(".local/share").join(self.folder_name(fleet)))
    }

    fn folder_name(&self, fleet: Option<&str>) -> String {
        [self.names.program].into_iter().chain(fleet).collect::<Vec<_>>().join("-")
    }
}

/// Returns the data folder: the one that the command line, a variable or the file names, or else
/// the first of `usual` if it is begun, or else another that a server uses, or else the first that
/// is begun. The last one, of the installed service, need not be readable here. A start begins the
/// first one.
fn choose_folder(named: Option<PathBuf>, starts: bool, usual: &[PathBuf], names: &Names) -> PathBuf {
    let begun = || {
        let is_here = |folder: &&PathBuf| Some(*folder) == usual.first();
        let mut begun = usual.iter().filter(|folder| is_begun(folder, names)).peekable();
        let first = begun.peek().copied();
        begun.find(|folder| is_here(folder) || folder.join(SOCKET).exists()).or(first)
    };
    let installed = || usual.last().filter(|folder| folder.is_dir());
    let chosen = || if starts { None } else { begun().or_else(installed) };
    named.or_else(|| chosen().or(usual.first()).cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn a_folder_is_the_named_one_or_here_if_it_is_begun_or_else_that_of_the_installed_service() {
        let (root, names) = (TempDir::new().unwrap(), Names::of("shop", "1.0.0"));
        let at = |name: &str| root.path().join(name);
        for (folder, file) in
            [("begun", "shop.db"), ("replica", "replica"), ("new", "master.key"), ("other", "other.db")]
        {
            std::fs::create_dir(at(folder)).unwrap();
            std::fs::write(at(folder).join(file), "x").unwrap();
        }
        std::fs::create_dir(at("lib")).unwrap();
        for (named, starts, here, installed, expected) in [
            (Some("named"), false, "begun", "lib", "named"),
            (Some("named"), true, "begun", "lib", "named"),
            (None, false, "begun", "lib", "begun"),
            (None, false, "replica", "lib", "replica"),
            (None, false, "new", "lib", "new"),
            (None, false, "absent", "lib", "lib"),
            (None, false, "other", "lib", "lib"),
            (None, false, "absent", "no-lib", "absent"),
            (None, true, "absent", "lib", "absent"),
        ] {
            let usual = [at(here), at("no-fleet"), at(installed)];
            let chosen = choose_folder(named.map(at), starts, &usual, &names);
            assert_eq!(chosen, at(expected), "{named:?} {starts} {here} {installed}");
        }
        let usual = ["absent", "other", "new", "begun", "lib"].map(at);
        assert_eq!(choose_folder(None, false, &usual, &names), at("new"), "the first fleet of `stdio` that is begun");
    }
}
