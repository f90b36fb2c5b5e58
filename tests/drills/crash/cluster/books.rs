//! A copy of the shared store in the form of the embedded one, for the same audit.

use kit::PostgresPair;
use rusqlite::Connection;

/// The columns, the query for the rows in the shared store, and an expression for each column.
const TABLES: [(&str, &str, &str); 3] = [
    (
        "task (id, target, tool, idem_key, status, state, version, created_at, finished_at, sealed, terminal)",
        "SELECT id, target, tool, NULL AS key, status, state, version, created_at, finished_at, NULL AS sealed FROM ended
         UNION ALL SELECT id, target, tool, idem_key, NULL, state, version, created_at, NULL, 'sealed' FROM task",
        "unhex(replace(value ->> 'id', '-', '')), value ->> 'target', value ->> 'tool', value ->> 'key', value ->> 'status',
         value ->> 'state', value ->> 'version', value ->> 'created_at', value ->> 'finished_at', value ->> 'sealed',
         value ->> 'status' IS NOT NULL",
    ),
    (
        "task_event (task_id, version, at, phase)",
        "SELECT task, version, at, phase FROM event",
        "unhex(replace(value ->> 'task', '-', '')), value ->> 'version', value ->> 'at', value ->> 'phase'",
    ),
    (
        "ledger (task_id, kind)",
        "SELECT task, kind FROM ledger",
        "unhex(replace(value ->> 'task', '-', '')), value ->> 'kind'",
    ),
];

pub(super) async fn copy_store(servers: &PostgresPair) -> Connection {
    let db = Connection::open_in_memory().expect("a database");
    for (table, rows, columns) in TABLES {
        let rows = servers.query(&format!("SELECT coalesce(json_agg(kept), '[]') FROM ({rows}) kept")).await;
        let name = table.split(' ').next().expect("a name");
        db.execute_batch(&format!("CREATE TABLE {table}")).expect("a table");
        let copy = format!("INSERT INTO {name} SELECT {columns} FROM json_each(?1)");
        db.execute(&copy, [rows.expect("the rows")]).expect("a copy");
    }
    db.execute_batch("CREATE INDEX i ON task (id); CREATE INDEX t ON task (target); CREATE INDEX e ON task_event (task_id); CREATE INDEX l ON ledger (task_id)").expect("indexes");
    db
}
