//! Compares three accounts of a run: the answers that clients got, the database, and the records of
//! the phones. Simulated phones record in the data folder, [pads] in the journal of the double.

mod pads;
pub(crate) mod rack;

use super::load::TaskView;
use super::platforms::Pads;
use crate::harness::writes::database;
use rusqlite::{Connection, Row};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

/// Each query selects the rows that break the promise. All must hold once every task has ended.
const PROMISES: [(&str, &str); 11] = [
    ("a task has ended", "SELECT * FROM task WHERE terminal = 0"),
    ("arguments are wiped", "SELECT * FROM task WHERE sealed IS NOT NULL"),
    (
        "each version of a task has one event",
        "SELECT * FROM task WHERE version <> (SELECT count(*) FROM task_event WHERE task_id = id)",
    ),
    (
        "the last event of a task is its end",
        "SELECT * FROM task WHERE status <> (SELECT phase FROM task_event WHERE task_id = id ORDER BY version DESC)",
    ),
    (
        "a task ends once",
        "SELECT * FROM task JOIN task_event e ON task_id = id WHERE phase IN (SELECT status FROM task) AND e.version < task.version",
    ),
    (
        "exactly failed_silent is refunded",
        "SELECT * FROM task LEFT JOIN ledger ON task_id = task.id AND kind = 'refund' WHERE (status = 'failed_silent') <> (task_id IS NOT NULL)",
    ),
    (
        "exactly the tasks with a send attempt are charged",
        "SELECT * FROM task LEFT JOIN ledger ON task_id = task.id AND kind = 'charge' WHERE (state ->> 'attempts' > 0) <> (task_id IS NOT NULL)",
    ),
    (
        "exactly the charges of attempts that sent nothing, or that a busy platform measurably did not carry out, are reversed",
        "SELECT * FROM task LEFT JOIN ledger ON task_id = task.id AND kind = 'reversal'
         WHERE (state ->> 'attempts' > 0 AND (NOT state ->> 'left' OR state ->> '$.outcome[0].busy' IS NOT NULL
             AND NOT coalesce(state ->> 'unanswered', 0) AND state ->> '$.settled.absent' > 0)) <> (task_id IS NOT NULL)",
    ),
    // A call can wait for the store after it has arrived, so a task counts from its first step. The
    // clocks of replicas differ by less than a second.
    (
        "a target has one task in flight",
        "WITH run AS (SELECT id, target, min(at) + 1000 AS first, finished_at FROM task JOIN task_event ON task_id = id GROUP BY id)
         SELECT * FROM run a JOIN run b ON a.target = b.target AND a.id < b.id WHERE a.first < b.finished_at AND b.first < a.finished_at",
    ),
    // The engine finishes the work in progress within a minute; a start or an adoption comes first.
    ("a task ends in time", "SELECT * FROM task WHERE finished_at > 1000 * (unixepoch(state ->> 'deadline_at') + 155)"),
    ("every ledger entry belongs to a task", "SELECT * FROM ledger WHERE task_id NOT IN (SELECT id FROM task)"),
];

#[derive(Default)]
pub(crate) struct AuditBooks {
    tasks: BTreeMap<String, u64>,
    /// The distinct tasks in the answers to clients. `lost` counts those that are missing in the
    /// database.
    acknowledged: u64,
    pub(super) lost: u64,
    refunds: u64,
    refused: u64,
    pub(super) commands: u64,
    pub(super) repeated: u64,
    pads: Option<pads::Figures>,
    pub(crate) violations: Vec<String>,
}

struct Task {
    target: String,
    tool: String,
    key: Option<String>,
    status: String,
    attempts: u32,
    left: bool,
    idempotent: bool,
    /// The time from which it could be sent, in milliseconds since the Unix epoch: that of its
    /// first step, if a slow store took its call later than it arrived. It is after the end of the
    /// task before it on the target.
    ready_at: i64,
    finished_at: Option<i64>,
}

impl AuditBooks {
    pub(super) fn compare(data: &Path, told: &[TaskView], pads: Option<&Pads>) -> Self {
        Self::compare_with(&database(data), &commands(data), told, pads)
    }

    /// Takes a database in the form of the embedded one.
    pub(super) fn compare_with(
        db: &Connection,
        commands: &HashMap<String, Vec<Value>>,
        told: &[TaskView],
        pads: Option<&Pads>,
    ) -> Self {
        let tasks = tasks(db);
        let mut books = Self::default();
        books.keeps_its_promises(db);
        books.agrees_with_what_was_told(&tasks, told);
        books.agrees_with_what_was_done(&tasks, commands);
        if let Some(pads) = pads {
            books.agrees_with_the_double(&tasks, told, pads);
        }
        for task in tasks.values() {
            *books.tasks.entry(task.status.clone()).or_default() += 1;
        }
        books
    }

    pub(crate) fn figures(&self) -> impl Iterator<Item = (String, u64)> {
        let Self { tasks, acknowledged, lost, refunds, refused, commands, repeated, pads, violations } = self;
        let figures = [
            ("tasks", tasks.values().sum()),
            ("of these, acknowledged to a client", *acknowledged),
            ("acknowledged and lost", *lost),
            ("refunds", *refunds),
            ("calls refused because the phone does not offer it or its platform is unavailable", *refused),
            ("commands that the simulated phones took", *commands),
            ("commands taken too often, on any phone", *repeated),
            ("violations, including the integrity check of the database", violations.len() as u64),
        ];
        let ends = tasks.iter().map(|(status, count)| (format!("ended as {status}"), *count));
        let pads = pads.iter().flat_map(pads::Figures::rows);
        figures.map(|(what, figure)| (what.to_owned(), figure)).into_iter().chain(ends).chain(pads)
    }

    fn keeps_its_promises(&mut self, db: &Connection) {
        let text = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).expect("text");
        let sound = text("PRAGMA integrity_check");
        if sound != "ok" {
            self.violations.push(sound);
        }
        for (promise, against) in PROMISES {
            let mut rows = db.prepare(against).expect("the tables that they are");
            let broken = rows.query_map([], |_| Ok(())).expect("rows").count();
            if broken > 0 {
                self.violations.push(format!("{promise}: broken in {broken} cases"));
            }
        }
        let refunds = "SELECT count(*) FROM ledger WHERE kind = 'refund'";
        self.refunds = db.query_row(refunds, [], |row| row.get::<_, u32>(0)).expect("a number").into();
    }

    fn agrees_with_what_was_told(&mut self, tasks: &HashMap<String, Task>, told: &[TaskView]) {
        let (mut fresh, mut known) = (HashSet::new(), HashSet::new());
        for (wish, answer) in told {
            let (Ok(said) | Err(said)) = answer;
            let code = answer.as_ref().err().map(|failure| failure["code"].as_str().expect("a code"));
            // The server sends nothing to a platform that is unreachable or overloaded.
            let is_refused = match code {
                Some("not_supported" | "not_offered") => true,
                Some("upstream_unavailable") => !wish.device.starts_with("phone-"),
                _ => false,
            };
            if is_refused {
                self.refused += 1;
                continue;
            }
            let id = said["task_id"].as_str().unwrap_or_default();
            known.extend(Some(id).filter(|id| !id.is_empty()));
            let Some(task) = tasks.get(id) else {
                self.lost += 1;
                self.violations.push(format!("{wish:?} was answered with {said}, which is not in the database"));
                continue;
            };
            // A store that replicas share does not keep the key of a task that has ended.
            let ours = task.tool == wish.tool && (task.key == wish.key || task.key.is_none());
            let sound = match code {
                None => ours && (said["idempotent_hit"] == true || fresh.insert(id)),
                Some(code) => code == "device_busy",
            };
            if !sound || task.target != wish.device {
                self.violations.push(format!("{wish:?} was answered with {said}"));
            }
        }
        self.acknowledged = known.len() as u64;
    }

    fn agrees_with_what_was_done(&mut self, tasks: &HashMap<String, Task>, commands: &HashMap<String, Vec<Value>>) {
        for (id, commands) in commands {
            self.commands += commands.len() as u64;
            let Some(task) = tasks.get(id) else {
                self.violations.push(format!("{id} took effect and is not a task"));
                continue;
            };
            let may = if task.idempotent { task.attempts as usize } else { 1 };
            if commands.len() > may {
                self.repeated += (commands.len() - may) as u64;
                self.violations.push(format!("{id} was taken {} times; at most {may} are allowed", commands.len()));
            }
            if !task.left {
                self.violations.push(format!("{id} was taken, but its task says that nothing was sent"));
            }
            if commands.iter().any(|command| device(command) != task.target) {
                self.violations.push(format!("{id} was done on another device"));
            }
        }
        let acting = commands.values().flatten().filter(|command| !command["effect"].is_null());
        let changed: HashSet<String> = acting.map(device).collect();
        for (id, task) in tasks.iter().filter(|(_, task)| task.target.starts_with("phone-")) {
            let commands = commands.get(id).map_or(&[][..], Vec::as_slice);
            let claimed = commands.iter().any(|command| command["ok"] == true);
            let done = commands.iter().any(|command| !command["effect"].is_null());
            let power = task.tool == "set_power";
            let sound = match task.status.as_str() {
                // The phone may have been stopped before, or an earlier task has set the proxy.
                "success" if task.idempotent => done || power || changed.contains(&task.target),
                "success" => done,
                "success_unverified" => claimed,
                // The phone can accept a proxy and still leak.
                "failed_silent" => claimed && !(power && done),
                _ => true,
            };
            if !sound {
                self.violations.push(format!("{id} says {}, and what was done is {commands:?}", task.status));
            }
        }
    }
}

fn device(command: &Value) -> String {
    command["arguments"]["device_id"].as_str().expect("an id").to_owned()
}

fn tasks(db: &Connection) -> HashMap<String, Task> {
    let sql = "SELECT 'task_' || lower(hex(id)), target, tool, idem_key, coalesce(status, 'dispatched'),
                      state ->> 'attempts', state ->> 'left', state -> 'terms' ->> 'idempotent',
                      max(created_at + coalesce(state ->> 'start_delay_ms', 0),
                          coalesce((SELECT min(at) FROM task_event WHERE task_id = task.id), 0)), finished_at FROM task";
    let task = |row: &Row<'_>| {
        let (id, target, tool, key, status, attempts, left, idempotent, ready_at, finished_at) = row.try_into()?;
        Ok((id, Task { target, tool, key, status, attempts, left, idempotent, ready_at, finished_at }))
    };
    let mut select = db.prepare(sql).expect("the table that it is");
    select.query_map([], task).expect("rows").collect::<rusqlite::Result<_>>().expect("a task")
}

pub(super) fn read_task_ids(data: &Path) -> HashSet<String> {
    tasks(&database(data)).into_keys().collect()
}

pub(super) fn commands(data: &Path) -> HashMap<String, Vec<Value>> {
    let mut commands = HashMap::<String, Vec<Value>>::new();
    let journal = fs::read_to_string(data.join("simulated.jsonl")).expect("the journal");
    for line in journal.lines().skip(1) {
        let command: Value = serde_json::from_str(line).expect("JSON");
        let request = command["request"].as_str().expect("an id").to_owned();
        commands.entry(request).or_default().push(command);
    }
    commands
}
