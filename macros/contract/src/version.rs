//! The version of a contract: three numbers, and the one that a change requires.

use std::fmt;
use toolwarrant_common::escape_line;
use toolwarrant_gate::Bump;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version([u32; 3]);

impl Version {
    /// Refuses leading zeros.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let numbers: Vec<_> = text.split('.').filter_map(|part| part.parse().ok()).collect();
        let version = <[u32; 3]>::try_from(numbers).ok().map(Self);
        let spelt = version.filter(|version| version.to_string() == text);
        let shown = escape_line(text);
        spelt.ok_or_else(|| format!("`{shown}` is not a version: write three numbers, such as `1.0.0`"))
    }

    pub(crate) fn is_draft(self) -> bool {
        self.0[0] == 0
    }

    /// Raises the middle number for a break before 1.0, and the last for any other change.
    pub(crate) fn adapt(self, bump: Bump) -> Bump {
        match bump {
            Bump::Major if self.is_draft() => Bump::Minor,
            Bump::Minor if self.is_draft() => Bump::Patch,
            bump => bump,
        }
    }

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
