//! Visits: requests of those who hold a pass in place of a key.

use super::refusals::{no_caller, overload};
use super::standing::Standing;
use super::{Handlers, Pipeline};
use crate::access::{Access, AccessError};
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::page::PageError;
use crate::passes::{Pass, Passes};
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use toolwarrant_base::clock::Clock;

/// Requests of one holder in a second.
const READS_MAX: u32 = 10;
const INPUTS_MAX: u32 = 20;

/// Proof that a request came from the holder of a pass whose right stood. It ends with the request.
pub struct Visit<'a> {
    pass: Arc<Pass>,
    passes: &'a Passes,
    catalogue: &'static Catalogue,
    access: &'a Access,
    clock: &'a Clock,
}

impl<H: Handlers> Pipeline<H> {
    /// Finds the pass of a token, and writes the line of a page that is opened. Every cause of
    /// `unauthenticated` has the same message.
    pub fn visit<'a>(
        &'a self,
        passes: &'a Passes,
        token: Option<&str>,
        from: Option<IpAddr>,
        is_input: bool,
    ) -> Result<Visit<'a>, Failure> {
        let unknown = || self.refuse_caller(AccessError::Unauthenticated);
        let pass = token.and_then(|token| passes.find(token)).ok_or_else(unknown)?;
        let (now, from) = (self.clock.now(), self.address(from));
        let most = if is_input { INPUTS_MAX } else { READS_MAX };
        if !pass.take_turn(now, is_input, most) {
            let what = PageError::TooMany("too many requests in a second".into());
            return Err(fail(H::CATALOGUE, what));
        }
        pass.enter();
        let visit = Visit { pass, passes, catalogue: H::CATALOGUE, access: &self.access, clock: &self.clock };
        visit.check()?;
        let Some(slot) = self.audit.reserve() else { return Err(overload(H::CATALOGUE, "the audit cannot keep up")) };
        if visit.pass.open(now, from) {
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
        let checked = match self.clock.latest() < self.pass.expires_at() {
            true => self.standing().check(),
            false => Err(no_caller(self.catalogue, AccessError::Unauthenticated)),
        };
        checked.inspect_err(|failure| {
            // Without a lease, nobody knows.
            if *failure.def() != *self.catalogue.roles.overloaded {
                self.passes.end(&self.pass);
            }
        })
    }

    pub async fn wait_for_end(&self) -> Failure {
        let standing = self.standing();
        loop {
            tokio::select! {
                _ = standing.wait_for_end() => {}
                () = self.clock.sleep_until(self.pass.expires_at()) => {}
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

    fn standing(&self) -> Standing<'_> {
        let Self { pass, passes: _, catalogue, access, clock } = self;
        let Pass { caller, tool, .. } = &**pass;
        Standing { catalogue, access, clock, caller, tool, target: Some(pass.target()) }
    }
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
