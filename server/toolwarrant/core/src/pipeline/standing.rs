//! Authority judged again. A [`Caller`] proves what held when its request came, and time passes until the body is there, a batch comes
//! to its next call, an upstream answers or a held poll ends. What was taken away meanwhile is gone at once.
//!
//! While no application or key changes, to ask again costs two comparisons.

use super::refusals::not_found;
use super::{Handlers, Pipeline, permit};
use crate::access::Caller;
use crate::failure::Failure;
use crate::handler::Call;
use std::borrow::Cow;

impl<H: Handlers> Pipeline<H> {
    /// The caller, with what it may do by now.
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
    /// `unauthenticated`, `forbidden` or `not_found`, as at a new call.
    pub(crate) fn still(&self) -> Result<(), Failure> {
        let renewed = self.around.access.renew(self.caller, self.around.clock);
        let renewed = renewed.map_err(|_| Failure::plain(self.catalogue.roles.unauthenticated))?;
        // What has not changed was checked before.
        let Cow::Owned(caller) = renewed else { return Ok(()) };
        permit(self.catalogue, &caller, self.tool)?;
        match (&self.tool.target, self.noted().0) {
            (Some(def), Some(id)) if !caller.application.grants.covers(def.resource, id) => Err(not_found(self)),
            _ => Ok(()),
        }
    }

    /// Waits until the caller may no longer make this call, and says why.
    pub(crate) async fn ended(&self) -> Failure {
        let mut changes = self.around.access.changes();
        let expires_at = self.caller.expires_at();
        loop {
            if let Err(failure) = self.still() {
                return failure;
            }
            tokio::select! {
                // Without its sender there are no more changes, and no server.
                changed = changes.changed() => if changed.is_err() { std::future::pending::<()>().await },
                () = async {
                    match expires_at {
                        Some(end) if self.around.clock.now() < end => self.around.clock.sleep_until(end).await,
                        // Without an end, or past it by a clock that was ahead and does not decide: then the answer is judged.
                        Some(_) | None => std::future::pending().await,
                    }
                } => {}
            }
        }
    }
}
