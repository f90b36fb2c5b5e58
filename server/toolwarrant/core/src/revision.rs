//! The revisions of the Model Context Protocol. Only this module knows their differences. Start at
//! [`Revision::features`].

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    V2026_07_28,
    V2025_11_25,
    V2025_06_18,
    V2025_03_26,
}

#[derive(Clone, Copy, Debug)]
pub struct Features {
    pub name: &'static str,
    /// True if a body can be a batch of messages.
    pub batches: bool,
    /// Titles of server and tools, output schemas, and structured content.
    pub structured: bool,
    /// True if a server can describe itself.
    pub described: bool,
    /// True if a client begins with `initialize`. Otherwise, each request carries the data of the
    /// handshake in headers and `_meta`, and each result its type, server and lifetime.
    pub handshake: bool,
}

impl Revision {
    /// The newest first.
    pub const ALL: [Self; 4] = [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26];

    /// For requests that name none, and clients that offer an unknown one.
    pub const FALLBACK: Self = Self::V2025_03_26;

    #[must_use]
    pub const fn features(self) -> Features {
        let with_handshake =
            Features { name: "2025-11-25", batches: false, structured: true, described: true, handshake: true };
        match self {
            Self::V2026_07_28 => Features { name: "2026-07-28", handshake: false, ..with_handshake },
            Self::V2025_11_25 => with_handshake,
            Self::V2025_06_18 => Features { name: "2025-06-18", described: false, ..with_handshake },
            Self::V2025_03_26 => {
                Features { name: "2025-03-26", batches: true, structured: false, described: false, ..with_handshake }
            }
        }
    }

    /// Returns the revision to agree on. A client that offers one without a handshake gets the
    /// newest one with it.
    #[must_use]
    pub fn negotiate(name: &str, served: &[Self]) -> Self {
        let offered = Self::ALL.into_iter().find(|revision| revision.features().name == name);
        let fits = |revision: &Self| {
            revision.features().handshake
                && offered.is_some_and(|offered| offered == *revision || !offered.features().handshake)
        };
        served.iter().copied().find(fits).unwrap_or(Self::FALLBACK)
    }

    /// Returns the revision for a request; `None` if it must be refused. Clients name their own
    /// revision, even if another was agreed on. So one with a handshake that is not served gets the
    /// fallback.
    #[must_use]
    pub fn from_request(name: &str, served: &[Self]) -> Option<Self> {
        if name == BEFORE_HTTP {
            return Some(Self::FALLBACK);
        }
        let revision = Self::ALL.into_iter().find(|revision| revision.features().name == name)?;
        if served.contains(&revision) {
            return Some(revision);
        }
        revision.features().handshake.then_some(Self::FALLBACK)
    }
}

/// From before Streamable HTTP. Some clients that support both name this one.
const BEFORE_HTTP: &str = "2024-11-05";

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

    #[test]
    fn a_revision_is_agreed_to_and_requested_as_far_as_it_is_served() {
        let few = [V2025_11_25, V2025_03_26];
        // The named revision, then agreed and requested, for all revisions and for few.
        let rows = [
            ("2025-03-26", V2025_03_26, Some(V2025_03_26), V2025_03_26, Some(V2025_03_26)),
            ("2025-06-18", V2025_06_18, Some(V2025_06_18), V2025_03_26, Some(V2025_03_26)),
            ("2025-11-25", V2025_11_25, Some(V2025_11_25), V2025_11_25, Some(V2025_11_25)),
            ("2026-07-28", V2025_11_25, Some(V2026_07_28), V2025_11_25, None),
            ("2024-11-05", V2025_03_26, Some(V2025_03_26), V2025_03_26, Some(V2025_03_26)),
            ("1999-01-01", V2025_03_26, None, V2025_03_26, None),
            ("", V2025_03_26, None, V2025_03_26, None),
        ];
        for (name, agreed, requested, agreed_of_few, requested_of_few) in rows {
            assert_eq!(Revision::negotiate(name, &Revision::ALL), agreed, "{name}");
            assert_eq!(Revision::from_request(name, &Revision::ALL), requested, "{name}");
            assert_eq!(Revision::negotiate(name, &few), agreed_of_few, "{name}");
            assert_eq!(Revision::from_request(name, &few), requested_of_few, "{name}");
        }
    }
}
