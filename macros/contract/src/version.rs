//! The version of a contract: three numbers, and the one that a change requires.

use std::fmt;
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
        spelt.ok_or_else(|| format!("`{text}` is not a version: write three numbers, such as `1.0.0`"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers_and_a_break_raises_the_middle_one_before_1_0() {
        for text in [
            "1.0",
            "1",
            "",
            "1.0.0.0",
            "v1.0.0",
            "1.0.x",
            "1.02.0",
            "1.0.0-rc.1",
            "1.0.-1",
            "1.0.99999999999",
            "x.1.0.0",
        ] {
            let refused = Version::parse(text).expect_err("no version");
            assert_eq!(refused, format!("`{text}` is not a version: write three numbers, such as `1.0.0`"));
        }
        let after = |text, bump| Version::parse(text).expect("a version").after(bump).to_string();
        let table = [("0.3.4", ["0.3.5", "0.3.5", "0.4.0"]), ("1.3.4", ["1.3.5", "1.4.0", "2.0.0"])];
        for (from, to) in table {
            assert_eq!([Bump::Patch, Bump::Minor, Bump::Major].map(|bump| after(from, bump)), to);
        }
    }
}
