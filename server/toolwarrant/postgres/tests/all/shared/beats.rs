//! Beats over a connection that never answers.

use super::*;

#[tokio::test]
async fn a_beat_after_one_without_an_answer_gets_another_connection() {
    let Some(server) = TestPostgres::start() else { return };
    let address = server.schema().await.expect("the server runs");
    Postgres::init(&address, KEY).await.expect("the schema is empty");
    let one = join(&address, "one").await;
    one.beat(Beat::default()).await.expect("the server runs");
    // The process behind the connection stands still, as if nobody told of a cut.
    let beats = "SELECT pid::bigint FROM pg_stat_activity WHERE query LIKE 'WITH checked%'";
    let process = server.count(&address, beats).await;
    driver::signal(u32::try_from(process).expect("an id"), "STOP").expect("it runs");
    // A member waits no longer.
    let _ = tokio::time::timeout(LEASE * 3 / 10, one.beat(Beat::default())).await;
    one.beat(Beat::default()).await.expect("another connection");
}
