//! The requirements on every store, on PostgreSQL.

use super::KEY;
use super::shared::lead;
use kit::TestPostgres;
use std::sync::{Arc, OnceLock};
use store_suite::model::{self, Reopened};
use toolwarrant_postgres::{Address, Postgres};
use toolwarrant_store::Store;

/// Returns an own server: an open transaction of other tests would hide the latest rows of the
/// ledger.
fn server() -> Option<&'static TestPostgres> {
    static SERVER: OnceLock<Option<TestPostgres>> = OnceLock::new();
    TestPostgres::share(&SERVER)
}

/// Expands the tables as a later version may while this one serves.
const EXPANDED: &str = "DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT oid::regclass FROM pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN later integer NOT NULL DEFAULT 0', name);
    END LOOP;
    CREATE TABLE later (one boolean PRIMARY KEY);
END $$";

async fn open() -> Option<((), Arc<dyn Store>)> {
    let address = server()?.schema().await.map(Address::from).expect("the server runs");
    Postgres::init(&address, KEY).await.expect("the schema is empty");
    server()?.count(&address.url, EXPANDED).await;
    Some(((), lead(&address, "one").await))
}

store_suite::store_suite!(open);

struct Rejoined(Address, Arc<Postgres>);

impl Reopened for Rejoined {
    const DELETES_ROWS: bool = false;
    const HAS_CLOCK: bool = true;

    async fn open() -> Self {
        static SERVER: OnceLock<Option<TestPostgres>> = OnceLock::new();
        let server = TestPostgres::share(&SERVER);
        let address = server.expect("PostgreSQL is installed").schema().await.expect("the server runs");
        let address = Address::from(address);
        Postgres::init(&address, KEY).await.expect("the schema is empty");
        let store = lead(&address, "one").await;
        Self(address, store)
    }

    fn store(&self) -> &dyn Store {
        &*self.1
    }

    async fn reopen(self, _killed: bool) -> Self {
        let Self(address, store) = self;
        drop(store);
        let store = lead(&address, "one").await;
        Self(address, store)
    }
}

#[test]
fn its_answers_are_those_of_the_store_in_memory() {
    if server().is_some() {
        model::compare::<Rejoined>(40);
    }
}
