//! The toolsets that a server offers, in addition to the tools without one.

use super::catalogue::{Catalogue, ToolDef};
use super::permissions::PermissionSet;
use std::collections::BTreeSet;
use std::fmt;

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
    /// Bridges of `stdio` are answered, so names of their applications have toolsets.
    pub answers_bridges: bool,
}

impl Offer {
    #[must_use]
    pub fn toolsets_of(self, application: &str) -> Toolsets {
        let own = StdioApplication::of_name(application).filter(|_| self.answers_bridges);
        own.map_or(self.toolsets, |own| self.toolsets.and(own.toolsets(self.catalogue)))
    }
}

impl From<&'static Catalogue> for Offer {
    fn from(catalogue: &'static Catalogue) -> Self {
        Self { catalogue, toolsets: Toolsets::default(), answers_bridges: false }
    }
}

const STDIO: &str = "stdio";

/// Comes before the name of a toolset in the name of an application of `stdio`.
const OF_TOOLSET: char = '+';

/// The application of the clients of `stdio` with these permissions and toolsets. Its name has
/// both, because each process of a data folder may have its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StdioApplication {
    /// Empty if it has all.
    permissions: BTreeSet<String>,
    toolsets: BTreeSet<String>,
}

impl StdioApplication {
    /// Without permissions, it has all.
    pub fn new(permissions: impl IntoIterator<Item = String>, toolsets: impl IntoIterator<Item = String>) -> Self {
        Self { permissions: permissions.into_iter().collect(), toolsets: toolsets.into_iter().collect() }
    }

    /// Returns `None` for the name of another application.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let mut words = name.split('-');
        let is_stdio = words.next() == Some(STDIO);
        let (toolsets, permissions): (Vec<&str>, _) = words.partition(|word| word.starts_with(OF_TOOLSET));
        let toolsets = toolsets.into_iter().map(|word| word.trim_start_matches(OF_TOOLSET).to_owned());
        is_stdio.then(|| Self::new(permissions.into_iter().map(str::to_owned), toolsets))
    }

    /// Returns the permissions that it has.
    #[must_use]
    pub fn permissions(&self, catalogue: &Catalogue) -> Vec<String> {
        let known = catalogue.permissions.iter().map(|permission| permission.name.to_owned());
        known.filter(|name| self.permissions.is_empty() || self.permissions.contains(name)).collect()
    }

    /// Returns its toolsets; none if the contract lacks one of them.
    #[must_use]
    pub fn toolsets(&self, catalogue: &Catalogue) -> Toolsets {
        Toolsets::find(catalogue, self.toolsets.iter().map(String::as_str)).unwrap_or_default()
    }
}

impl fmt::Display for StdioApplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STDIO)?;
        self.toolsets.iter().try_for_each(|toolset| write!(f, "-{OF_TOOLSET}{toolset}"))?;
        self.permissions.iter().try_for_each(|permission| write!(f, "-{permission}"))
    }
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
            let application = StdioApplication::new(owned(permissions), owned(toolsets));
            assert_eq!(application.to_string(), name);
            assert_eq!(StdioApplication::of_name(name), Some(application));
        }
        assert_eq!(StdioApplication::of_name("demo-+ink"), None);
    }
}
