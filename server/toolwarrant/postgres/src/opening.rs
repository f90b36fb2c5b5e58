//! Connections to a server that is checked: its version, its tables, the rights and the session.

use crate::connection::{Address, Server, limit_locks, unavailable};
use crate::{rights, runs, session};
use tokio_postgres::Client;
use toolwarrant_base::keyring::Digest;
use toolwarrant_core::store::StoreError;

pub(crate) async fn open(server: &Server, key: Digest) -> Result<Client, StoreError> {
    let client = server.connect().await?;
    limit_locks(&client, "2s").await?;
    check_server(&client).await?;
    rights::check(&client).await?;
    check_tables(&client, key).await?;
    session::check(server, &client).await?;
    Ok(client)
}

pub(crate) async fn connect_new(address: &Address) -> Result<Client, StoreError> {
    let client = Server::parse(address)?.connect().await?;
    check_server(&client).await?;
    let sql = "SELECT to_regclass('cluster') IS NOT NULL, current_user::text, current_schema()::text,
                   coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";
    let row = client.query_one(sql, &[]).await.map_err(unavailable)?;
    let (exists, account, schema, may_create) =
        (row.get(0), row.get::<_, &str>(1), row.get::<_, Option<&str>>(2), row.get(3));
    match (exists, may_create) {
        (true, _) => Err(StoreError::Conflict("there is a store already; `store check` shows it".to_owned())),
        (false, false) => Err(StoreError::Corrupt(format!(
            "the account `{account}` cannot make tables; a superuser can let it: GRANT CREATE ON SCHEMA {} TO {account}",
            schema.unwrap_or("public")
        ))),
        (false, true) => Ok(client),
    }
}

async fn check_server(client: &Client) -> Result<(), StoreError> {
    let sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'), current_database()::text";
    let row = client.query_one(sql, &[]).await.map_err(unavailable)?;
    let (version, encoding, database): (i32, &str, &str) = (row.get(0), row.get(1), row.get(2));
    if version < 150_000 {
        return Err(StoreError::Corrupt(format!(
            "the server is PostgreSQL {}, and 15 or later is needed",
            version / 10_000
        )));
    }
    if encoding != "UTF8" {
        return Err(StoreError::Corrupt(format!(
            "the database `{database}` has the encoding {encoding}, and UTF8 is needed; name another one in the URL, made with CREATE \
             DATABASE name ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0"
        )));
    }
    Ok(())
}

/// Refuses a layout that this program does not know, and another master key.
async fn check_tables(client: &Client, key: Digest) -> Result<(), StoreError> {
    let row = client.query_one("SELECT layout, key FROM cluster", &[]).await.map_err(unavailable)?;
    runs::check_layout(row.get(0))?;
    match row.get::<_, &[u8]>(1) == key {
        true => Ok(()),
        false => Err(StoreError::Corrupt(
            "the master key is not the one that this store was made with; copy that one to the data folder".to_owned(),
        )),
    }
}
