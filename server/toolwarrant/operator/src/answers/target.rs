//! The answers about targets.

use crate::view::{AnswerView, Fact, PageOf, Show, answer_types, meaning, name_fact};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use toolwarrant_base::clock::Timestamp;

/// A target in a list.
#[derive(Clone, Debug, Serialize)]
pub struct TargetRow {
    #[serde(skip)]
    pub resource: &'static str,
    /// The first field.
    #[serde(skip)]
    pub id: String,
    /// The fields that the service shows.
    #[serde(flatten)]
    pub shown: Map<String, Value>,
    pub unreadable_since: Option<Timestamp>,
    pub applications: Vec<String>,
}

impl Show for TargetRow {
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.shown.facts();
        if let Some((_, first)) = facts.first_mut() {
            *first = show_target(self.resource, &self.id);
        }
        facts.push(name_fact("unreadable_since", self.unreadable_since.show()));
        facts.push(name_fact("applications", meaning::applications(&self.applications)));
        facts
    }
}

/// The target of a task.
#[derive(Clone, Debug)]
pub struct TaskTarget {
    pub resource: String,
    pub id: String,
    /// The argument that names it. `None` if the contract has several resources, whose targets can
    /// have the same id.
    pub arg: Option<&'static str>,
}

impl Serialize for TaskTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.arg {
            Some(arg) => serializer.collect_map([(arg, &self.id)]),
            None => serializer.collect_map([("resource", &self.resource), ("target", &self.id)]),
        }
    }
}

impl Show for TaskTarget {
    fn facts(&self) -> Vec<Fact> {
        let target = show_target(&self.resource, &self.id);
        match self.arg {
            Some(arg) => vec![name_fact(arg, target)],
            None => vec![name_fact("resource", meaning::resource(&self.resource)), name_fact("target", target)],
        }
    }
}

fn show_target(resource: &str, id: &str) -> AnswerView {
    AnswerView::Link(id.to_owned(), PageOf::Target { resource: resource.to_owned(), id: id.to_owned() })
}

answer_types! {
    /// The numbers of targets.
    pub struct StateCounts {
        count: u64,
        states: BTreeMap<&'static str, u64>,
        offers: BTreeMap<&'static str, u64>,
        prefixes: BTreeMap<String, u64>,
    }
}
