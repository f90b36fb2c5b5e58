//! The toolsets that a server offers, in addition to the tools without one.

use super::catalogue::{Catalogue, ToolDef};
use super::permissions::PermissionSet;

/// Bit `n` is the n-th toolset of the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Toolsets(u64);

impl Toolsets {
    /// Finds toolsets by their names.
    ///
    /// # Errors
    /// The contract has no such toolset. The error names those that it has.
    pub fn find<'a>(catalogue: &Catalogue, names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let known = || catalogue.toolsets.iter().map(|toolset| toolset.name);
        names.into_iter().try_fold(Self::default(), |Self(set), name| match known().position(|known| known == name) {
            Some(n) => Ok(Self(set | 1 << n)),
            None => Err(format!("there is no toolset `{name}`; there are {}", known().collect::<Vec<_>>().join(", "))),
        })
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub fn offers(self, tool: &ToolDef) -> bool {
        tool.toolset.is_none_or(|n| self.0 >> n & 1 == 1)
    }

    /// Adds the rights to the tools in these toolsets that the permissions open.
    #[must_use]
    pub fn open(self, catalogue: &Catalogue, permissions: PermissionSet) -> PermissionSet {
        let opened = catalogue.tools.iter().filter(|tool| self.offers(tool) && permissions.covers(tool.permission.bit));
        opened.fold(permissions, |set, tool| set.and(tool.right))
    }
}

/// A contract, and the toolsets of it that a server offers.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub catalogue: &'static Catalogue,
    pub toolsets: Toolsets,
}

impl From<&'static Catalogue> for Offer {
    fn from(catalogue: &'static Catalogue) -> Self {
        Self { catalogue, toolsets: Toolsets::default() }
    }
}

const STDIO: &str = "stdio";

/// Comes before the name of a toolset in the name of an application of `stdio`.
const OF_TOOLSET: char = '+';

/// Returns the name of the application of a client over `stdio`. Each process of a data folder may
/// have its own permissions and toolsets.
#[must_use]
pub fn name_stdio(permissions: &[String], toolsets: &[String]) -> String {
    let toolsets = toolsets.iter().map(|name| format!("{OF_TOOLSET}{name}"));
    let mut words: Vec<_> = permissions.iter().cloned().chain(toolsets).collect();
    words.sort();
    words.dedup();
    [vec![STDIO.to_owned()], words].concat().join("-")
}

/// Returns the permissions and the toolsets in the name of an application of `stdio`. All
/// permissions have no name.
#[must_use]
pub fn read_stdio(application: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let mut words = application.split('-');
    let is_stdio = words.next() == Some(STDIO);
    let (toolsets, permissions): (Vec<&str>, _) = words.partition(|word| word.starts_with(OF_TOOLSET));
    is_stdio.then(|| (permissions, toolsets.into_iter().filter_map(|word| word.strip_prefix(OF_TOOLSET)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_application_of_stdio_has_its_permissions_and_toolsets() {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (permissions, toolsets, name) in [
            (&[][..], &[][..], "stdio"),
            (&["look", "edit", "look"], &[], "stdio-edit-look"),
            (&["look"], &["ink", "a_b"], "stdio-+a_b-+ink-look"),
        ] {
            assert_eq!(name_stdio(&owned(permissions), &owned(toolsets)), name);
            let (read, sets) = read_stdio(name).unwrap();
            assert!(
                permissions.iter().all(|name| read.contains(name)) && toolsets.iter().all(|name| sets.contains(name))
            );
        }
        assert_eq!(read_stdio("stdio-edit-+ink"), Some((vec!["edit"], vec!["ink"])));
        assert_eq!(read_stdio("demo-+ink"), None);
    }
}
