//! Request budgets that replicas share: each replica exchanges the logs of its busy applications
//! with a store. A service can share other budgets in the same way.
//!
//! A request that the allowance of its replica covers does not wait. While a replica holds an
//! allowance, or requests wait for one, a worker exchanges the log of that application. There is at
//! most one for each application, so requests that wait at the same time share an exchange. This
//! module does not decide who gets what; [`limit`](super::limit) does. Start at [`Budgets::admit`].

use super::access::Application;
use super::cluster::Epoch;
use super::documents::{Document, DocumentStore};
use super::limit::{HeadCharge, SharedLog, Shortage, Window, WorkerStep};
use super::store::StoreError;
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::ignore_poison;

/// The name space of the logs. Their keys are the ids of the applications, and the keys of other
/// budgets of a service.
const SPACE: &str = "budget";

/// Longest time that a request waits for an allowance, and longest time of an exchange.
const DEADLINE: Duration = Duration::from_secs(2);

/// The budgets of all applications, for one replica.
#[derive(Debug)]
pub struct Budgets {
    store: Arc<dyn DocumentStore>,
    holder: Epoch,
    /// The clock that all replicas share, with an error of at most half of
    /// [`CLOCK_ERROR`](super::limit::CLOCK_ERROR).
    clock: Clock,
    /// `None` after [`Self::give_back`].
    workers: Mutex<Option<JoinSet<()>>>,
    closing: watch::Sender<bool>,
}

impl Budgets {
    /// Shares budgets with the other replicas of the store.
    #[must_use]
    pub fn new(store: Arc<dyn DocumentStore>, holder: Epoch, clock: Clock) -> Arc<Self> {
        let (workers, closing) = (Mutex::new(Some(JoinSet::new())), watch::Sender::new(false));
        Arc::new(Self { store, holder, clock, workers, closing })
    }

    /// Admits all `n` requests of an application, or none. The parameters are those of
    /// [`Window::admit`]. It waits only if this replica holds too little.
    ///
    /// # Errors
    /// [`Shortage::Spent`] if they do not fit; [`Shortage::Unknown`] if the store does not answer
    /// in time.
    pub async fn admit(
        self: &Arc<Self>,
        application: &Application,
        head: Option<HeadCharge>,
        n: u32,
    ) -> Result<HeadCharge, Shortage> {
        self.admit_to(&application.id, &application.window, head, n).await
    }

    /// Does the same as [`Self::admit`] for any budget: `key` names it in the store, and `window`
    /// has its limit. The key must not be the id of an application.
    ///
    /// # Errors
    /// Those of [`Self::admit`].
    pub async fn admit_to(
        self: &Arc<Self>,
        key: &str,
        window: &Arc<Window>,
        head: Option<HeadCharge>,
        n: u32,
    ) -> Result<HeadCharge, Shortage> {
        match window.spend(head, self.clock.now(), n) {
            Err(Shortage::Unknown) => {}
            known => return known,
        }
        let asked = Box::pin(self.ask(key, window, n.saturating_sub(u32::from(head.is_some()))));
        asked.await.inspect_err(|_| {
            if let Some(head) = head {
                window.give_back(head);
            }
        })
    }

    /// Like [`Self::admit`], but does not wait.
    pub(crate) fn spend(
        &self,
        application: &Application,
        head: Option<HeadCharge>,
        n: u32,
    ) -> Result<HeadCharge, Shortage> {
        application.window.spend(head, self.clock.now(), n)
    }

    /// Lets requests wait for an allowance.
    async fn ask(self: &Arc<Self>, key: &str, window: &Arc<Window>, requests: u32) -> Result<HeadCharge, Shortage> {
        let answer = {
            let mut workers = ignore_poison(self.workers.lock());
            let workers = workers.as_mut().ok_or(Shortage::Unknown)?;
            while workers.try_join_next().is_some() {}
            let start = || workers.spawn(Arc::clone(self).work(key.to_owned(), Arc::clone(window)));
            window.share().wait(requests, start)
        };
        match timeout(DEADLINE, answer).await {
            Ok(Ok(answer)) => answer.map_err(Shortage::Spent),
            Ok(Err(_)) | Err(_) => Err(Shortage::Unknown),
        }
    }

    /// Gives back what this replica holds. Later requests are not admitted. Call it at a stop,
    /// after the last request.
    pub async fn give_back(&self) {
        self.closing.send_replace(true);
        let workers = ignore_poison(self.workers.lock()).take();
        let Some(mut workers) = workers else { return };
        let all = async { while workers.join_next().await.is_some() {} };
        if timeout(DEADLINE, all).await.is_err() {
            tracing::warn!("what is left of request budgets could not be given back; it counts as spent for a minute");
        }
    }

    /// Exchanges the log of a budget while that is necessary.
    async fn work(self: Arc<Self>, key: String, window: Arc<Window>) {
        let (wake, mut closing) = (window.share().wake(), self.closing.subscribe());
        let mut has_failed = false;
        loop {
            let is_closing = *closing.borrow_and_update();
            let step = window.share().next_step(self.clock.now(), is_closing);
            match step {
                WorkerStep::Exchange => {
                    let exchange = timeout(DEADLINE, self.exchange(&key, &window)).await;
                    let failure = match &exchange {
                        Ok(Ok(())) => {
                            has_failed = false;
                            continue;
                        }
                        Ok(Err(error)) => error.to_string(),
                        Err(late) => late.to_string(),
                    };
                    if !mem::replace(&mut has_failed, true) {
                        tracing::warn!(key, failure, "a request budget cannot be exchanged; trying again");
                    }
                    window.share().fail(self.clock.now());
                    if is_closing {
                        return;
                    }
                }
                WorkerStep::Wait(until) => tokio::select! {
                    () = wake.notified() => {}
                    () = self.clock.sleep_until(until) => {}
                    _ = closing.changed() => {}
                },
                WorkerStep::End => return,
            }
        }
    }

    /// Reads the log, and puts it with a new record of this replica, until no other replica has
    /// changed it meanwhile.
    async fn exchange(&self, key: &str, window: &Window) -> Result<(), StoreError> {
        loop {
            let found = self.store.documents(SPACE, vec![key.to_owned()]).await?.pop();
            let (version, log) = match found {
                Some(Document { version, body, .. }) => (version, SharedLog::decode(&body)),
                None => (0, Some(SharedLog::default())),
            };
            let log = log.ok_or_else(|| StoreError::Corrupt(format!("the budget of {key} cannot be read")))?;
            let body = window.share().propose(self.holder.0, log, window.limit(), self.clock.now());
            let Some(body) = body else { return Ok(()) };
            let document = Document { key: key.to_owned(), version, body };
            if self.store.put_documents(SPACE, vec![document]).await? == [true] {
                window.share().confirm(window.limit(), self.clock.now());
                return Ok(());
            }
        }
    }
}
