//! The small files of a service.

use std::collections::HashMap;
use std::sync::Arc;
use toolwarrant_store::Store;

pub async fn files_are_read_back_and_replaced(store: Arc<dyn Store>) {
    assert_eq!(store.files().await.unwrap(), HashMap::new());
    let contents: [&[u8]; 4] = [b"first", b"", b"\0\xff", b"last"];
    for content in contents {
        let files =
            [("one", content), ("other/1", b"other")].map(|(name, content)| (name.to_owned(), content.to_vec()));
        store.put_files(files.to_vec()).await.unwrap();
        store.put_files(Vec::new()).await.unwrap();
        assert_eq!(store.files().await.unwrap(), HashMap::from(files));
    }
}
