//! One request of a visitor: it asks commands with the rights of its session.

use crate::answer::encode;
use crate::door::Visitor;
use crate::rendered::HeadingAct;
use crate::state::ConsoleState;
use toolwarrant_core::act::Role;
use toolwarrant_operator::answers::OperatorAnswer;
use toolwarrant_operator::cli::parse_words;
use toolwarrant_operator::socket::CommandReceiver;
use toolwarrant_operator::{CommandAnswer, OperatorCommand, OperatorError};

#[derive(Clone, Copy)]
pub(crate) struct ConsoleVisit<'a> {
    pub(crate) console: &'a ConsoleState,
    pub(crate) receiver: &'a dyn CommandReceiver,
    pub(crate) visitor: &'a Visitor,
    pub(crate) query: &'a [(String, String)],
}

impl<'a> ConsoleVisit<'a> {
    /// Asks a command for its answer, which is a `T`.
    pub(crate) async fn ask<T: TryFrom<OperatorAnswer, Error = OperatorError>>(
        &self,
        words: &[&str],
    ) -> Result<T, OperatorError> {
        self.ask_any(words).await?.try_into()
    }

    pub(crate) async fn ask_any(&self, words: &[&str]) -> CommandAnswer {
        self.ask_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).await
    }

    pub(crate) async fn ask_words(&self, words: &[String]) -> CommandAnswer {
        let command: OperatorCommand = parse_words(self.console.catalogue, words)?;
        self.receiver.carry_out(&self.visitor.operator, command).await
    }

    /// Returns a value of the query that is not empty.
    pub(crate) fn query_value(&self, name: &str) -> Option<&'a str> {
        let value = self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    /// Returns the path of this page with another value in its query, from the first row on.
    pub(crate) fn same_page(&self, path: &str, name: &str, value: &str) -> String {
        let kept = self.query.iter().map(|(known, value)| (known.as_str(), value.as_str()));
        let left_out = [name, "after", "before"];
        let kept = kept.filter(|(known, _)| !left_out.contains(known));
        let pairs = kept.chain([(name, value)]).filter(|(_, value)| !value.is_empty());
        let pairs: Vec<_> = pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        format!("{path}?{}", pairs.join("&"))
    }

    pub(crate) fn may_act(&self) -> bool {
        self.visitor.operator.role >= Role::Operate
    }

    /// Returns the links to acts that the session may use, and all other links. Those that cannot
    /// be undone stand last.
    pub(crate) fn permit_acts(&self, mut acts: Vec<HeadingAct>) -> Vec<HeadingAct> {
        acts.retain(|act| self.may_act() || !act.path.starts_with("/act/"));
        acts.sort_by_key(|act| act.is_final);
        acts
    }
}
