//! The ownership of a data folder: which service it belongs to.

use crate::process::{Shop, json_of, operate};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use toolwarrant::operator::{DataFolder, Names};

#[tokio::test]
async fn a_folder_of_another_service_is_refused_by_its_name() {
    let home = TempDir::new().expect("a temporary folder");
    // One folder names its service; the other is from a version that did not name it.
    let [named, unnamed] = ["named", "unnamed"].map(|name| home.path().join(name));
    drop(DataFolder::open(&named, &Names::of("cloudphone", "1.0.0")).expect("a folder"));
    std::fs::create_dir(&unnamed).expect("a folder");
    std::fs::write(unnamed.join("cloudphone.db"), "something").expect("a database");
    for folder in [named, unnamed] {
        for line in ["--listen 127.0.0.1:0", "app list"] {
            let (code, said) = operate(&folder, line).await;
            assert!(
                code != 0 && said.contains("belongs to cloudphone, and this program is print-shop"),
                "{line}: {said}"
            );
        }
    }
}

#[tokio::test]
async fn a_folder_whose_owner_cannot_be_read_is_refused_with_the_file_to_mend() {
    let home = TempDir::new().expect("a temporary folder");
    drop(DataFolder::open(home.path(), &Names::of("print-shop", "1.0.0")).expect("a folder"));
    for garbage in [&b""[..], b"two words", b"\xff\xfe"] {
        std::fs::write(home.path().join("service"), garbage).expect("written");
        let (code, said) = operate(home.path(), "app list").await;
        assert!(code != 0 && said.contains("/service does not name the program"), "{said}");
    }
    std::fs::remove_file(home.path().join("service")).expect("removed");
    let folder = DataFolder::open(home.path(), &Names::of("print-shop", "1.0.0"));
    assert!(folder.is_ok(), "{folder:?}");
}

/// Otherwise the server of the other service would carry out the command.
#[tokio::test]
async fn a_server_of_another_service_is_not_asked() {
    let home = TempDir::new().expect("a temporary folder");
    let folder = DataFolder::open(&home.path().join("data"), &Names::of("cloudphone", "1.0.0")).expect("a folder");
    let server = UnixListener::bind(folder.join("admin.sock")).expect("a socket");
    let asked = tokio::spawn(async move {
        let (mut operator, _) = server.accept().await.expect("a connection");
        operator.write_all(b"{\"Ok\":[]}\n").await.expect("an answer");
    });
    let (code, said) = operate(folder.path(), "app list").await;
    assert!(code != 0 && said.contains("belongs to cloudphone, and this program is print-shop"), "{said}");
    assert!(!asked.is_finished(), "it was asked");
}

#[tokio::test]
async fn a_backup_that_is_taken_while_it_serves_is_restored_with_its_keys_off() {
    let shop = Shop::start().await;
    let home = TempDir::new().expect("a temporary folder");
    let (file, restored) = (home.path().join("shop.tar"), home.path().join("restored"));
    json_of(&shop.data, &format!("backup {}", file.display())).await;
    let key = shop.data.join("master.key");
    let said = json_of(&restored, &format!("restore {} --master-key {}", file.display(), key.display())).await;
    assert_eq!(said["keys"][0]["state"], "unconfirmed", "{said}");
    assert_eq!(json_of(&restored, "doctor").await["healthy"], true);
    let confirmed = json_of(&restored, "key confirm --all").await;
    assert_eq!((&confirmed[0]["key_id"], &confirmed[0]["state"]), (&json!(shop.demo.id), &json!("live")));
}
