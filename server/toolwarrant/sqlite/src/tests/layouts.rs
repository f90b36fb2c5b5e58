//! The layouts that a program refuses.

use super::super::open::{FIRST_LAYOUT, LAYOUT, SCRIPTS};
use super::*;

#[test]
fn a_database_of_an_unknown_layout_is_refused_by_its_number_and_not_changed() {
    let folder = folder();
    drop(open(folder.path()));
    let path = super::database(folder.path());
    for (layout, says, remedy) in [
        (FIRST_LAYOUT - 1, format!("knows none before {FIRST_LAYOUT}"), "start the program that wrote it"),
        (LAYOUT + 88, format!("supports at most {LAYOUT}"), "start the newer program that wrote it"),
    ] {
        Connection::open(&path).unwrap().pragma_update(None, "user_version", layout).unwrap();
        let before = fs::read(&path).unwrap();
        let refusals = [Sqlite::open(&path, ()).map(drop), Sqlite::open_as_it_is(&path, ()).map(drop)];
        for refusal in refusals.map(|refused| refused.unwrap_err().to_string()) {
            let says = [&format!("has layout {layout}"), &says, remedy];
            assert!(says.iter().all(|part| refusal.contains(*part)), "{refusal}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn opening_for_reading_does_not_make_a_database() {
    let folder = folder();
    let path = super::database(folder.path());
    fs::write(&path, "").unwrap();
    assert!(matches!(Sqlite::open_as_it_is(&path, ()), Err(DatabaseError::Older { found: 0, .. })));
    assert_eq!(fs::read(&path).unwrap(), b"");
    drop(open(folder.path()));
    Sqlite::open_as_it_is(&path, ()).unwrap();
}

#[test]
fn a_script_that_fails_halfway_leaves_nothing_behind() {
    let folder = folder();
    let database = Connection::open(super::database(folder.path())).unwrap();
    database.execute_batch("CREATE TABLE ledger (in_the_way INTEGER)").unwrap();
    let refused = Sqlite::open(&super::database(folder.path()), ()).unwrap_err().to_string();
    assert!(refused.contains("store.db") && refused.contains("ledger already exists"), "{refused}");
    let layout: u32 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let tables: u32 = database.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!((layout, tables), (0, 1));
}

#[tokio::test]
async fn a_database_of_the_first_layout_is_migrated_and_keeps_what_it_has() {
    let folder = folder();
    let database = Connection::open(super::database(folder.path())).unwrap();
    database.execute_batch(SCRIPTS[0]).unwrap();
    database.pragma_update(None, "user_version", FIRST_LAYOUT).unwrap();
    database.execute("INSERT INTO clock VALUES (1, 7)", ()).unwrap();
    // Two of the three acts have a line.
    let acts = "INSERT INTO act (id, at, operator, command, act, has_line)
                VALUES ('a', 1, 'o', 'c', '{}', 1), ('b', 2, 'o', 'c', '{}', 1), ('c', 3, 'o', 'c', '{}', 0)";
    database.execute(acts, ()).unwrap();
    let anchor = "INSERT INTO audit_anchor VALUES (1, 3, zeroblob(32), 0, zeroblob(32), '', 0)";
    database.execute(anchor, ()).unwrap();
    drop(database);
    let path = super::database(folder.path());
    assert!(matches!(Sqlite::open_as_it_is(&path, ()), Err(DatabaseError::Older { found: FIRST_LAYOUT, .. })));
    let store = open(folder.path());
    assert_eq!(store.latest_time().await, Ok(Some(Timestamp(7))));
    assert_eq!(store.requests().await, Ok(vec![]));
    assert_eq!(store.audit_anchor().await.unwrap().map(|anchor| anchor.acts), Some(2));
}
