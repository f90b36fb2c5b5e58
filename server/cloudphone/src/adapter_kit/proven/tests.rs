//! The content of the file, the account that it belongs to, and the cases in which it is discarded.

use super::*;
use crate::phones::contract::DeviceId;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;
use toolwarrant_memory::Memory;

fn showing(tool: &str) -> Showing {
    Showing { at: Timestamp(1_800_000_000_000), device: "cloud-1".to_owned(), tool: tool.to_owned() }
}

const URL: &str = "https://api.example";

fn open(folder: &TempDir, base_url: &str, access_key: &str) -> ProvenDirections {
    ProvenDirections::open(&ServiceFiles::in_folder(folder.path()), "shown", base_url, access_key).unwrap()
}

#[tokio::test]
async fn a_proof_holds_for_its_account_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shown");
    let shown = open(&folder, URL, "AK1");
    assert_eq!((shown.has(Direction::Exit), shown.has(Direction::Start)), (None, None));
    shown.record(Direction::Exit, showing("curl")).await.unwrap();
    assert_eq!((shown.has(Direction::Exit), shown.has(Direction::Start)), (Some(showing("curl")), None));
    shown.record(Direction::Start, showing("start")).await.unwrap();
    let again = open(&folder, URL, "AK1");
    assert_eq!(again.has(Direction::Exit), Some(showing("curl")));
    assert_eq!(again.has(Direction::Start), Some(showing("start")));
    shown.withdraw(Direction::Start).await.unwrap();
    let withdrawn = open(&folder, URL, "AK1");
    assert_eq!((withdrawn.has(Direction::Exit), withdrawn.has(Direction::Start)), (Some(showing("curl")), None));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("AK1") && !text.contains("api.example"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
}

#[tokio::test]
async fn another_account_begins_without_proofs_and_its_first_record_replaces_those_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    open(&folder, URL, "AK1").record(Direction::Exit, showing("curl")).await.unwrap();
    for (url, key) in [(URL, "AK2"), ("https://api.other", "AK1"), ("https://api.exampleA", "K1")] {
        assert_eq!(open(&folder, url, key).has(Direction::Exit), None, "{url} {key}");
    }
    assert!(open(&folder, URL, "AK1").has(Direction::Exit).is_some());
    open(&folder, URL, "AK2").record(Direction::Start, showing("start")).await.unwrap();
    let first = open(&folder, URL, "AK1");
    assert_eq!((first.has(Direction::Exit), first.has(Direction::Start)), (None, None));
    let second = open(&folder, URL, "AK2");
    assert_eq!((second.has(Direction::Exit), second.has(Direction::Start)), (None, Some(showing("start"))));
}

#[tokio::test]
async fn a_damaged_file_is_renamed_and_no_direction_counts_as_proven() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shown");
    let shown = open(&folder, URL, "AK1");
    shown.record(Direction::Exit, showing("curl")).await.unwrap();
    let sound = fs::read_to_string(&path).unwrap();
    for damaged in [String::new(), sound[..sound.len() / 2].to_owned(), sound.replace("exit", "exits"), "[]".into()] {
        fs::write(&path, &damaged).unwrap();
        let again = open(&folder, URL, "AK1");
        assert_eq!(again.has(Direction::Exit), None, "{damaged}");
        assert_eq!(fs::read_to_string(folder.path().join("shown.damaged")).unwrap(), damaged);
        assert!(!path.exists());
    }
    // If something blocks the file, that is an error, and the proof is not recorded.
    fs::create_dir(folder.path().join("shown.new")).unwrap();
    assert!(shown.record(Direction::Start, showing("start")).await.is_err());
    assert_eq!(shown.has(Direction::Start), None);
}

#[tokio::test]
async fn proofs_in_a_store_are_found_by_the_next_leader() {
    let store = Memory::default();
    let open = async || {
        let files = ServiceFiles::in_store(Arc::new(store.lead())).await.unwrap();
        let shown = ProvenDirections::open(&files, "pads.shown.json", URL, "AK1").unwrap();
        (shown, ProvenPhones::open(&files, "pads.starts").unwrap())
    };
    let (shown, phones) = open().await;
    let id = DeviceId::new("pads-a").unwrap();
    shown.record(Direction::Exit, showing("curl")).await.unwrap();
    phones.record(&id, "A").await.unwrap();
    let (next, next_phones) = open().await;
    assert_eq!((next.has(Direction::Exit), next.has(Direction::Start)), (Some(showing("curl")), None));
    assert!(next_phones.has(&id, "A"));
    // The former leader stores nothing any more.
    assert!(shown.withdraw(Direction::Exit).await.is_err() && phones.withdraw(&id).await.is_err());
    assert!(shown.has(Direction::Exit).is_some() && phones.has(&id, "A"));
}
