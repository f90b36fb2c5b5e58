//! Work of a service that runs as long as its server, or beside one command. It is owned here, and ended with its owner.

use std::future::pending;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use toolwarrant_core::BoxFuture;

/// Background work of a service that runs. Dropping it ends the work, without waiting for that.
#[derive(Debug)]
pub struct Background {
    work: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Background {
    /// Runs each of these until its end. A panic in one is logged and ends no other.
    #[must_use]
    pub fn start(work: Vec<BoxFuture<'static, ()>>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let work = tokio::spawn(async move {
            let mut running: JoinSet<()> = work.into_iter().collect();
            let watched = async {
                while let Some(ended) = running.join_next().await {
                    if let Err(error) = ended {
                        tracing::error!(%error, "background work of the service has ended by a panic; a restart begins it again");
                    }
                }
                pending().await
            };
            tokio::select! {
                () = watched => {}
                _ = stopped => {}
            }
            running.shutdown().await;
        });
        Self { work, stop }
    }

    /// Ends the work, and waits until it has ended.
    pub async fn end(self) {
        let Self { work, stop } = self;
        drop(stop);
        let _ = work.await;
    }
}

#[cfg(test)]
mod tests {
    use super::Background;
    use std::future::pending;
    use std::sync::Arc;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn work_goes_on_beside_what_panics_and_is_gone_at_the_end() {
        let (begun, has_begun) = oneshot::channel();
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let steady = async move {
            tokio::task::yield_now().await;
            let _ = begun.send(());
            pending::<()>().await;
            drop(kept);
        };
        let background = Background::start(vec![Box::pin(async { panic!("on purpose") }), Box::pin(steady)]);
        has_begun.await.expect("it goes on");
        assert_eq!(Arc::strong_count(&held), 2);
        background.end().await;
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
