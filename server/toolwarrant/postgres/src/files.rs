//! The small files of a service.

use crate::Postgres;
use crate::column::{get, rows};
use crate::lane::Parameter;
use crate::single::WriteStatement;
use std::collections::HashMap;
use std::time::Duration;
use toolwarrant_core::files::FileStore;
use toolwarrant_core::store::Stored;

const READING: Duration = Duration::from_secs(30);

const PUT: &str = ",
    put AS (
        INSERT INTO file (name, content) SELECT new.* FROM turn, unnest($4::text[], $5::bytea[]) AS new
        ON CONFLICT (name) DO UPDATE SET content = excluded.content)
    SELECT one, NULL::bigint AS answer FROM turn";

impl FileStore for Postgres {
    fn files(&self) -> Stored<'_, HashMap<String, Vec<u8>>> {
        Box::pin(self.reader.read_within(READING, |client| async move {
            let found = rows(client.query_again("SELECT name, content FROM file", &[]).await)?;
            found.iter().map(|row| Ok((get(row, "name")?, get(row, "content")?))).collect()
        }))
    }

    fn put_files(&self, files: Vec<(String, Vec<u8>)>) -> Stored<'_, ()> {
        Box::pin(async move {
            let (names, contents): (Vec<_>, Vec<_>) = files.into_iter().unzip();
            let parameters = move || -> Vec<Parameter> { vec![Box::new(names.clone()), Box::new(contents.clone())] };
            self.write(WriteStatement::new(PUT, parameters)).await.map(drop)
        })
    }
}
