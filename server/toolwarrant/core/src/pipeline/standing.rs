//! Repeated checks of authority. A [`Caller`] proves a right at the time when its request came.
//! Time passes until the body is complete, a batch comes to its next call, an upstream answers or a
//! held poll ends. A right that was taken away meanwhile ends at once.
//!
//! While no application or key changes, another check costs two comparisons.

use super::refusals::not_found;
use super::{Handlers, Pipeline, permit};
use crate::access::Caller;
use crate::failure::Failure;
use crate::handler::Call;
use std::borrow::Cow;

impl<H: Handlers> Pipeline<H> {
    /// Returns the caller with its current rights.
    ///
    /// # Errors
    /// `unauthenticated` if its key or secret has ended.
    pub fn renew<'c>(&self, caller: &'c Caller) -> Result<Cow<'c, Caller>, Failure> {
        self.access.renew(caller, &self.clock).map_err(|_| {
            self.counts.unauthenticated.add(1);
            Failure::plain(H::CATALOGUE.roles.unauthenticated)
        })
    }
}

impl Call<'_> {
    /// Checks that the caller may still make this call.
    ///
    /// # Errors
    /// `unauthenticated`, `forbidden` or `not_found`, like a new call.
    pub(crate) fn still(&self) -> Result<(), Failure> {
        let renewed = self.around.access.renew(self.caller, self.around.clock);
        let renewed = renewed.map_err(|_| Failure::plain(self.catalogue.roles.unauthenticated))?;
        // An unchanged caller was checked before.
        let Cow::Owned(caller) = renewed else { return Ok(()) };
        permit(self.catalogue, &caller, self.tool)?;
        match (&self.tool.target, self.notes().0) {
            (Some(def), Some(id)) if !caller.application.grants.covers(def.resource, id) => Err(not_found(self)),
            _ => Ok(()),
        }
    }

    /// Waits until the caller may no longer make this call, and returns the failure.
    pub(crate) async fn wait_for_end(&self) -> Failure {
        let mut changes = self.around.access.changes();
        let expires_at = self.caller.expires_at();
        loop {
            if let Err(failure) = self.still() {
                return failure;
            }
            tokio::select! {
                // Without the sender there are no more changes, and no server.
                changed = changes.changed() => if changed.is_err() { std::future::pending::<()>().await },
                () = async {
                    match expires_at {
                        Some(end) if self.around.clock.now() < end => self.around.clock.sleep_until(end).await,
                        // The key does not expire, or it has expired only by a clock that is ahead
                        // and does not decide. Then the answer is checked when it is ready.
                        Some(_) | None => std::future::pending().await,
                    }
                } => {}
            }
        }
    }
}
