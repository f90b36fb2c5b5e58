//! The small files of a service.

use super::*;
use toolwarrant_core::files::FileStore;

#[tokio::test]
async fn a_file_is_read_back_and_replaced_by_the_leader_alone() {
    let Some(address) = cluster().await else { return };
    let one = lead(&address, "one").await;
    store_suite::a_file_is_read_back_and_replaced(one.clone()).await;
    for other in [one, Arc::new(read(&address).await)] {
        let next = lead(&address, "next").await;
        let refused = other.put_file("list".to_owned(), b"late".to_vec()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        next.put_file("list".to_owned(), b"next".to_vec()).await.expect("it leads");
        assert_eq!(next.files().await.expect("read")["list"], b"next");
    }
}
