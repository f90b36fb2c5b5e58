//! The version of a contract: three numbers, and the one that a change requires.

use std::fmt;
use toolwarrant_common::escape_line;
use toolwarrant_gate::Bump;

/// A version `X.Y.Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version([u32; 3]);

impl Version {
    /// Parses `X.Y.Z`; the numbers have no leading zeros.
    ///
    /// # Errors
    /// The text in words, with the form of a version.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let numbers: Vec<_> = text.split('.').filter_map(|part| part.parse().ok()).collect();
        let version = <[u32; 3]>::try_from(numbers).ok().map(Self);
        let spelt = version.filter(|version| version.to_string() == text);
        let shown = escape_line(text);
        spelt.ok_or_else(|| format!("`{shown}` is not a version: write three numbers, such as `1.0.0`"))
    }

    /// Returns the lowest version after this one that may have such a change. Before 1.0, a break
    /// raises the middle number, and any other change raises the last.
    pub(crate) fn after(self, bump: Bump) -> Self {
        let Self([major, minor, patch]) = self;
        let bump = match bump {
            Bump::Major if major == 0 => Bump::Minor,
            Bump::Minor if major == 0 => Bump::Patch,
            bump => bump,
        };
        Self(match bump {
            Bump::Major => [major.saturating_add(1), 0, 0],
            Bump::Minor => [major, minor.saturating_add(1), 0],
            Bump::Patch => [major, minor, patch.saturating_add(1)],
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}
