//! Applications and keys: a read returns the row that was put, and invalid rows are refused.

use super::*;

pub(super) async fn an_application_is_read_unchanged(store: Arc<dyn Store>) {
    assert_eq!(store.directory().await.unwrap(), (vec![], vec![]));
    let printers = |ids: &[&str]| Grants::nothing().with("printer", Granted::some(ids.iter().copied()));
    let first = application("z", "first");
    let second = ApplicationRow { grants: Grants::nothing(), permissions: vec![], ..application("b", "second") };
    let third = ApplicationRow { grants: printers(&["t2", "t1"]), ..application("c", "third") };
    let mut rows = vec![first, second, third];
    for row in &rows {
        store.put_application(row.clone()).await.unwrap();
    }
    assert_eq!(store.directory().await.unwrap().0, rows);
    let grants = [
        (printers(&["t3"]), u32::MAX),
        (Grants::everything(), 0),
        (Grants::nothing(), 1),
        (printers(&[]), 2),
        (printers(&["t1", "t4"]), 3),
        (Grants::nothing().with("printer", Granted::All), 4),
        (printers(&["t1"]), 5),
    ];
    for (grants, requests_per_minute) in grants {
        rows[0] = ApplicationRow { grants, requests_per_minute, ..rows[0].clone() };
        store.put_application(rows[0].clone()).await.unwrap();
        assert_eq!(store.directory().await.unwrap().0, rows);
    }
    rows[0].name = "renamed".to_owned();
    rows[0].permissions.reverse();
    rows[0].created_at = Timestamp(1);
    store.put_application(rows[0].clone()).await.unwrap();
    assert_eq!(store.directory().await.unwrap().0, rows);
}

pub(super) async fn grants_of_one_resource_do_not_apply_to_another(store: Arc<dyn Store>) {
    let both = Grants::nothing().with("tray", Granted::some(["p-1"])).with("printer", Granted::some(["p-2"]));
    let all_trays = both.clone().with("tray", Granted::All);
    for (id, grants) in [("a", both), ("b", all_trays)] {
        store.put_application(ApplicationRow { grants, ..application(id, id) }).await.unwrap();
    }
    let rows = store.directory().await.unwrap().0;
    let sees = |resource, id| [&rows[0], &rows[1]].map(|row| row.grants.covers(resource, id));
    assert_eq!([sees("tray", "p-1"), sees("tray", "p-2")], [[true, true], [false, true]]);
    assert_eq!(
        [sees("printer", "p-1"), sees("printer", "p-2"), sees("lamp", "p-1")],
        [[false; 2], [true; 2], [false; 2]]
    );
}

pub(super) async fn a_name_belongs_to_one_application(store: Arc<dyn Store>) {
    for (id, name) in [("a", "first"), ("b", "second")] {
        store.put_application(application(id, name)).await.unwrap();
    }
    let before = store.directory().await.unwrap();
    for id in ["b", "c"] {
        let error = store.put_application(application(id, "first")).await.unwrap_err();
        assert_eq!(error.to_string(), "an application is named `first` already");
    }
    assert_eq!(store.directory().await.unwrap(), before);
}

pub(super) async fn a_key_is_rotated_and_revoked_in_place(store: Arc<dyn Store>) {
    for (id, name) in [("a", "first"), ("b", "second")] {
        store.put_application(application(id, name)).await.unwrap();
    }
    let secret = |n| SecretRow { verifier: [n; 32], sealed: vec![n; 3] };
    let key = |id: &str, secrets: &[u8]| KeyRow {
        id: id.to_owned(),
        application: "a".to_owned(),
        secrets: secrets.iter().map(|n| secret(*n)).collect(),
        created_at: AT,
        expires_at: (id == "k1").then_some(AT),
    };
    let other = KeyRow { application: "b".to_owned(), ..key("k2", &[9]) };
    store.put_key(other.clone()).await.unwrap();
    for secrets in [&[1][..], &[2, 1], &[3, 2], &[3], &[]] {
        store.put_key(key("k1", secrets)).await.unwrap();
        assert_eq!(store.directory().await.unwrap().1, [key("k1", secrets), other.clone()]);
    }
}

pub(super) async fn a_key_without_an_application_or_with_too_many_secrets_is_refused(store: Arc<dyn Store>) {
    store.put_application(application("a", "first")).await.unwrap();
    let key =
        KeyRow { id: "k".to_owned(), application: "a".to_owned(), secrets: vec![], created_at: AT, expires_at: None };
    let secret = SecretRow { verifier: [1; 32], sealed: vec![] };
    store.put_key(KeyRow { application: "b".to_owned(), ..key.clone() }).await.unwrap_err();
    store.put_key(KeyRow { secrets: vec![secret; 3], ..key }).await.unwrap_err();
    assert_eq!(store.directory().await.unwrap().1, []);
}
