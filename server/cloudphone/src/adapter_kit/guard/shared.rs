//! The state that the guards of several replicas share: the minute of an account, and the refusal
//! of its credentials.
//!
//! Starts within any minute are an allowance of [`Budgets`]. Each repeat of refused credentials
//! brings the account nearer to being locked. So every replica learns of a refusal, and after the
//! pause only the replica that lists the platform tries again, or one that an operator asks.

use super::call::Withheld;
use super::circuit::Denial;
use crate::adapter_kit::duty::Duty;
use crate::adapter_kit::shared::{FollowedDocument, SharedPlatforms};
use crate::phones::port::PlatformName;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use toolwarrant::sharing::{Budgets, RetryAfter, Shortage, StoreError, Window};
use toolwarrant::{Clock, Timestamp};

/// The connection of a guard to those of other replicas.
#[derive(Debug)]
pub(super) struct SharedGuard {
    budgets: Arc<Budgets>,
    /// The name of the budget of starts.
    key: String,
    minute: Arc<Window>,
    denial: FollowedDocument,
    duty: Arc<Duty>,
    /// Wakes the sharing of refusals after a refusal, or after its end.
    pub(super) news: Notify,
}

/// The stored form of a refusal of the credentials.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredDenial(pub(super) Option<Denial>);

/// The longest time from the payment to the start. It is a part of what clocks may differ by.
const FRESH: Duration = Duration::from_millis(100);

/// The pause before the next question if the store does not answer.
const PAUSE: Duration = Duration::from_millis(250);

impl SharedGuard {
    pub(super) fn new(
        shared: &Arc<SharedPlatforms>,
        platform: &PlatformName,
        duty: Arc<Duty>,
        per_minute: u32,
    ) -> Self {
        Self {
            budgets: Arc::clone(&shared.sharing.budgets),
            key: format!("platform/{platform}"),
            minute: Arc::new(Window::new(per_minute)),
            denial: shared.follow(format!("{platform}/denial")),
            duty,
            news: Notify::new(),
        }
    }

    /// Returns true if this replica may test if the platform takes the credentials again.
    pub(super) fn may_try(&self) -> bool {
        self.duty.is_held()
    }

    /// Follows the refusal of the credentials.
    pub(super) fn follow(&self) -> FollowedDocument {
        self.denial.clone()
    }

    /// Stores that the platform refuses the credentials on this replica, or takes them again.
    /// `refuted` is the end of the pause of the refusal that a trial has refuted.
    ///
    /// # Errors
    /// The store does not answer.
    pub(super) async fn tell(&self, own: &Option<Denial>, refuted: Timestamp) -> Result<(), StoreError> {
        let tell = |StoredDenial(stored)| {
            let is_later = match (&stored, own) {
                (Some(stored), Some(own)) => own.until > stored.until,
                // A later refusal stays.
                (Some(stored), None) => stored.until <= refuted,
                (None, own) => own.is_some(),
            };
            is_later.then(|| StoredDenial(own.clone()))
        };
        self.denial.update(tell).await
    }

    /// Pays for a start, and returns the time; `None` if the call must look at its turn again
    /// first. A start that is not used counts, too.
    ///
    /// # Errors
    /// The minute has no room before `deadline`.
    pub(super) async fn pay(&self, deadline: Timestamp, clock: &Clock) -> Result<Option<Timestamp>, Withheld> {
        let asked = self.budgets.admit_to(&self.key, &self.minute, None, 1);
        let again = match clock.before(deadline, asked).await {
            Some(Ok(_)) => return Ok(Some(clock.now())),
            Some(Err(Shortage::Spent(RetryAfter { seconds }))) => clock.now().plus(Duration::from_secs(seconds)),
            Some(Err(Shortage::Unknown)) => deadline.min(clock.now().plus(PAUSE)),
            None => deadline,
        };
        if again > deadline {
            return Err(Withheld::Crowded);
        }
        clock.sleep_until(again).await;
        Ok(None)
    }
}

/// Returns true if a start that was paid for at that time may be used.
pub(super) fn is_fresh(paid_at: Timestamp, now: Timestamp) -> bool {
    now.since(paid_at) <= FRESH
}
