//! A change between two records of a contract, and the words in which it is judged.

use crate::rules::ChangeRule;
use serde_json::Value;

/// A reader or user of a contract that a change can hurt.
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
    /// All audiences, in the order of the verdicts of a rule.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Client, Self::Http, Self::Application, Self::Operator];

    /// Returns its name.
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

/// The effect of a change on one audience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Whatever worked works and means the same.
    Compatible,
    /// Calls still work, but an agent may choose differently, an outcome or a charge may differ, or
    /// a failure depends on something that the contract does not show.
    Risky,
    /// Something that worked as the old contract said is refused or means something else.
    Breaking,
}

impl Severity {
    /// Returns its name.
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
#[expect(missing_docs, reason = "the numbers of a semantic version")]
pub enum Bump {
    Patch,
    Minor,
    Major,
}

impl Bump {
    /// Returns the name of the number.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

/// One change between two records, with what follows from it.
#[derive(Clone, Debug)]
pub struct ContractChange {
    /// The rule that judges it.
    pub rule: &'static ChangeRule,
    /// The key of the fact, or of the part of the contract that came or went, such as `tool.NAME`.
    pub fact: String,
    /// Its value before; `None` if it did not exist. A part has no value: it is `true`.
    pub old: Option<Value>,
    /// Its value now.
    pub new: Option<Value>,
    /// The change in words: one sentence without a full stop.
    pub message: String,
    /// The tools that permissions lose and gain by it.
    pub lists: Vec<ListChange>,
    /// The arguments, results and errors that use the fact's type, as keys of facts.
    pub users: Vec<String>,
    /// True if the framework has caused it, and no file of the contract.
    pub is_framework: bool,
    /// The changes that follow from this one.
    pub consequences: Vec<ContractChange>,
}

/// The change of the tools that a key may call if it holds one permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListChange {
    /// The permission.
    pub permission: String,
    /// The tools that it has lost.
    pub lost: Vec<String>,
    /// The tools that it has gained.
    pub gained: Vec<String>,
}

impl ContractChange {
    /// Returns the verdict for the audience that is hurt most.
    #[must_use]
    pub fn worst(&self) -> Severity {
        self.rule.verdicts.into_iter().max().unwrap_or(Severity::Compatible)
    }

    /// Returns the verdict for an audience.
    #[must_use]
    pub fn verdict(&self, audience: Audience) -> Severity {
        self.rule.verdicts[audience as usize]
    }
}
