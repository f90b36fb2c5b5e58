//! The ownership of a data folder: which service it belongs to.

use crate::process::says;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use toolwarrant::operator::{DataFolder, Names};

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
    says(folder.path(), "app list", 1, "belongs to cloudphone, and this program is print-shop").await;
    assert!(!asked.is_finished(), "it was asked");
}
