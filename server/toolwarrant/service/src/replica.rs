//! The life of a server that leads: when it must stop, and how it hands over.

use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use toolwarrant_operator::Shared;
use toolwarrant_operator::metrics::ServiceStatus;

/// Returns an error if this process may not lead any more.
pub(crate) async fn wait_for_stop(shared: Option<&mut Shared>, stop: impl Future<Output = ()>) -> Result<()> {
    let leading = shared.and_then(|shared| {
        shared.note_serving();
        shared.leading.as_mut()
    });
    let Some(leading) = leading else {
        stop.await;
        return Ok(());
    };
    tokio::select! {
        why = leading => Err(anyhow!("this process does not lead any more: {}", why?)),
        () = stop => Ok(()),
    }
}

/// Leaves at once. Nothing may be under way.
pub(crate) async fn give_up(shared: Shared) {
    let _ = timeout(GIVE_UP, shared.leave()).await;
}

/// Leaves, so that the process that waits leads. Then waits until that answers and the balancer has
/// noticed: clients that have waited here are led to it. If nobody leads soon, nobody waits for
/// that.
pub(crate) async fn hand_over(shared: Shared, status: &ServiceStatus) {
    let store = Arc::clone(&shared.store);
    shared.leave().await;
    let led = until(SUCCESSOR, async || matches!(store.leader().await, Ok(Some(_)))).await;
    if led && until(ITS_START, async || matches!(store.is_served().await, Ok(true))).await {
        status.set_stopping();
        sleep(NOTICED).await;
    }
}

async fn until(limit: Duration, is_so: impl AsyncFn() -> bool) -> bool {
    let looking = async {
        while !is_so().await {
            sleep(LOOK_EVERY).await;
        }
    };
    timeout(limit, looking).await.is_ok()
}

const GIVE_UP: Duration = Duration::from_secs(1);

const LOOK_EVERY: Duration = Duration::from_millis(100);

const SUCCESSOR: Duration = Duration::from_millis(2_500);

const ITS_START: Duration = Duration::from_secs(15);

/// For a balancer to notice that this process is not ready, and the successor is: longer than three
/// checks of `docs/cluster/haproxy.cfg`.
const NOTICED: Duration = Duration::from_secs(2);
