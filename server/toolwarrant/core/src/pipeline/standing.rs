//! Repeated checks of authority. A [`Caller`] proves a right when its request came. Time passes
//! until the body is complete, a batch comes to its next call, an upstream answers or a held poll
//! ends. A right that was taken away meanwhile ends at once.
//!
//! Without a change, a check costs two comparisons. With a store in PostgreSQL it also reads the
//! clock, because no answer leaves without a lease.

use super::refusals::{no_caller, not_found};
use super::{Handlers, Pipeline, permit};
use crate::access::{Access, AccessError, Caller};
use crate::catalogue::{Catalogue, ToolDef};
use crate::failure::Failure;
use crate::handler::{Around, Call};
use std::borrow::Cow;
use std::time::Duration;
use toolwarrant_base::clock::{Clock, Timestamp};

const LEASE_EVERY: Duration = Duration::from_millis(100);

impl<H: Handlers> Pipeline<H> {
    pub fn renew<'c>(&self, caller: &'c Caller) -> Result<Cow<'c, Caller>, Failure> {
        self.access.renew(caller, &self.clock).map_err(|error| self.refuse_caller(error))
    }

    pub(super) fn refuse_caller(&self, error: AccessError) -> Failure {
        if error == AccessError::Unauthenticated {
            self.counts.unauthenticated.add(1);
            tracing::debug!("refused a request: its key is missing, wrong or not in force");
        }
        no_caller(H::CATALOGUE, error)
    }
}

/// The right of a call, or of a pass that a call issued.
pub(super) struct CallAuthority<'a> {
    pub(super) catalogue: &'static Catalogue,
    pub(super) access: &'a Access,
    pub(super) clock: &'a Clock,
    pub(super) caller: &'a Caller,
    pub(super) tool: &'static ToolDef,
    pub(super) target: Option<&'a str>,
}

impl CallAuthority<'_> {
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.check_end().map(drop)
    }

    /// Returns the time at which the key ends as well.
    fn check_end(&self) -> Result<Option<Timestamp>, Failure> {
        let renewed = self.access.renew(self.caller, self.clock);
        let renewed = renewed.map_err(|error| no_caller(self.catalogue, error))?;
        // An unchanged caller was checked before.
        let Cow::Owned(caller) = renewed else { return Ok(self.caller.expires_at()) };
        permit(self.catalogue, &caller, self.tool)?;
        match (&self.tool.target, self.target) {
            (Some(def), Some(id)) if !caller.application.grants.covers(def.resource, id) => {
                Err(not_found(self.catalogue, self.tool, self.caller))
            }
            _ => Ok(caller.expires_at()),
        }
    }

    /// Returns when the right ends. The end of a lease alone does not end the wait: the answer is
    /// checked when it is ready.
    pub(super) async fn wait_for_end(&self) -> Failure {
        let mut changes = self.access.changes();
        loop {
            let expires_at = match self.check_end() {
                Ok(expires_at) => expires_at,
                Err(failure) => return failure,
            };
            tokio::select! {
                // Without the sender there are no more changes, and no server.
                changed = changes.changed() => if changed.is_err() { std::future::pending::<()>().await },
                () = async {
                    match expires_at {
                        Some(end) if self.clock.now() < end => self.clock.sleep_until(end).await,
                        // The key does not expire, or only by a clock that is ahead and does not
                        // decide. Then the answer is checked when it is ready.
                        Some(_) | None => std::future::pending().await,
                    }
                } => {}
            }
        }
    }
}

impl Call<'_> {
    fn standing(&self) -> CallAuthority<'_> {
        let Around { catalogue: _, tasks: _, access, clock, arrived: _ } = self.around;
        CallAuthority {
            catalogue: self.catalogue,
            access,
            clock,
            caller: self.caller,
            tool: self.tool,
            target: self.notes().0,
        }
    }

    pub(crate) fn still(&self) -> Result<(), Failure> {
        self.standing().check()
    }

    /// Checks the lease, whatever the rights of the caller are.
    pub(crate) fn check_lease(&self) -> Result<(), Failure> {
        self.around.access.check_lease().map_err(|error| no_caller(self.catalogue, error))
    }

    pub(crate) async fn wait_for_lease(&self) {
        while self.check_lease().is_err() {
            self.around.clock.sleep_until(self.around.clock.now().plus(LEASE_EVERY)).await;
        }
    }

    pub(crate) async fn wait_for_end(&self) -> Failure {
        self.standing().wait_for_end().await
    }
}
