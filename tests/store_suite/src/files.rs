//! The small files of a service, for a store that has them.

use std::collections::HashMap;
use std::sync::Arc;
use toolwarrant_core::files::FileStore;

pub async fn a_file_is_read_back_and_replaced(store: Arc<dyn FileStore>) {
    assert_eq!(store.files().await.unwrap(), HashMap::new());
    let contents: [&[u8]; 4] = [b"first", b"", b"\0\xff", b"last"];
    for content in contents {
        store.put_file("one".to_owned(), content.to_vec()).await.unwrap();
        store.put_file("other.1".to_owned(), b"other".to_vec()).await.unwrap();
        let files =
            [("one", content), ("other.1", b"other")].map(|(name, content)| (name.to_owned(), content.to_vec()));
        assert_eq!(store.files().await.unwrap(), HashMap::from(files));
    }
}
