//! The files of earlier versions.

use super::*;
use std::fs;

const FILES: [(&str, &str); 5] = [
    (
        "n.roster.json",
        r#"{"roster":1,"platform":"n","listed_at":"1970-01-01T00:15:00Z","phones":[
            {"id":"n-a","seat":"1","code":"C","read_at":"1970-01-01T00:15:00Z","row":{"code":"C","serial":"1","phone":0}},
            {"id":"n-b","seat":null,"code":"B","read_at":"1970-01-01T00:15:00Z","row":null}]}"#,
    ),
    ("n.shown.json", r#"{"account":"key","exit":{"at":1,"device":"n-a","tool":"curl"},"start":null}"#),
    ("n.direct", "\nn-a 192.0.2.1;\nn-b -;\nn-c 192.0.2.3"),
    ("n.starts", "\nn-a R1;\nn-a R2;\nn-b R3;\nn-b ?;"),
    ("n.exits", "\nn-b R3;\nn-d R"),
];

async fn check(ledger: &PhoneLedger<TestRow>) {
    assert_eq!((describe(ledger).as_str(), ledger.is_known()), ("n-a=C", true));
    let own = ["n-a", "n-b", "n-c", "n-d"].map(|phone| ledger.own_address(&id(phone)));
    let read = OwnAddress::Read("192.0.2.1".parse().unwrap());
    assert_eq!(own, [Some(read), Some(OwnAddress::Unread), Some(OwnAddress::Unread), None]);
    let proven =
        |phone: Option<&str>, direction, identity| ledger.is_proven(phone.map(id).as_ref(), direction, identity);
    assert!(proven(None, Direction::Exit, "key") && !proven(None, Direction::Start, "key"));
    assert!(proven(Some("n-a"), Direction::Start, "R2") && proven(Some("n-b"), Direction::Exit, "R3"));
    assert!(!proven(Some("n-b"), Direction::Start, "R3") && !proven(Some("n-d"), Direction::Exit, "R"));
}

#[tokio::test]
async fn the_five_files_of_a_platform_become_its_entries_once_and_are_removed_afterwards() {
    let mut kept = TestLedger::new().await;
    for (file, content) in FILES.into_iter().chain([("m.direct", "\nm-a 192.0.2.1;")]) {
        fs::write(kept.folder.path().join(file), content).unwrap();
    }
    let files = || fs::read_dir(kept.folder.path()).unwrap().count();
    // A process that ends before its first list has changed nothing.
    for _ in 0..2 {
        check(&*open(kept.store.clone(), &kept.folder, &kept.clock).await).await;
        assert_eq!((files(), kept.store.writes.load(Relaxed)), (6, 0));
    }
    kept.restart().await;
    assert_eq!(kept.take("C@1").await, "n-a=C");
    assert_eq!(kept.store.writes.load(Relaxed), 1);
    kept.restart().await;
    check(&kept.ledger).await;
    assert_eq!(fs::read_dir(kept.folder.path()).unwrap().count(), 1, "that of another platform stays");
    assert_eq!(kept.take("C@1 A@2").await, "n-a=C n-a-2=A");
}

#[tokio::test]
async fn files_in_a_store_become_entries_as_well() {
    let kept = TestLedger::new().await;
    let (long, rest) = FILES[2].1.split_at(4);
    let files = FILES.map(|(file, content)| (file.to_owned(), if file == "n.direct" { long } else { content }.into()));
    kept.store.put_files(files.into_iter().chain([("n.direct.1".to_owned(), rest.into())]).collect()).await.unwrap();
    check(&*open(kept.store.clone(), &kept.folder, &kept.clock).await).await;
}

#[tokio::test]
async fn a_damaged_file_is_renamed_and_one_that_is_none_is_an_error() {
    let kept = TestLedger::new().await;
    let path = |file: &str| kept.folder.path().join(file);
    for file in ["n.roster.json", "n.shown.json"] {
        fs::write(path(file), "{").unwrap();
    }
    let ledger = open(kept.store.clone(), &kept.folder, &kept.clock).await;
    assert_eq!((describe(&ledger).as_str(), ledger.is_known()), ("", false));
    for file in ["n.roster.json", "n.shown.json"] {
        assert_eq!(fs::read_to_string(path(&format!("{file}.damaged"))).unwrap(), "{");
    }
    fs::create_dir(path("n.direct")).unwrap();
    let (files, name) = (ServiceFiles::open(kept.store.clone()).await.unwrap(), PlatformName::parse("n").unwrap());
    let refused = PhoneLedger::<TestRow>::open(&files, kept.folder.path(), name, kept.clock.clone()).unwrap_err();
    assert!(refused.to_string().contains("n.direct"), "{refused}");
}
