//! The columns of answers.

use super::{
    ActMade, ActRow, ApplicationAnswer, ApplicationFacts, BackupAnswer, BegunAgain, CheckRow, ClockAccepted, Concern,
    ConsoleLink, ConsoleSession, Diagnosis, FaultRow, FoundObject, FoundTarget, KeyAnswer, KeyState, LastDay,
    ListCommand, ListedApplication, ListedTasks, ListedTool, NewApplicationAnswer, NewKeyAnswer, OverviewAnswer,
    Readiness, RefundRow, RefundSum, RemedyRow, RestoreAnswer, RestoredApplication, RetentionRow, RevokedKeyAnswer,
    RightsGranted, SecretAnswer, SeenTargets, ServerFacts, ServerLoad, SessionsEnded, StoreChecked, StoreMade,
    TargetCounts, TaskAnswer, TaskCall, TaskCounts, TaskPeriod, TaskRow, ToolAnswer, UnexaminedRow, Viewers, WithAct,
};
use crate::history::Counts;
use crate::render::cell;
use crate::view::{AnswerView, Fact, Show, Tone, columns, name_fact};
use serde_json::Value;
use toolwarrant_core::act::{Changes, FieldChange};
use toolwarrant_core::tasks::Evidence;
use toolwarrant_postgres::ReplicaRun;
use toolwarrant_tasks::history::{LedgerEntry, TaskHistory, TimelineRow};

columns! {
    ActMade { act_id: id, note }
    ApplicationFacts { name, id: application, permissions, suspended_at, labels, sees: all }
    change ApplicationAnswer {
        application: all, requests_per_minute, requests_in_last_minute, created_at, keys: any, latest_acts, made: all,
    }
    ListedApplication { application: all, live_keys, requests_per_minute }
    change KeyAnswer {
        key_id: key, application, state, live_secrets, created_at, expires_at, last_used_at, last_used_from, labels,
        secrets, latest_acts, made: all,
    }
    NewKeyAnswer { key_id: key, secret, act_id: id, note }
    NewApplicationAnswer { application: all, key_id: key, secret, act_id: id, note }
    change RevokedKeyAnswer { key_id: key, state, made: all }
    SecretAnswer { created_at, ends_at, last_used_at, last_used_from }
    TaskRow {
        task_id: task, application, tool, target: all, status, phase, attempts, created_at, finished_at,
    }
    ListedTasks { tasks, next, note }
    TaskAnswer { task: all, resource, refunded_at, meaning, call: all, history: all }
    TaskCall { request_id: id, key_id: key, arguments }
    TaskHistory { deadline_at, due_at, settle_seconds, before, why, evidence, ledger: any, timeline: any }
    Evidence { checked, expected, observed, reported, checked_at }
    LedgerEntry { kind, at }
    TimelineRow { at, phase, what }
    RefundRow { refunded_at, application, units, task_id: task }
    RefundSum { day, application, units }
    TaskCounts { tasks, every: any }
    TaskPeriod { since, tasks }
    FoundTarget { seen_by, tasks, lines }
    Viewers { resource: resource, applications: applications }
    ActRow { time, by, command, object: object, name, changes, reason, claims, channel, uid, act_id: id }
    ListedTool { tool, permission, title }
    ToolAnswer {
        name, title, permission, description, secret_arguments, input_schema: schema, output_schema: schema,
    }
    OverviewAnswer { server: all, targets, needs_a_look }
    TargetCounts { resource: resource, count, states }
    Concern { count, what, see }
    ServerFacts { ready: verdict, why_not, remark, load: all, last_day }
    ServerLoad {
        started_at, tasks_in_flight, held_polls, connections, engine_lag_seconds, audit_seal_age_seconds, upstreams,
    }
    LastDay { calls, tasks, since }
    Diagnosis { healthy: verdict, checks, faults, not_examined: any, warnings: any, remedies, kept }
    CheckRow { check, state: check, what_must_hold }
    FaultRow { check, found }
    UnexaminedRow { check, why }
    RemedyRow { check, remedy }
    RetentionRow { what, amount, oldest, kept }
    Readiness { ready: verdict, remark }
    ConsoleLink { link, role, works_once_until, from_another_machine }
    ConsoleSession { session, by, role, began_at, used_at, ends_at }
    change SessionsEnded { ended, made: all }
    change ClockAccepted { time, before, made: all }
    change BegunAgain { ended_as_timeout, keys, made: all, next_step, lost }
    change BackupAnswer { backup, bytes, made_at, files, left_out, note, made: all }
    RestoreAnswer { restored, owner, as_of, ended_as_timeout, applications, keys, next_step }
    RestoredApplication { name, id, permissions }
    ReplicaRun { name, machine, epoch, program, state, silent_seconds }
    StoreMade { store, replica, next }
    StoreChecked { store }
    RightsGranted { account, rights }
}

impl<T: Show> Show for WithAct<T> {
    fn facts(&self) -> Vec<Fact> {
        [self.answer.facts(), self.made.facts()].concat()
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

impl Show for FoundObject {
    fn facts(&self) -> Vec<Fact> {
        let (kind, facts) = match self {
            Self::Act { act } => ("act", vec![("act", act.show())]),
            Self::Task { task, lines } => ("task", vec![("task", task.show()), ("lines", lines.show())]),
            Self::Key { key, acts, lines } => {
                ("key", vec![("key", key.show()), ("acts", acts.show()), ("lines", lines.show())])
            }
            Self::Application { application, tasks, acts } => (
                "application",
                vec![("application", application.show()), ("tasks", tasks.show()), ("acts", acts.show())],
            ),
            Self::Request { lines, task } => ("request", vec![("lines", lines.show()), ("task", task.show())]),
            Self::Target(found) => {
                return [vec![name_fact("kind", "target".show())], found.facts()].concat();
            }
        };
        [("kind", kind.show())].into_iter().chain(facts).map(|(name, view)| name_fact(name, view)).collect()
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

impl Show for ListCommand {
    fn show(&self) -> AnswerView {
        self.to_string().show()
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
    use crate::answers::{ApplicationName, TaskTarget};
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
        let lines = [call, act].map(|line| toolwarrant_base::json::read::<crate::answers::TrailLine>(line).unwrap());
        assert_steady(lines.to_vec(), &["time", "by", "key", "did", "outcome", "from", "record"]);
    }
}
