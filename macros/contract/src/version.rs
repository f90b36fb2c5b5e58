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

    /// Returns true before 1.0.
    pub(crate) fn is_draft(self) -> bool {
        self.0[0] == 0
    }

    /// Returns the number that such a change raises. Before 1.0, a break raises the middle number,
    /// and any other change raises the last.
    pub(crate) fn adapt(self, bump: Bump) -> Bump {
        match bump {
            Bump::Major if self.is_draft() => Bump::Minor,
            Bump::Minor if self.is_draft() => Bump::Patch,
            bump => bump,
        }
    }

    /// Returns the lowest version after this one that may have such a change.
    pub(crate) fn after(self, bump: Bump) -> Self {
        let Self([major, minor, patch]) = self;
        Self(match self.adapt(bump) {
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
