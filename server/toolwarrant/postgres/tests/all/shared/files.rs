//! The small files of a service.

use super::*;
use toolwarrant_core::files::FileStore;

#[tokio::test]
async fn the_leader_alone_writes_files() {
    let Some(address) = cluster().await else { return };
    let one = lead(&address, "one").await;
    let put = |content: &[u8]| vec![("list".to_owned(), content.to_vec())];
    for other in [one, Arc::new(read(&address).await)] {
        let next = lead(&address, "next").await;
        let refused = other.put_files(put(b"late")).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        next.put_files(put(b"next")).await.expect("it leads");
        assert_eq!(next.files().await.expect("read")["list"], b"next");
    }
}
