//! Migrations from every earlier layout to the latest, and the refusal of newer ones.

use super::super::open::{LAYOUT, MIGRATIONS};
use super::*;

/// Creates a database as a program of that layout left it.
fn of_layout(folder: &Path, layout: usize) -> Connection {
    let database = Connection::open(super::database(folder)).unwrap();
    database.execute_batch("CREATE TEMP TABLE opening AS SELECT 'printer' AS former_resource").unwrap();
    database.execute_batch(&MIGRATIONS[..layout].concat()).unwrap();
    database.pragma_update(None, "user_version", layout as u32).unwrap();
    database
}

/// Returns the SQL of each table and index, and the number of the layout.
fn layout(database: &Connection) -> (Vec<String>, usize) {
    let mut select = database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
    let sql = select.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    (sql, database.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).unwrap() as usize)
}

#[test]
fn every_migration_in_the_folder_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/migrations");
    assert_eq!(fs::read_dir(folder).unwrap().count(), super::open::MIGRATIONS.len());
}

#[test]
fn a_database_of_every_earlier_layout_is_migrated_to_the_latest() {
    let latest = folder();
    drop(open(latest.path()));
    let latest = layout(&Connection::open(super::database(latest.path())).unwrap());
    assert_eq!(latest.1, MIGRATIONS.len());
    for earlier in 0..=MIGRATIONS.len() {
        let folder = folder();
        let database = of_layout(folder.path(), earlier);
        drop(open(folder.path()));
        assert_eq!(layout(&database), latest, "from {earlier}");
    }
}

#[test]
fn a_database_is_copied_before_it_is_migrated_and_the_copy_opens_as_it_was() {
    for earlier in 1..=MIGRATIONS.len() {
        let folder = folder();
        let database = of_layout(folder.path(), earlier);
        let before = layout(&database);
        let copy = super::super::open::former_path(&super::database(folder.path()), earlier as u32);
        // The part of a copy that a kill left, and a copy of an earlier try.
        fs::write(copy.with_extension(format!("layout-{earlier}.part")), "half").unwrap();
        fs::write(&copy, "old").unwrap();
        drop(open(folder.path()));
        if earlier == MIGRATIONS.len() {
            assert_eq!(fs::read(&copy).unwrap(), b"old", "a database of the latest layout is not copied");
            continue;
        }
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(layout(&Connection::open(&copy).unwrap()), before, "from {earlier}");
        drop(open(folder.path()));
        assert_eq!(layout(&Connection::open(&copy).unwrap()), before, "another start leaves the copy");
    }
}

#[test]
fn a_database_that_cannot_be_copied_is_not_migrated() {
    let folder = folder();
    let database = of_layout(folder.path(), 3);
    let copy = super::super::open::former_path(&super::database(folder.path()), 3);
    fs::create_dir(&copy).unwrap();
    let error = Sqlite::open(open_options(&super::database(folder.path()))).map(drop).unwrap_err();
    assert!(matches!(error, DatabaseError::Copy { layout: 3, .. }), "{error}");
    assert_eq!(layout(&database).1, 3);
    assert_eq!(
        fs::read_dir(folder.path())
            .unwrap()
            .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|end| end == "part"))
            .count(),
        0
    );
}

#[test]
fn a_copy_of_every_earlier_layout_can_be_restored() {
    for earlier in 0..=MIGRATIONS.len() {
        let folder = folder();
        let database = of_layout(folder.path(), earlier);
        restore(open_options(&super::database(folder.path())), AT, &super::act_of_restore()).unwrap();
        assert_eq!(layout(&database).1, MIGRATIONS.len(), "from {earlier}");
        drop(database);
        assert_eq!(open(folder.path()).restored_at(), Some(AT), "from {earlier}");
    }
}

#[tokio::test]
async fn locks_keys_and_cool_downs_survive_every_migration() {
    let row = |id, key, target| {
        format!(
            "INSERT INTO task (id, application, idem_key, fingerprint, tool, resource, target, created_at, version, terminal,
                               state, sealed)
                 VALUES (x'{id:032x}', 'app', {key}, zeroblob(32), 'print', 'printer', '{target}', 7, 0, 0, '{{}}', x'');
             INSERT INTO lane VALUES ('printer', '{target}', x'{id:032x}', {});",
            i64::MAX
        )
    };
    for earlier in 1..=3 {
        let folder = folder();
        let database = of_layout(folder.path(), earlier);
        // The first two layouts stored a string that begins with a space for a call without a key.
        let none = if earlier < 3 { "' 00'" } else { "NULL" };
        database.execute_batch(&(row(1, "'k'", "t") + &row(2, none, "u"))).unwrap();
        let settled_at = AT.plus(Duration::from_secs(5));
        let settling = format!("INSERT INTO lane VALUES ('printer', 'v', x'{:032x}', {})", 3, millis(settled_at));
        database.execute_batch(&settling).unwrap();
        let store: Arc<dyn Store> = open(folder.path());
        assert_eq!(repeat(&store, "app", "k").await.unwrap().id, id(1));
        let keyless = Identity { key: None, fingerprint: [0; 32], ..new(0, "", "u").identity };
        assert_eq!(store.repeat(keyless).await.unwrap().unwrap().id, id(2));
        let found: Vec<_> = store.in_flight(None, 9).await.unwrap().into_iter().map(|task| task.id).collect();
        assert_eq!(found, [id(1), id(2)]);
        let settling = store.accept(new(4, "m", "v")).await.unwrap();
        assert_eq!(settling, Acceptance::Fresh { wake_at: settled_at }, "from {earlier}");
    }
}

#[tokio::test]
async fn grants_without_a_resource_get_the_former_one_in_every_migration() {
    let application = |id: &str, every_target: u8| {
        format!(
            "INSERT INTO application (id, name, permissions, requests_per_minute, every_target, created_at)
                 VALUES ('{id}', '{id}', '[]', 1, {every_target}, 7);"
        )
    };
    let targets = "INSERT INTO application_target VALUES ('some', 'p-2'), ('some', 'p-1');";
    for earlier in 1..=4 {
        let folder = folder();
        let database = of_layout(folder.path(), earlier);
        let rows = application("every", 1) + &application("none", 0) + &application("some", 0) + targets;
        database.execute_batch(&rows).unwrap();
        let expected = [
            ("every", Grants::everything()),
            ("none", Grants::nothing()),
            ("some", Grants::nothing().with("printer", Granted::some(["p-1", "p-2"]))),
        ];
        // A different name at a later start changes nothing.
        for former_resource in ["printer", "tray"] {
            let path = &super::database(folder.path());
            let store = Sqlite::open(OpenOptions { path, former_resource, lock: () }).unwrap();
            let rows = store.directory().await.unwrap().0;
            let found: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.grants.clone())).collect();
            assert_eq!(found, expected, "from {earlier}");
            assert_eq!(store.violations(IntegrityRule::Integrity).await.unwrap(), [""; 0]);
        }
    }
}

#[test]
fn a_migration_that_fails_halfway_leaves_nothing_behind() {
    let folder = folder();
    let database = Connection::open(super::database(folder.path())).unwrap();
    database.execute_batch("CREATE TABLE ledger (in_the_way INTEGER)").unwrap();
    let before = layout(&database);
    let refused = Sqlite::open(open_options(&super::database(folder.path()))).unwrap_err().to_string();
    assert!(refused.contains("store.db") && refused.contains("ledger already exists"), "{refused}");
    assert_eq!(layout(&database), before);
}

#[test]
fn the_database_of_a_newer_program_is_refused_and_not_changed() {
    let folder = folder();
    drop(open(folder.path()));
    let path = super::database(folder.path());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let refused = Sqlite::open(open_options(&path)).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, DatabaseError::Newer { found: 99, known: LAYOUT, .. }), "{text}");
    assert!(text.contains("layout 99") && text.contains(&format!("supports at most {LAYOUT}")), "{text}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn opening_for_reading_does_not_change_an_older_database() {
    let folder = folder();
    let path = super::database(folder.path());
    of_layout(folder.path(), 1);
    let before = fs::read(&path).unwrap();
    assert!(matches!(Sqlite::open_as_it_is(open_options(&path)), Err(DatabaseError::Older { found: 1, .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(Sqlite::open(open_options(&path)).unwrap());
    Sqlite::open_as_it_is(open_options(&path)).unwrap();
}
