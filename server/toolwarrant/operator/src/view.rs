//! The view of an answer for people: facts and tables, whose values have meanings. The command line
//! writes it as text, and the console as pages. Start at [`Show`].
//!
//! An answer declares its fields and columns once, in [`answer_types!`]. So a list has the same
//! columns in the same order, whatever its first row is.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::Remark;
use toolwarrant_core::act::Role;
use toolwarrant_core::report::UpstreamReport;
use toolwarrant_core::tasks::TaskStatus;
use toolwarrant_postgres::RunState;

/// A value as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerView {
    Absent,
    Text(String),
    Number(u64),
    Time(Timestamp),
    Word(String, Tone),
    Link(String, PageOf),
    List(Vec<AnswerView>),
    Facts(Vec<Fact>),
    /// The facts of a change, which stand on one line.
    Line(Vec<Fact>),
    Table(Table),
}

/// A value with its name.
pub type Fact = (Cow<'static, str>, AnswerView);

/// The judgement in a word of the framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    Plain,
    Good,
    Doubtful,
    Silent,
    Going,
    Off,
    Bad,
}

/// A page of the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageOf {
    Task(String),
    /// By its name or id.
    Application(String),
    Key(String),
    Resource(String),
    Target {
        resource: String,
        id: String,
    },
    /// An id of any kind.
    Id(String),
}

/// Rows with the same columns. No column is empty in every row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub head: Vec<Cow<'static, str>>,
    pub rows: Vec<Vec<AnswerView>>,
}

impl Table {
    /// The columns are those of any row, each at its first place.
    fn of(rows: Vec<Vec<Fact>>) -> Self {
        let mut columns: Vec<(Cow<'static, str>, bool)> = Vec::new();
        for (name, view) in rows.iter().flatten() {
            match columns.iter_mut().find(|(known, _)| known == name) {
                Some((_, is_shown)) => *is_shown |= !view.is_empty(),
                None => columns.push((name.clone(), !view.is_empty())),
            }
        }
        let head: Vec<_> = columns.into_iter().filter(|(_, is_shown)| *is_shown).map(|(name, _)| name).collect();
        let take = |mut row: Vec<Fact>| {
            let cell = |name| match row.iter().position(|(known, _)| known == name) {
                Some(at) => row.swap_remove(at).1,
                None => AnswerView::Absent,
            };
            head.iter().map(cell).collect()
        };
        let rows = rows.into_iter().map(take).collect();
        Self { head, rows }
    }
}

impl AnswerView {
    /// Returns the value of a service, whose members have any names.
    #[must_use]
    pub fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Absent,
            Value::String(text) => match text.parse() {
                Ok(time) if text.len() == Timestamp(0).to_string().len() => Self::Time(time),
                _ => text.show(),
            },
            Value::Number(number) => number.as_u64().map_or_else(|| number.to_string().show(), Self::Number),
            Value::Bool(flag) => flag.show(),
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
                let rows = items.iter().filter_map(Value::as_object);
                Self::Table(Table::of(rows.map(Show::facts).collect()))
            }
            Value::Array(items) => Self::List(items.iter().map(Self::of_value).collect()),
            Value::Object(members) if !members.is_empty() && members.values().all(Value::is_boolean) => {
                Self::List(members.iter().filter(|(_, flag)| **flag == true).map(|(name, _)| name.show()).collect())
            }
            Value::Object(members) => members.show(),
        }
    }

    /// Puts facts on one line, without the tables among them.
    #[must_use]
    pub fn of_change(mut facts: Vec<Fact>) -> Self {
        facts.retain(|(_, view)| !matches!(view, Self::Table(_)));
        Self::Line(facts)
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::List(items) => items.is_empty(),
            _ => false,
        }
    }
}

/// Shows a value to people. A type with columns has [`Self::facts`], and any other one
/// [`Self::show`].
pub trait Show {
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    fn show(&self) -> AnswerView {
        AnswerView::Facts(self.facts())
    }
}

impl Show for AnswerView {
    fn show(&self) -> AnswerView {
        self.clone()
    }
}

/// Declares types of answers. Their fields, which are public, are their columns: `name: Type`,
/// `name: Type => meaning`, `..(name: Type)` for the members of the value itself, or
/// `name: Type => hidden` for programs alone. A `change`, with a field `made`, stands on one line.
macro_rules! answer_types {
    ($($(#[$attr:meta])* pub $kind:ident $name:ident $body:tt)*) => {
        $(answer_types!(@$kind [$(#[$attr])*] $name $body);)*
    };
    (@enum [$($attr:tt)*] $name:ident {
        $($variant:ident { $($field:ident: $type:ty),* $(,)? })*
    }) => {
        $($attr)*
        #[derive(Clone, Debug, serde::Serialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum $name {
            $($variant { $($field: $type),* },)*
        }

        impl $crate::view::Show for $name {
            fn facts(&self) -> Vec<$crate::view::Fact> {
                match self {
                    $(Self::$variant { $($field),* } => vec![
                        $crate::view::name_fact("kind", stringify!($variant).to_lowercase().show()),
                        $($crate::view::name_fact(stringify!($field), $field.show())),*
                    ],)*
                }
            }
        }
    };
    (@$kind:ident [$($attr:tt)*] $name:ident {
        $($(#[$note:meta])* $(..($inner:ident: $all:ty))? $($field:ident: $type:ty $(=> $meaning:ident)?)?),*
    }) => {
        $($attr)*
        #[derive(Clone, Debug, serde::Serialize)]
        pub struct $name {
            $($(#[$note])* $(#[serde(flatten)] pub $inner: $all,)? $(pub $field: $type,)?)*
        }

        impl $crate::view::Show for $name {
            fn facts(&self) -> Vec<$crate::view::Fact> {
                [$(
                    $($crate::view::Show::facts(&self.$inner),)?
                    $($crate::view::columns!(@column self.$field, $field $(: $meaning)?),)?
                )*].concat()
            }

            answer_types!(@show $kind);
        }
    };
    (@show struct) => {};
    (@show change) => {
        fn show(&self) -> $crate::view::AnswerView {
            match Option::<&ActMade>::from(&self.made) {
                Some(_) => $crate::view::AnswerView::of_change(self.facts()),
                None => $crate::view::AnswerView::Facts(self.facts()),
            }
        }
    };
}
pub(crate) use answer_types;

/// Declares the columns of a type of another crate.
macro_rules! columns {
    ($($type:ty { $($column:ident $(: $meaning:ident)?),* $(,)? })*) => {
        $(impl $crate::view::Show for $type {
            fn facts(&self) -> Vec<$crate::view::Fact> {
                [$($crate::view::columns!(@column self.$column, $column $(: $meaning)?)),*].concat()
            }
        })*
    };
    (@column $value:expr, $column:ident: hidden) => {
        Vec::new()
    };
    (@column $value:expr, $column:ident $(: $meaning:ident)?) => {
        vec![$crate::view::name_fact(stringify!($column), $crate::view::columns!(@view $value $(, $meaning)?))]
    };
    (@view $value:expr) => {
        $crate::view::Show::show(&$value)
    };
    (@view $value:expr, $meaning:ident) => {
        $crate::view::meaning::$meaning(&$value)
    };
}
pub(crate) use columns;

pub(crate) fn name_fact(name: &'static str, view: AnswerView) -> Fact {
    (if name.contains('_') { name.replace('_', " ").into() } else { name.into() }, view)
}

/// The meanings of texts.
pub(crate) mod meaning {
    use super::{AnswerView, PageOf, Show, Tone};

    pub(crate) fn task(id: &str) -> AnswerView {
        AnswerView::Link(id.to_owned(), PageOf::Task(id.to_owned()))
    }

    pub(crate) fn key(id: &str) -> AnswerView {
        AnswerView::Link(id.to_owned(), PageOf::Key(id.to_owned()))
    }

    pub(crate) fn application(name: &str) -> AnswerView {
        AnswerView::Link(name.to_owned(), PageOf::Application(name.to_owned()))
    }

    pub(crate) fn applications(names: &[String]) -> AnswerView {
        AnswerView::List(names.iter().map(|name| application(name)).collect())
    }

    pub(crate) fn resource(name: &str) -> AnswerView {
        AnswerView::Link(name.to_owned(), PageOf::Resource(name.to_owned()))
    }

    pub(crate) fn id(id: &str) -> AnswerView {
        AnswerView::Link(id.to_owned(), PageOf::Id(id.to_owned()))
    }

    pub(crate) fn object(object: &Option<String>) -> AnswerView {
        object.as_deref().map_or(AnswerView::Absent, id)
    }

    /// Hides an empty list.
    pub(crate) fn any<T: Show>(rows: &[T]) -> AnswerView {
        if rows.is_empty() { AnswerView::Absent } else { rows.show() }
    }

    pub(crate) fn verdict(is_good: &bool) -> AnswerView {
        AnswerView::Word(is_good.to_string(), if *is_good { Tone::Good } else { Tone::Bad })
    }

    pub(crate) fn outcome(outcome: &str) -> AnswerView {
        AnswerView::Word(outcome.to_owned(), Tone::of_outcome(outcome))
    }

    /// The state of a check of the doctor.
    pub(crate) fn check(state: &&str) -> AnswerView {
        AnswerView::Word((*state).to_owned(), if *state == "ok" { Tone::Good } else { Tone::Bad })
    }

    /// A text with lines of its own.
    pub(crate) fn schema(schema: &serde_json::Value) -> AnswerView {
        format!("{schema:#}").show()
    }
}

macro_rules! texts {
    ($($type:ty)*) => {
        $(impl Show for $type {
            fn show(&self) -> AnswerView {
                AnswerView::Text(self.to_string())
            }
        })*
    };
}
texts!(str String bool IpAddr RunState);

impl Show for Remark {
    fn show(&self) -> AnswerView {
        self.as_str().show()
    }
}

impl Show for UpstreamReport {
    fn show(&self) -> AnswerView {
        self.as_str().show()
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Show for $type {
            fn show(&self) -> AnswerView {
                AnswerView::Number(*self as u64)
            }
        })*
    };
}
numbers!(u8 u32 u64 usize);

impl Show for PathBuf {
    fn show(&self) -> AnswerView {
        AnswerView::Text(self.display().to_string())
    }
}

impl Show for Timestamp {
    fn show(&self) -> AnswerView {
        AnswerView::Time(*self)
    }
}

impl Show for Role {
    fn show(&self) -> AnswerView {
        let name = match self {
            Self::View => "view",
            Self::Operate => "operate",
            Self::Owner => "owner",
        };
        name.show()
    }
}

impl Show for TaskStatus {
    fn show(&self) -> AnswerView {
        AnswerView::Word(self.as_str().to_owned(), Tone::of(*self))
    }
}

impl Tone {
    #[must_use]
    pub fn of(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Dispatched => Self::Going,
            TaskStatus::Success => Self::Good,
            TaskStatus::SuccessUnverified | TaskStatus::Timeout => Self::Doubtful,
            TaskStatus::FailedSilent => Self::Silent,
            TaskStatus::Failed => Self::Bad,
        }
    }

    /// Returns the tone of a task's status, or of the outcome of a call.
    #[must_use]
    pub fn of_outcome(outcome: &str) -> Self {
        let status = TaskStatus::ALL.iter().find(|status| status.as_str() == outcome);
        let other = if outcome == "ok" { Self::Good } else { Self::Plain };
        status.map_or(other, |status| Self::of(*status))
    }
}

impl Show for Value {
    fn show(&self) -> AnswerView {
        AnswerView::of_value(self)
    }
}

impl Show for Map<String, Value> {
    fn facts(&self) -> Vec<Fact> {
        self.iter().map(|(name, value)| (name.replace('_', " ").into(), AnswerView::of_value(value))).collect()
    }
}

impl<K: AsRef<str>, V: Show> Show for BTreeMap<K, V> {
    fn facts(&self) -> Vec<Fact> {
        self.iter().map(|(name, value)| (name.as_ref().replace('_', " ").into(), value.show())).collect()
    }
}

macro_rules! pointers {
    ($([$($generic:tt)*] $type:ty;)*) => {
        $(impl<$($generic)*> Show for $type {
            fn facts(&self) -> Vec<Fact> {
                (**self).facts()
            }

            fn show(&self) -> AnswerView {
                (**self).show()
            }
        })*
    };
}
pointers! {
    [T: Show + ?Sized] &T;
    [T: Show] Box<T>;
    [T: Show] Vec<T>;
}

impl<T: Show> Show for Option<T> {
    fn facts(&self) -> Vec<Fact> {
        self.as_ref().map(Show::facts).unwrap_or_default()
    }

    fn show(&self) -> AnswerView {
        self.as_ref().map_or(AnswerView::Absent, Show::show)
    }
}

impl<T: Show> Show for [T] {
    fn show(&self) -> AnswerView {
        let rows: Vec<_> = self.iter().map(Show::facts).collect();
        match rows.first() {
            Some(row) if !row.is_empty() => AnswerView::Table(Table::of(rows)),
            _ => AnswerView::List(self.iter().map(Show::show).collect()),
        }
    }
}
