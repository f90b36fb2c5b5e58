//! The words in which a change is judged: whom it hurts, how much, and which version it needs.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// A model that reads the list of tools and answers each time.
    Agent,
    /// An MCP program with fixed names. It may hold an old list.
    Client,
    /// A program that calls `/v1`.
    Http,
    /// An application: what its keys may do, see, and are charged, if nobody changes its
    /// permissions.
    Application,
    /// The people who run the service: grants, folder, metrics, tasks in flight.
    Operator,
}

impl Audience {
    /// In the order of the verdicts of a rule.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Client, Self::Http, Self::Application, Self::Operator];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Client => "client",
            Self::Http => "http",
            Self::Application => "application",
            Self::Operator => "operator",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// All that worked works and means the same.
    Compatible,
    /// Calls still work, but an agent may choose differently, an outcome or a charge may differ, or
    /// an unseen condition may cause a failure.
    Risky,
    /// Something that worked as the old contract said is refused or means something else.
    Breaking,
}

impl Severity {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Risky => "risky",
            Self::Breaking => "breaking",
        }
    }
}

/// The number of a version that a change raises, from version 1.0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bump {
    Patch,
    Minor,
    Major,
}

impl Bump {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}
