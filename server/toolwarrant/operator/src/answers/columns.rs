//! The views of values in answers.

use super::{CalledTool, KeyState, ListCommand, SeenTargets};
use crate::history::Counts;
use crate::render::cell;
use crate::view::{AnswerView, Fact, Show, Tone, columns, meaning, name_fact};
use serde_json::Value;
use toolwarrant_core::act::{Changes, FieldChange};
use toolwarrant_core::tasks::Evidence;
use toolwarrant_postgres::ReplicaRun;
use toolwarrant_tasks::history::{LedgerEntry, TaskHistory, TimelineRow};

columns! {
    TaskHistory { deadline_at, due_at, settle_seconds, before, why, evidence, ledger: any, timeline: any }
    Evidence { checked, expected, observed, reported, checked_at }
    LedgerEntry { kind, at }
    TimelineRow { at, phase, what }
    ReplicaRun { name, machine, epoch, program, state, silent_seconds }
}

impl Show for ListCommand {
    fn show(&self) -> AnswerView {
        self.to_string().show()
    }
}

impl Show for SeenTargets {
    fn show(&self) -> AnswerView {
        match self {
            Self::Text(text) => text.show(),
            Self::Count(count) => count.show(),
            Self::Terms(terms) => terms.show(),
        }
    }
}

impl Show for CalledTool {
    fn facts(&self) -> Vec<Fact> {
        let result = match AnswerView::of_value(&self.result) {
            AnswerView::Facts(facts) => facts,
            other => vec![name_fact("result", other)],
        };
        [result, vec![name_fact("request_id", meaning::id(&self.request_id))]].concat()
    }
}

impl Show for KeyState {
    fn show(&self) -> AnswerView {
        let (word, tone) = match self {
            Self::Live => ("live", Tone::Good),
            Self::Suspended => ("suspended", Tone::Doubtful),
            Self::Expired => ("expired", Tone::Doubtful),
            Self::Revoked => ("revoked", Tone::Off),
            Self::Unconfirmed => ("unconfirmed", Tone::Doubtful),
        };
        AnswerView::Word(word.to_owned(), tone)
    }
}

impl Show for Counts {
    fn facts(&self) -> Vec<Fact> {
        self.0.iter().map(|(name, count)| name_fact(name, count.show())).collect()
    }
}

impl Show for Changes {
    fn show(&self) -> AnswerView {
        let items = |sign, items: &[Value]| -> Vec<_> {
            items.iter().map(|item| format!("{sign}{}", cell(&AnswerView::of_value(item)))).collect()
        };
        let change = |(name, difference): (&String, &FieldChange)| {
            let name = name.replace('_', " ");
            match difference {
                FieldChange::Value { before, after } => {
                    let [before, after] = [before, after].map(|value| cell(&AnswerView::of_value(value)));
                    format!("{name} {before} -> {after}")
                }
                FieldChange::List { added, removed } => {
                    format!("{name} {}", [items("+", added), items("-", removed)].concat().join(" "))
                }
            }
        };
        match self.differences() {
            none if none.is_empty() => AnswerView::List(Vec::new()),
            some => AnswerView::Text(some.iter().map(change).collect::<Vec<_>>().join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answers::{ActRow, ApplicationName, TaskRow, TaskTarget, TrailLine};
    use std::borrow::Cow;
    use toolwarrant_base::clock::Timestamp;
    use toolwarrant_core::tasks::TaskStatus;

    fn columns(rows: &[impl Show]) -> Vec<Cow<'static, str>> {
        match rows.show() {
            AnswerView::Table(table) => table.head,
            other => panic!("{other:?}"),
        }
    }

    fn assert_steady<T: Show + Clone>(mut rows: Vec<T>, expected: &[&str]) {
        for _ in 0..rows.len() {
            assert_eq!(columns(&rows), expected);
            rows.rotate_left(1);
        }
    }

    #[test]
    fn a_list_has_its_columns_in_one_order_whatever_its_first_row_is() {
        let act = ActRow {
            time: Timestamp(1),
            by: "ada".to_owned(),
            command: "backup".to_owned(),
            object: None,
            name: None,
            changes: Changes::default(),
            reason: None,
            claims: None,
            channel: "console",
            uid: 7,
            act_id: "act_1".to_owned(),
            number: 1,
        };
        let (object, changes) = (Some("app_1".to_owned()), Changes::of("role", 1, 2));
        let named = ActRow { object, name: Some(ApplicationName::from("shop")), changes, ..act.clone() };
        let reasoned = ActRow { reason: Some("leaked".to_owned()), ..act.clone() };
        let all = ["time", "by", "command", "object", "name", "changes", "reason", "channel", "uid", "act id"];
        assert_steady(vec![act, named, reasoned], &all);

        let target = TaskTarget { resource: "lamp".to_owned(), id: "l-1".to_owned(), arg: Some("lamp_id") };
        let going = TaskRow {
            task_id: "task_1".to_owned(),
            application: "shop".into(),
            tool: "switch".to_owned(),
            target,
            status: TaskStatus::Dispatched,
            phase: Some("sending"),
            attempts: 1,
            created_at: Timestamp(1),
            finished_at: None,
            why: None,
        };
        let ended =
            TaskRow { status: TaskStatus::Success, phase: None, finished_at: Some(Timestamp(2)), ..going.clone() };
        let all =
            ["task id", "application", "tool", "lamp id", "status", "phase", "attempts", "created at", "finished at"];
        assert_steady(vec![going, ended], &all);

        let call = r#"{"time":"2026-11-29T10:00:00.000Z","application":"app_1","key_id":"k","tool":"t","outcome":"ok","request_id":"r","from":"127.0.0.1"}"#;
        let act = r#"{"time":"2026-11-29T10:00:00.000Z","operator":{"name":"ada"},"command":"backup","outcome":"ok","act_id":"a"}"#;
        let lines = [call, act].map(|line| toolwarrant_base::json::read::<TrailLine>(line).unwrap());
        assert_steady(lines.to_vec(), &["time", "by", "key", "did", "outcome", "from", "record"]);
    }

    #[test]
    fn a_line_of_another_form_is_called_unreadable_and_shown_whole() {
        let line = toolwarrant_base::json::read::<TrailLine>(r#"{"time":5,"outcome":"ok"}"#).unwrap();
        let shown = |name| line.facts().iter().find(|(known, _)| known == name).map(|(_, view)| cell(view));
        assert_eq!(
            ["outcome", "with"].map(shown),
            ["unreadable", "time 5, outcome ok"].map(|text| Some(text.to_owned()))
        );
    }
}
