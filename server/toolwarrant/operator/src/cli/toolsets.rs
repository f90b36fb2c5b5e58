//! The flag for toolsets. A service without toolsets does not have it.

use super::options::ServeOptions;
use crate::flags;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, FromArgMatches};
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::toolsets::Toolsets;

pub(super) fn flag(catalogue: &'static Catalogue) -> Option<Arg> {
    let all = || catalogue.toolsets.iter().map(|toolset| toolset.name);
    let known: String =
        catalogue.toolsets.iter().map(|toolset| format!(" {}: {}", toolset.name, toolset.doc)).collect();
    let help = format!("Toolset to offer in addition to the tools without one; may be repeated.{known}");
    let arg = Arg::new(flags::TOOLSETS).long(flags::TOOLSETS).value_name("NAME").help(help).value_delimiter(',');
    let arg = arg.action(ArgAction::Append).value_parser(PossibleValuesParser::new(all())).hide_possible_values(true);
    all().next().map(|_| arg)
}

pub(super) fn names(matches: &ArgMatches) -> Vec<String> {
    let named = matches.try_get_many::<String>(flags::TOOLSETS).ok().flatten();
    named.into_iter().flatten().cloned().collect()
}

/// Returns the options of a server that offers the named toolsets to every application.
pub(super) fn serve(matches: &ArgMatches, catalogue: &Catalogue) -> Result<ServeOptions, clap::Error> {
    let named = names(matches);
    let toolsets = Toolsets::find(catalogue, named.iter().map(String::as_str));
    let toolsets = toolsets.map_err(|why| clap::Error::raw(ErrorKind::InvalidValue, why))?;
    Ok(ServeOptions { toolsets, ..ServeOptions::from_arg_matches(matches)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};
    use toolwarrant_core::toolsets::Offer;

    mod notes {
        toolwarrant_macros::contract!("../../../tests/services/notes/spec", runtime = ::toolwarrant_core);
    }

    mod print_shop {
        toolwarrant_macros::contract!("../../../tests/services/print_shop/spec", runtime = ::toolwarrant_core);
    }

    fn toolsets(catalogue: &'static Catalogue, given: &[&str]) -> Result<Toolsets, clap::Error> {
        let command = ServeOptions::augment_args(Command::new("notes").no_binary_name(true)).args(flag(catalogue));
        let matches = command.try_get_matches_from(given)?;
        serve(&matches, catalogue).map(|serve| serve.toolsets)
    }

    #[test]
    fn only_a_service_with_toolsets_has_the_flag_and_an_unknown_toolset_ends_the_start() {
        let (notes, shop) = (&notes::CATALOGUE, &print_shop::CATALOGUE);
        let sketches = Toolsets::find(notes, ["sketches"]).unwrap();
        assert_eq!(toolsets(notes, &["--toolsets", "sketches,sketches"]).unwrap(), sketches);
        assert_eq!([toolsets(notes, &[]).unwrap(), toolsets(shop, &[]).unwrap()], [Toolsets::default(); 2]);
        let offer = Offer { answers_bridges: true, ..Offer::from(notes) };
        for (name, has) in [("stdio-+sketches", true), ("stdio", false), ("stdio-+gone", false), ("a-+sketches", false)]
        {
            assert_eq!(offer.toolsets_of(name) == sketches, has, "{name}");
        }
        assert_eq!(Offer::from(notes).toolsets_of("stdio-+sketches"), Toolsets::default(), "no bridge is answered");
        let unknown = toolsets(notes, &["--toolsets", "sketch"]).unwrap_err().to_string();
        assert!(unknown.contains("'sketch'") && unknown.contains("[possible values: sketches]"), "{unknown}");
        assert!(toolsets(shop, &["--toolsets", "sketches"]).unwrap_err().to_string().contains("unexpected argument"));
    }
}
