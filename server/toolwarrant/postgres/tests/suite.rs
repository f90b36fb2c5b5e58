//! The requirements on every store, on PostgreSQL.

use std::sync::{Arc, OnceLock};
use toolwarrant_postgres::testing::TestServer;
use toolwarrant_postgres::{Membership, Postgres};
use toolwarrant_store::Store;
use toolwarrant_store::suite::model::{self, Reopened};

fn server() -> Option<&'static TestServer> {
    static SERVER: OnceLock<Option<TestServer>> = OnceLock::new();
    SERVER.get_or_init(TestServer::start).as_ref()
}

async fn join(url: &str) -> Postgres {
    let membership = Membership { name: "one".to_owned(), program: "test 1".to_owned(), level: 1 };
    Postgres::join(url, membership).await.expect("the server runs")
}

async fn open() -> Option<((), Arc<dyn Store>)> {
    let url = server()?.schema().await.expect("the server runs");
    Postgres::init(&url).await.expect("the schema is empty");
    Some(((), Arc::new(join(&url).await)))
}

toolwarrant_store::store_suite!(open);

/// A store that is opened again under its name.
struct Rejoined(String, Postgres);

impl Reopened for Rejoined {
    const DELETES_ROWS: bool = false;

    async fn open() -> Self {
        let url = server().expect("PostgreSQL is installed").schema().await.expect("the server runs");
        Postgres::init(&url).await.expect("the schema is empty");
        let store = join(&url).await;
        Self(url, store)
    }

    fn store(&self) -> &dyn Store {
        &self.1
    }

    async fn reopen(self, _killed: bool) -> Self {
        let Self(url, store) = self;
        drop(store);
        let store = join(&url).await;
        let orphans = toolwarrant_tasks::store::TaskStore::orphans(&store, None, 1_000).await.expect("the server runs");
        let ids = orphans.into_iter().map(|task| task.id).collect();
        toolwarrant_tasks::store::TaskStore::adopt(&store, ids).await.expect("the server runs");
        Self(url, store)
    }
}

#[test]
fn its_answers_are_those_of_the_store_in_memory() {
    if server().is_some() {
        model::compare::<Rejoined>(40);
    }
}
