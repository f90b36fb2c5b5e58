//! Work that runs next to a server or a command. Start at [`Background::start`].

use std::future::pending;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolwarrant_base::BoxFuture;

const SERVICE_STOPS_WITHIN: Duration = Duration::from_secs(10);

/// Work that runs until it is stopped. Dropping it ends the work without waiting.
#[derive(Debug)]
pub struct Background {
    name: &'static str,
    deadline: Duration,
    work: JoinSet<()>,
    stop: oneshot::Sender<()>,
}

impl Background {
    /// Starts `work`, which ends after its argument is ready. `name` begins a sentence in the log.
    #[must_use]
    pub fn start<W: Future<Output = ()> + Send + 'static>(
        name: &'static str,
        deadline: Duration,
        work: impl FnOnce(BoxFuture<'static, ()>) -> W,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let work = work(Box::pin(async { drop(stopped.await) }));
        Self { name, deadline, work: JoinSet::from_iter([work]), stop }
    }

    #[must_use]
    pub fn of_service(work: Vec<BoxFuture<'static, ()>>) -> Self {
        Self::start("the background work of the service", SERVICE_STOPS_WITHIN, |stopped| async {
            let mut running: JoinSet<()> = work.into_iter().collect();
            let watched = async {
                while let Some(ended) = running.join_next().await {
                    if let Err(error) = ended {
                        tracing::error!(%error, "background work of the service has panicked; a restart starts it again");
                    }
                }
                pending().await
            };
            until(stopped, watched).await;
            running.shutdown().await;
        })
    }

    pub async fn stop(self) {
        let Self { name, deadline, mut work, stop } = self;
        drop(stop);
        match timeout(deadline, work.join_next()).await {
            Ok(Some(Err(error))) => tracing::error!(%error, "{name} has panicked"),
            Ok(_) => {}
            Err(_) => {
                tracing::warn!("{name} did not stop within {} s; the stop continues without it", deadline.as_secs())
            }
        }
    }
}

pub async fn until(stopped: impl Future<Output = ()>, work: impl Future<Output = ()>) {
    tokio::select! {
        () = stopped => {}
        () = work => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Background, until};
    use std::future::pending;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    #[tokio::test]
    async fn work_continues_next_to_a_panic_and_is_gone_at_the_end() {
        let (begun, has_begun) = oneshot::channel();
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let steady = async move {
            tokio::task::yield_now().await;
            let _ = begun.send(());
            pending::<()>().await;
            drop(kept);
        };
        let background = Background::of_service(vec![Box::pin(async { panic!("on purpose") }), Box::pin(steady)]);
        has_begun.await.expect("it goes on");
        assert_eq!(Arc::strong_count(&held), 2);
        background.stop().await;
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_the_remaining_work_until_its_deadline() {
        let (begun, deadline) = (Instant::now(), Duration::from_secs(5));
        let last = |seconds| async move { tokio::time::sleep(Duration::from_secs(seconds)).await };
        for (seconds, taken) in [(3, 3), (7, 3 + 5)] {
            let held = Arc::new(());
            let kept = Arc::clone(&held);
            let work = Background::start("the work", deadline, |stopped| async move {
                until(stopped, pending()).await;
                last(seconds).await;
                drop(kept);
            });
            work.stop().await;
            tokio::task::yield_now().await;
            assert_eq!((begun.elapsed().as_secs(), Arc::strong_count(&held)), (taken, 1));
        }
    }
}
