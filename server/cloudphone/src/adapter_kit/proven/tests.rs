//! The content of the file, the account that it belongs to, and the cases in which it is discarded.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn showing(tool: &str) -> Showing {
    Showing { at: Timestamp(1_800_000_000_000), device: "cloud-1".to_owned(), tool: tool.to_owned() }
}

const URL: &str = "https://api.example";

#[tokio::test]
async fn a_proof_holds_for_its_account_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("platform-cloud.shown");
    let shown = ProvenDirections::open(&path, URL, "AK1").unwrap();
    assert_eq!((shown.has(Direction::Exit), shown.has(Direction::Start)), (None, None));
    shown.record(Direction::Exit, showing("curl")).await.unwrap();
    assert_eq!((shown.has(Direction::Exit), shown.has(Direction::Start)), (Some(showing("curl")), None));
    shown.record(Direction::Start, showing("start")).await.unwrap();
    let again = ProvenDirections::open(&path, URL, "AK1").unwrap();
    assert_eq!(again.has(Direction::Exit), Some(showing("curl")));
    assert_eq!(again.has(Direction::Start), Some(showing("start")));
    shown.withdraw(Direction::Start).await.unwrap();
    let withdrawn = ProvenDirections::open(&path, URL, "AK1").unwrap();
    assert_eq!((withdrawn.has(Direction::Exit), withdrawn.has(Direction::Start)), (Some(showing("curl")), None));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("AK1") && !text.contains("api.example"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
}

#[tokio::test]
async fn another_account_begins_without_proofs_and_its_first_record_replaces_those_of_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shown");
    ProvenDirections::open(&path, URL, "AK1").unwrap().record(Direction::Exit, showing("curl")).await.unwrap();
    for (url, key) in [(URL, "AK2"), ("https://api.other", "AK1"), ("https://api.exampleA", "K1")] {
        assert_eq!(ProvenDirections::open(&path, url, key).unwrap().has(Direction::Exit), None, "{url} {key}");
    }
    assert!(ProvenDirections::open(&path, URL, "AK1").unwrap().has(Direction::Exit).is_some());
    ProvenDirections::open(&path, URL, "AK2").unwrap().record(Direction::Start, showing("start")).await.unwrap();
    let first = ProvenDirections::open(&path, URL, "AK1").unwrap();
    assert_eq!((first.has(Direction::Exit), first.has(Direction::Start)), (None, None));
    let second = ProvenDirections::open(&path, URL, "AK2").unwrap();
    assert_eq!((second.has(Direction::Exit), second.has(Direction::Start)), (None, Some(showing("start"))));
}

#[tokio::test]
async fn a_damaged_file_is_renamed_and_no_direction_counts_as_proven() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shown");
    let shown = ProvenDirections::open(&path, URL, "AK1").unwrap();
    shown.record(Direction::Exit, showing("curl")).await.unwrap();
    let sound = fs::read_to_string(&path).unwrap();
    for damaged in [String::new(), sound[..sound.len() / 2].to_owned(), sound.replace("exit", "exits"), "[]".into()] {
        fs::write(&path, &damaged).unwrap();
        let again = ProvenDirections::open(&path, URL, "AK1").unwrap();
        assert_eq!(again.has(Direction::Exit), None, "{damaged}");
        assert_eq!(fs::read_to_string(folder.path().join("shown.damaged")).unwrap(), damaged);
        assert!(!path.exists());
    }
    // If something blocks the file, that is an error, and the proof is not recorded.
    fs::create_dir(folder.path().join("shown.new")).unwrap();
    assert!(shown.record(Direction::Start, showing("start")).await.is_err());
    assert_eq!(shown.has(Direction::Start), None);
}
