//! The duty to list a platform, which one replica has at a time, and its reports to the others.
//!
//! A replica takes the duty if the replica that had it may no longer act. A replica with the duty
//! lists only while its lease stands, so no two list at the same time. The others read its reports,
//! and can ask for a list. Start at [`Duty::hold`].

use super::shared::{FollowedDocument, SharedPlatforms};
use crate::phones::port::{PlatformName, Unreachable};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::sharing::{Cluster, Membership, StoreError};

/// The duty to list one platform.
#[derive(Debug)]
pub struct Duty {
    head: FollowedDocument,
    /// A number that grows with each wish for a list.
    wishes: FollowedDocument,
    /// The wishes before the latest list of this replica.
    fulfilled: AtomicU64,
    member: Arc<Membership>,
}

/// The latest report about a platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListReport {
    /// The run that has the duty.
    lister: u64,
    /// The number of lists so far, failures included.
    pub attempts: u64,
    /// The time from the beginning of the last list to the report, in milliseconds.
    took: u64,
    /// The reason why the last list failed.
    failure: Option<String>,
    /// The version of the stored device registry.
    pub registry: u64,
}

impl Duty {
    /// Shares the duty to list a platform with the other replicas.
    #[must_use]
    pub fn new(shared: &Arc<SharedPlatforms>, platform: &PlatformName) -> Self {
        Self {
            head: shared.follow(format!("{platform}/list")),
            wishes: shared.follow(format!("{platform}/wishes")),
            fulfilled: AtomicU64::new(0),
            member: Arc::clone(&shared.sharing.member),
        }
    }

    /// Returns true if this replica had the duty when the store was read last.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.report().lister == self.member.epoch().0
    }

    /// Returns true if [`Self::hold`] may return true, by what is known without a question.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let known = self.head.latest();
        let ListReport { lister, .. } = known.value();
        let is_present = |lister| self.member.present().borrow().iter().any(|epoch| epoch.0 == lister);
        known.is_read() && (lister == self.member.epoch().0 || !is_present(lister))
    }

    /// Takes the duty if no replica has it. Returns true if this replica has it, and may list now.
    ///
    /// # Errors
    /// The store does not answer, or the lease of this replica is over.
    pub async fn hold(&self) -> Result<bool, Unreachable> {
        let (own, mut holds) = (self.member.epoch().0, false);
        let take = |report: ListReport| {
            // In this order: the present replicas are known before the lease stands.
            let may_act = self.member.lease().stands();
            let is_free = !self.member.present().borrow().iter().any(|epoch| epoch.0 == report.lister);
            holds = report.lister == own || may_act && is_free;
            (holds && report.lister != own).then_some(ListReport { lister: own, ..report })
        };
        self.head.update(take).await.map_err(to_unreachable)?;
        if !self.member.lease().stands() {
            return Err(Unreachable("this replica cannot reach its store".into()));
        }
        Ok(holds)
    }

    /// Returns the latest report.
    #[must_use]
    pub fn report(&self) -> ListReport {
        self.head.latest().value()
    }

    /// Returns the document of the latest report.
    #[must_use]
    pub fn head(&self) -> FollowedDocument {
        self.head.clone()
    }

    /// Notes that a list begins, which fulfils the wishes so far.
    pub fn begin(&self) {
        self.fulfilled.store(self.wishes.latest().value(), Relaxed);
    }

    /// Reports the end of a list to the other replicas, if this one still has the duty.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn tell(
        &self,
        took: Duration,
        outcome: &Result<(), Unreachable>,
        registry: u64,
    ) -> Result<(), StoreError> {
        let (own, took) = (self.member.epoch().0, u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        let failure = outcome.as_ref().err().map(|Unreachable(why)| why.as_str().to_owned());
        let tell = |report: ListReport| {
            let ListReport { lister, attempts, .. } = report;
            let report = ListReport { lister, attempts: attempts + 1, took, failure: failure.clone(), registry };
            (lister == own).then_some(report)
        };
        self.head.update(tell).await
    }

    /// Asks the replica that has the duty for a list that begins from now on.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn wish(&self) -> Result<(), Unreachable> {
        self.wishes.update(|wishes: u64| Some(wishes + 1)).await.map_err(to_unreachable)
    }

    /// Waits until another replica wishes a list.
    pub async fn wait_for_wish(&self) {
        let mut wishes = self.wishes.clone();
        while wishes.take().value::<u64>() <= self.fulfilled.load(Relaxed) {
            wishes.wait_for_change().await;
        }
    }
}

impl ListReport {
    /// Returns the outcome of the last list.
    ///
    /// # Errors
    /// The platform could not be listed.
    pub fn outcome(&self) -> Result<(), Unreachable> {
        self.failure.clone().map_or(Ok(()), |why| Err(Unreachable(why.into())))
    }

    /// Returns the beginning of the last list, for a reader that learnt of its report first: it was
    /// stored at `since` or later.
    #[must_use]
    pub fn began(&self, since: Timestamp) -> Timestamp {
        since.minus(Duration::from_millis(self.took))
    }
}

pub(super) fn to_unreachable(error: StoreError) -> Unreachable {
    Unreachable(error.to_string().into())
}
