//! The small files of a service, in a folder and in a store.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tempfile::TempDir;
use toolwarrant_core::files::{FileStore, ServiceFiles};
use toolwarrant_memory::Memory;

/// A folder, and a store, which the next process opens again.
struct Places(TempDir, Memory);

impl Places {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"), Memory::default())
    }

    async fn open(&self) -> [ServiceFiles; 2] {
        let in_store = ServiceFiles::in_store(Arc::new(self.1.lead())).await.expect("the store answers");
        [ServiceFiles::in_folder(self.0.path()), in_store]
    }
}

#[tokio::test]
async fn a_file_has_its_latest_content_at_the_next_start() {
    let places = Places::new();
    for files in places.open().await {
        let (mut file, content) = files.open("list").unwrap();
        assert_eq!(content, None);
        for content in ["a longer text", "text"] {
            file.replace(content.into()).await.unwrap();
        }
    }
    for files in places.open().await {
        assert_eq!(files.open("list").unwrap().1, Some(b"text".to_vec()));
        assert_eq!(files.open("lists").unwrap().1, None);
    }
    assert_eq!(fs::metadata(places.0.path().join("list")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn lines_are_the_same_in_a_store_as_in_a_folder_and_a_long_file_is_not_written_as_a_whole() {
    let places = Places::new();
    let mut written = String::new();
    for round in 0..3 {
        let mut opened = places.open().await.map(|files| files.open_lines("lines").unwrap());
        assert!(opened.iter().all(|(_, text)| *text == written), "{round}");
        for number in 0..200 {
            let line = format!("{round} {number} {}", "x".repeat(number));
            for (file, _) in &mut opened {
                file.append(&line).await.unwrap();
            }
            written += &format!("\n{line}");
        }
    }
    let stored = places.1.files().await.unwrap();
    assert!(stored.len() > 3 && stored.values().all(|part| part.len() <= 16 * 1024), "{}", stored.len());
    assert_eq!(fs::read_to_string(places.0.path().join("lines")).unwrap(), written);
}

#[tokio::test]
async fn damaged_content_stays_under_another_name() {
    let places = Places::new();
    for content in ["damaged", "sound"] {
        for files in places.open().await {
            let (mut file, found) = files.open("list").unwrap();
            if let Some(found) = found {
                file.set_aside(found).unwrap();
            }
            file.replace(content.into()).await.unwrap();
        }
    }
    for files in places.open().await {
        let [aside, list] = ["list.damaged", "list"].map(|name| files.open(name).unwrap().1.unwrap());
        assert_eq!([aside, list], [b"damaged".to_vec(), b"sound".to_vec()]);
    }
}

#[tokio::test]
async fn a_write_that_fails_is_reported_and_the_next_process_finds_what_was_written_before() {
    let places = Places::new();
    let mut opened =
        places.open().await.map(|files| (files.open("list").unwrap().0, files.open_lines("lines").unwrap().0));
    for (list, lines) in &mut opened {
        list.replace(b"first".to_vec()).await.unwrap();
        lines.append("first").await.unwrap();
    }
    fs::create_dir(places.0.path().join("list.new")).unwrap();
    let next = places.open().await;
    let [(in_folder, _), (in_store, lines)] = &mut opened;
    assert!(in_folder.replace(b"second".to_vec()).await.is_err());
    assert!(in_store.replace(b"second".to_vec()).await.is_err() && lines.append("second").await.is_err());
    for files in next {
        assert_eq!(files.open("list").unwrap().1, Some(b"first".to_vec()));
        assert_eq!(files.open_lines("lines").unwrap().1, "\nfirst");
    }
}
