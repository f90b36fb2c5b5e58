//! The file that is left when a process ends.

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use toolwarrant_memory::Memory;

#[tokio::test]
async fn the_file_is_its_owners_and_written_only_when_ids_or_members_change() {
    let kept = TestRegistry::new();
    let written = || fs::metadata(kept.file()).map(|about| about.ino()).ok();
    let mut before = written();
    for (list, writes) in [
        ("A@1 B", true),
        ("A@1 B", false),
        ("A@1", false),
        ("A@1", true),
        ("A@1", false),
        ("C@1", true),
        ("C@1 D", true),
        ("C@1 D@2", true),
        ("C@1 D", false),
    ] {
        kept.registry.take(rows(list), Vec::new(), kept.tick()).await;
        let after = written();
        assert_eq!(after != before, writes, "{list}");
        before = after;
    }
    assert_eq!(fs::metadata(kept.file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(kept.folder.path()).unwrap().count(), 1, "no draft is left");
}

#[tokio::test]
async fn a_damaged_file_is_renamed_and_the_platform_is_read_again() {
    let sound = {
        let kept = TestRegistry::new();
        kept.registry.take(rows("A@1 B"), Vec::new(), kept.tick()).await;
        fs::read_to_string(kept.file()).unwrap()
    };
    for damaged in [
        String::new(),
        sound[..sound.len() / 2].to_owned(),
        sound.replace("\"roster\":1", "\"roster\":2"),
        sound.replace("\"platform\":\"n\"", "\"platform\":\"m\""),
        sound.replace("\"n-b\"", "\"n-a\""),
        sound.replace("\"n-b\"", "\"m-b\""),
        sound.replace("\"n-b\"", "\"n_b\""),
        sound.replace("\"seat\":null", "\"seat\":\"1\""),
        sound.replace("\"code\":\"B\",\"read", "\"code\":\"A\",\"read"),
        sound.replace("\"code\":\"B\",\"read", "\"code\":\"C\",\"read"),
    ] {
        assert_ne!(damaged, sound);
        let mut kept = TestRegistry::new();
        fs::write(kept.file(), &damaged).unwrap();
        kept.restart();
        assert_eq!((describe(&kept.registry).as_str(), kept.registry.is_known()), ("", false), "{damaged}");
        let aside = kept.folder.path().join("roster.damaged");
        assert_eq!(fs::read_to_string(aside).unwrap(), damaged);
        kept.registry.take(rows("A@1"), Vec::new(), kept.tick()).await;
        kept.restart();
        assert_eq!(describe(&kept.registry), "n-a=A");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_stops_no_list_and_is_written_later() {
    let mut kept = TestRegistry::new();
    let draft = kept.folder.path().join("roster.new");
    fs::create_dir(&draft).unwrap();
    kept.registry.take(rows("A"), Vec::new(), kept.tick()).await;
    assert_eq!(describe(&kept.registry), "n-a=A");
    fs::remove_dir(&draft).unwrap();
    kept.registry.take(rows("A"), Vec::new(), kept.tick()).await;
    kept.restart();
    assert_eq!(describe(&kept.registry), "n-a=A");
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("roster")).unwrap();
    let (files, name) = (ServiceFiles::in_folder(folder.path()), PlatformName::parse("n").unwrap());
    let refused = DeviceRegistry::<TestRow>::open(&files, "roster", name, Clock::manual(Timestamp(0)));
    assert!(refused.unwrap_err().to_string().ends_with("` is not a file"));
}

#[tokio::test]
async fn rows_are_not_current_after_a_restart_and_pages_go_on_where_a_phone_is_gone() {
    let mut kept = TestRegistry::new();
    kept.registry.take(rows("A C E"), Vec::new(), kept.tick()).await;
    // The clock of the next process may show an earlier time.
    kept.clock = Clock::manual(Timestamp(500_000));
    kept.restart();
    let gone = DeviceId::new("n-b").ok().unwrap();
    let after: Vec<_> = page(&kept.registry, Some(&gone), 9);
    assert_eq!(after.iter().map(|phone| phone.id.as_str()).collect::<Vec<_>>(), ["n-c", "n-e"]);
    assert!(after.iter().all(|phone| !is_current(phone.read_at, kept.clock.now())));
    assert!(kept.registry.age() > Some(SHOWN_FOR));
}

#[tokio::test]
async fn the_next_leader_finds_the_ids_in_the_store_and_an_id_that_is_not_stored_is_not_shown() {
    let (store, clock) = (Memory::default(), Clock::manual(Timestamp(1_000_000)));
    let open = async || {
        let files = ServiceFiles::in_store(Arc::new(store.lead())).await.unwrap();
        DeviceRegistry::<TestRow>::open(&files, "roster", PlatformName::parse("n").unwrap(), clock.clone()).unwrap()
    };
    let one = open().await;
    assert!(one.take(rows("A@1 B@2"), Vec::new(), clock.now()).await);
    one.note(parse_row("C@1"), Vec::new(), clock.now()).await;
    let two = open().await;
    assert_eq!((describe(&two).as_str(), two.is_known()), ("n-a=C n-b=B", true));
    assert!(page(&two, None, 9).iter().all(|phone| !is_current(phone.read_at, clock.now())));
    assert!(two.take(rows("C@1 A@2 D@3"), Vec::new(), clock.now()).await);
    assert_eq!(describe(&two), "n-a=C n-b=A n-d=D");
    // The next leader ends this one.
    let three = open().await;
    clock.advance(Duration::from_secs(1));
    assert!(!two.take(rows("C@1 A@2 D@3 E@4"), Vec::new(), clock.now()).await);
    assert_eq!(describe(&two), "n-a=C n-b=A n-d=D");
    assert!(three.take(rows("C@1 A@2 D@3 F@4"), Vec::new(), clock.now()).await);
    assert_eq!(describe(&three), "n-a=C n-b=A n-d=D n-f=F");
}
