//! Writes on simulated phones: their arguments, and their records in the store.

use crate::harness::{Server, members};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use toolwarrant_tasks::store::{LedgerRow, TaskStore};

pub(crate) fn phone(number: u32) -> String {
    format!("phone-{number:07}")
}

pub(crate) fn proxy(number: u32, key: &str) -> Value {
    json!({"device_id": phone(number), "scheme": "http", "host": "proxy.example.com", "port": 8080,
        "username": "user", "password": "hunter2", "idempotency_key": key})
}

pub(crate) fn power(number: u32, action: &str) -> Value {
    json!({"device_id": phone(number), "action": action})
}

/// Writes each member of a task on a line, without ids and times.
pub(crate) fn describe_task(mut task: Value) -> String {
    for (member, part) in [("refund", "refunded_at"), ("evidence", "checked_at")] {
        task[member].as_object_mut().and_then(|members| members.shift_remove(part));
    }
    for member in ["task_id", "created_at", "deadline_at", "finished_at"] {
        task.as_object_mut().and_then(|members| members.shift_remove(member)).expect(member);
    }
    members(&task)
}

pub(crate) async fn ledger(server: &Server) -> Vec<LedgerRow> {
    server.store.ledger(0, 1_000).await.expect("a store")
}

pub(crate) async fn entries(server: &Server, kind: &str) -> usize {
    ledger(server).await.iter().filter(|row| row.kind == kind).count()
}

pub(crate) fn restart(number: u32) -> (&'static str, Value) {
    ("set_power", power(number, "restart"))
}

/// Opens it for changes, as another program would.
pub(crate) fn open_database(data: &Path) -> Connection {
    Connection::open(data.join("cloudphone.db")).expect("a database")
}

pub(crate) fn database(data: &Path) -> Connection {
    Connection::open_with_flags(data.join("cloudphone.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a database")
}

pub(crate) fn phases(data: &Path) -> HashMap<String, String> {
    let db = database(data);
    let mut select = db
        .prepare("SELECT target, json_extract(state, '$.phase') FROM task WHERE terminal = 0")
        .expect("the table that it is");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("text")
}

/// Returns false if one of the tasks has ended: a phase can take a few seconds, which a busy
/// machine misses.
pub(crate) async fn reach_phases(data: &Path, expected: &[(u32, &str)]) -> bool {
    let reached = kit::wait_for(async || {
        let phases = phases(data);
        let of = |number: u32| phases.get(&phone(number)).map(String::as_str);
        match expected.iter().all(|(number, phase)| of(*number) == Some(phase)) {
            true => Ok(true),
            false if expected.iter().any(|(number, _)| of(*number).is_none()) => Ok(false),
            false => Err(format!("not {expected:?}, but {phases:?}")),
        }
    });
    reached.await.expect("the phases come or go")
}

pub(crate) async fn wait_for_phases(data: &Path, expected: &[(u32, &str)]) {
    assert!(reach_phases(data, expected).await, "never at once: {expected:?}; they are {:?}", phases(data));
}
