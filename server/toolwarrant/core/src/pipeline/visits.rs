//! Visits: requests of those who hold a pass in place of a key.

use super::refusals::overload;
use super::standing::CallAuthority;
use super::{Handlers, Pipeline};
use crate::access::Access;
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::page::PageError;
use crate::passes::{Pass, Passes};
use serde_json::json;
use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;

/// Requests of one holder in a second.
const READS_MAX: u32 = 10;
const INPUTS_MAX: u32 = 20;

/// Requests of one holder at a time: a page holds one, and sends inputs one after the other.
const AT_ONCE_MAX: usize = 4;

const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Proof that a request came from the holder of a pass whose right stood. It ends with the request.
pub struct Visit<'a> {
    pass: Arc<Pass>,
    passes: &'a Passes,
    catalogue: &'static Catalogue,
    access: &'a Access,
    clock: &'a Clock,
}

impl<H: Handlers> Pipeline<H> {
    /// Finds the pass of a token, and charges and writes the line of a page that is opened. Every
    /// cause of `unauthenticated` has the same message.
    pub fn visit<'a>(
        &'a self,
        passes: &'a Passes,
        token: Option<&str>,
        from: Option<IpAddr>,
        is_input: bool,
    ) -> Result<Visit<'a>, Failure> {
        let unknown = || {
            self.counts.unauthenticated.add(1);
            tracing::debug!("refused a request for a page: its token is missing, wrong or not in force");
            no_session(H::CATALOGUE)
        };
        let pass = token.and_then(|token| passes.find(token)).ok_or_else(unknown)?;
        let (now, from) = (self.clock.now(), self.address(from));
        let most = if is_input { INPUTS_MAX } else { READS_MAX };
        if !pass.take_turn(now, is_input, most) {
            let what = PageError::TooMany("too many requests in a second".into());
            return Err(fail(H::CATALOGUE, what));
        }
        let requests = pass.enter();
        let visit = Visit { pass, passes, catalogue: H::CATALOGUE, access: &self.access, clock: &self.clock };
        if requests > AT_ONCE_MAX {
            return Err(visit.fail(PageError::TooMany("too many requests of this session at a time".into())));
        }
        visit.check()?;
        let Some(slot) = self.audit.reserve() else { return Err(overload(H::CATALOGUE, "the audit cannot keep up")) };
        if visit.pass.open(now, from, || self.charge_budget(&visit.pass.caller, None, 1).map(drop))? {
            let event = json!({"event": "opened", "mode": visit.pass.mode()});
            visit.pass.line(&event, self.clock.latest(), from, |line| slot.write(line));
            passes.note_opened();
        }
        Ok(visit)
    }
}

impl Visit<'_> {
    #[must_use]
    pub fn pass(&self) -> &Pass {
        &self.pass
    }

    /// Ends the pass if its right has ended.
    pub fn check(&self) -> Result<(), Failure> {
        if self.pass.expires_at() <= self.clock.latest() {
            return Err(no_session(self.catalogue));
        }
        self.standing().check().map_err(|failure| match has_ended(&failure, self.catalogue) {
            true => {
                self.passes.end(&self.pass);
                if *failure.def() == *self.catalogue.roles.unauthenticated {
                    no_session(self.catalogue)
                } else {
                    failure
                }
            }
            false => failure,
        })
    }

    /// Returns when the right ends, or the server stops.
    pub async fn wait_for_end(&self) -> Failure {
        let standing = self.standing();
        loop {
            tokio::select! {
                _ = standing.wait_for_end() => {}
                () = self.clock.sleep_until(self.pass.expires_at()) => {}
                () = self.passes.wait_for_close() => return overload(self.catalogue, "the server is stopping"),
            }
            if let Err(failure) = self.check() {
                return failure;
            }
        }
    }

    #[must_use]
    pub fn fail(&self, error: PageError) -> Failure {
        fail(self.catalogue, error)
    }

    fn standing(&self) -> CallAuthority<'_> {
        standing(&self.pass, self.catalogue, self.access, self.clock)
    }
}

fn standing<'a>(
    pass: &'a Pass,
    catalogue: &'static Catalogue,
    access: &'a Access,
    clock: &'a Clock,
) -> CallAuthority<'a> {
    let Pass { caller, tool, .. } = pass;
    CallAuthority { catalogue, access, clock, caller, tool, target: Some(pass.target()) }
}

/// Without a lease, nobody knows.
fn has_ended(failure: &Failure, catalogue: &Catalogue) -> bool {
    *failure.def() != *catalogue.roles.overloaded
}

fn no_session(catalogue: &'static Catalogue) -> Failure {
    let what = "this session has ended, or its token is not whole: its time is over, its key, permission or target was \
                taken away, or the server was started again. Ask for another.";
    Failure::exactly(catalogue.roles.unauthenticated, what)
}

/// Ends passes as soon as their right ends, and writes the lines of pages that were closed, until
/// `stopped`.
pub async fn keep_passes(
    passes: Passes,
    (access, catalogue, clock): (Arc<Access>, &'static Catalogue, Clock),
    audit: AuditHandle,
    stopped: BoxFuture<'static, ()>,
) {
    let mut changes = access.changes();
    let keep = async {
        loop {
            let is_open = passes.sweep(&audit, false);
            tokio::select! {
                changed = changes.changed() => match changed {
                    Ok(()) => passes.end_all(|pass| {
                        let checked = standing(pass, catalogue, &access, &clock).check();
                        checked.is_err_and(|failure| has_ended(&failure, catalogue))
                    }),
                    // Without the sender there are no more changes, and no server.
                    Err(_) => pending().await,
                },
                () = passes.wait_for_opened(), if !is_open => {}
                () = clock.sleep_until(clock.now().plus(SWEEP_EVERY)), if is_open => {}
            }
        }
    };
    tokio::select! {
        () = keep => {}
        () = stopped => {}
    }
    passes.sweep(&audit, true);
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.pass.leave(self.clock.now());
    }
}

fn fail(catalogue: &'static Catalogue, error: PageError) -> Failure {
    let roles = &catalogue.roles;
    match error {
        PageError::NoName => Failure::plain(roles.no_route),
        PageError::Malformed(what) => Failure::exactly(roles.invalid_argument, what),
        PageError::Forbidden(what) => Failure::exactly(roles.forbidden, what),
        PageError::TooMany(what) => Failure::exactly(roles.rate_limited, what),
        PageError::Unavailable(what) => Failure::exactly(roles.upstream_unavailable, what),
    }
}
