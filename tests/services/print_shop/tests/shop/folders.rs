//! The ownership of a data folder: which service it belongs to.

use crate::process::operate;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use toolwarrant::operator::{DataFolder, Names};

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
