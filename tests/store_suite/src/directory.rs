//! Applications and keys: a read returns the row that was put, and invalid rows are refused.

use super::*;

pub async fn an_application_is_read_unchanged(store: Arc<dyn Store>) {
    assert_eq!(store.directory().await.unwrap(), (vec![], vec![]));
    let printers = |ids: &[&str]| Grants::nothing().with("printer", Granted::some(ids.iter().copied()));
    let first = application("z", "first");
    let second = ApplicationRow { grants: Grants::nothing(), permissions: vec![], ..application("b", "second") };
    let third = ApplicationRow { grants: printers(&["t2", "t1"]), ..application("c", "third") };
    let mut rows = vec![first, second, third];
    for row in &rows {
        store.put_application(row.clone(), vec![]).await.unwrap();
    }
    assert_eq!(store.directory().await.unwrap().0, rows);
    let mut rules = Granted::prefix("p-");
    rules.add_prefix("q-");
    rules.add("r-1");
    rules.remove("p-1");
    let both = Grants::nothing().with("tray", Granted::some(["p-1"])).with("printer", Granted::some(["p-2"]));
    let mut most = Granted::all();
    most.remove("p-2");
    let grants = [
        (printers(&["t3"]), u32::MAX),
        (Grants::everything(), 0),
        (Grants::nothing(), 1),
        (printers(&[]), 2),
        (printers(&["t1", "t4"]), 3),
        (Grants::nothing().with("printer", Granted::all()), 4),
        (Grants::nothing().with("printer", rules), 5),
        (Grants::nothing().with("printer", most), 6),
        (printers(&["t1"]), 7),
        (both.clone(), 8),
        (both.with("tray", Granted::all()), 9),
    ];
    for (grants, requests_per_minute) in grants {
        rows[0] = ApplicationRow { grants, requests_per_minute, ..rows[0].clone() };
        store.put_application(rows[0].clone(), vec![]).await.unwrap();
        assert_eq!(store.directory().await.unwrap().0, rows);
    }
    rows[0].name = "renamed".to_owned();
    rows[0].permissions.reverse();
    rows[0].created_at = Timestamp(1);
    store.put_application(rows[0].clone(), vec![]).await.unwrap();
    assert_eq!(store.directory().await.unwrap().0, rows);
}

pub async fn a_name_belongs_to_one_application(store: Arc<dyn Store>) {
    for (id, name) in [("a", "first"), ("b", "second")] {
        store.put_application(application(id, name), vec![]).await.unwrap();
    }
    let before = store.directory().await.unwrap();
    for id in ["b", "c"] {
        let error = store.put_application(application(id, "first"), vec![]).await.unwrap_err();
        assert_eq!(error.to_string(), "an application is named `first` already");
    }
    // A first key comes with its application, or neither does.
    let first = key("k", "c", &[]);
    store.put_application_with_key(application("c", "first"), first.clone(), vec![]).await.unwrap_err();
    assert_eq!(store.directory().await.unwrap(), before);
    store.put_application_with_key(application("c", "third"), first.clone(), vec![]).await.unwrap();
    let (applications, keys) = store.directory().await.unwrap();
    assert_eq!((applications.len(), keys), (3, vec![first]));
}

pub async fn a_key_is_rotated_and_revoked_in_place(store: Arc<dyn Store>) {
    for (id, name) in [("a", "first"), ("b", "second")] {
        store.put_application(application(id, name), vec![]).await.unwrap();
    }
    let other = key("k2", "b", &[9]);
    store.put_key(other.clone(), vec![]).await.unwrap();
    for secrets in [&[1][..], &[2, 1], &[3, 2], &[3], &[]] {
        let one = KeyRow { expires_at: Some(AT), ..key("k1", "a", secrets) };
        store.put_key(one.clone(), vec![]).await.unwrap();
        assert_eq!(store.directory().await.unwrap().1, [one, other.clone()]);
    }
}

pub async fn a_key_without_an_application_or_with_too_many_secrets_is_refused(store: Arc<dyn Store>) {
    store.put_application(application("a", "first"), vec![]).await.unwrap();
    store.put_key(key("k", "b", &[]), vec![]).await.unwrap_err();
    store.put_key(key("k", "a", &[1, 1, 1]), vec![]).await.unwrap_err();
    assert_eq!(store.directory().await.unwrap().1, []);
}

pub async fn an_application_has_labels_and_is_suspended_and_deleted(store: Arc<dyn Store>) {
    let labels = Labels::from([("owner".to_owned(), "Ada \"L\"".to_owned())]);
    let latest = SecretRow { created_at: Some(AT), ..secret(1) };
    let older = SecretRow { ends_at: Some(AT.plus(Duration::from_secs(1))), ..secret(3) };
    let key = |id: &str, application: &str| KeyRow {
        secrets: vec![latest.clone(), older.clone()],
        labels: labels.clone(),
        suspended_at: Some(AT),
        ..key(id, application, &[])
    };
    let (live, other) =
        (ApplicationRow { labels: labels.clone(), ..application("a", "first") }, application("b", "second"));
    for row in [&live, &other] {
        store.put_application(row.clone(), vec![]).await.unwrap();
        store.put_key(key(&format!("k{}", row.id), &row.id), vec![]).await.unwrap();
    }
    let suspended = ApplicationRow { suspended_at: Some(AT), ..live };
    store.put_application(suspended.clone(), vec![]).await.unwrap();
    let keys = [key("ka", "a"), key("kb", "b")];
    assert_eq!(store.directory().await.unwrap(), (vec![suspended.clone(), other.clone()], keys.to_vec()));

    let mut deleted = suspended;
    deleted.delete(AT);
    store.put_application(deleted.clone(), vec![]).await.unwrap();
    let next = application("c", "first");
    store.put_application(next.clone(), vec![]).await.unwrap();
    let [mut ended, kept] = keys;
    (ended.secrets, ended.labels) = (vec![], Labels::new());
    assert_eq!(store.directory().await.unwrap(), (vec![deleted, other, next], vec![ended, kept]));
}

pub async fn the_last_use_of_a_secret_is_the_latest_one(store: Arc<dyn Store>) {
    let one = |key: &str, verifier: u8, at: u64, from: &str| SecretUse {
        key: key.to_owned(),
        verifier: [verifier; 32],
        at: Timestamp(at),
        from: from.parse().ok(),
    };
    store.put_uses(vec![one("k1", 1, 5, "10.0.0.1"), one("k2", 1, 5, "")]).await.unwrap();
    store.put_uses(vec![one("k1", 1, 4, ""), one("k1", 2, 3, "::1"), one("k2", 1, 6, "10.0.0.2")]).await.unwrap();
    let all = [one("k1", 1, 5, "10.0.0.1"), one("k1", 2, 3, "::1"), one("k2", 1, 6, "10.0.0.2")];
    for (keys, expected) in [(None, &all[..]), (Some("k1"), &all[..2]), (Some("k2"), &all[2..]), (Some("k"), &[])] {
        let mut uses = store.uses(keys.map(|key| vec![key.to_owned()])).await.unwrap();
        uses.sort_by_key(|one| (one.key.clone(), one.verifier));
        assert_eq!(uses, expected, "{keys:?}");
    }
}

pub async fn the_requests_of_a_second_are_replaced_and_old_seconds_are_forgotten(store: Arc<dyn Store>) {
    let count = |application: &str, second: u64, requests: u32| RequestCount {
        application: application.to_owned(),
        second,
        requests,
    };
    store.put_requests(vec![count("a", 1, 7), count("b", 1, 1), count("a", 2, 3)], 0).await.unwrap();
    store.put_requests(vec![count("a", 2, 5), count("b", 3, u32::MAX)], 2).await.unwrap();
    assert_eq!(store.requests().await.unwrap(), [count("a", 2, 5), count("b", 3, u32::MAX)]);
}
