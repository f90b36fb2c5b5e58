//! The small files of a service, in the store in memory.

use super::{Memory, now, ready};
use std::collections::HashMap;
use toolwarrant_core::files::FileStore;
use toolwarrant_core::store::Stored;

impl FileStore for Memory {
    fn files(&self) -> Stored<'_, HashMap<String, Vec<u8>>> {
        now(self.lock().files.clone())
    }

    fn put_files(&self, files: Vec<(String, Vec<u8>)>) -> Stored<'_, ()> {
        ready(self.write(|tables| {
            tables.files.extend(files);
            Ok(())
        }))
    }
}
