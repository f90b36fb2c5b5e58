//! Authentication of signed requests, and storage of their nonces.

use super::refusals::{USED, overload};
use super::{Charge, Handlers, Pipeline};
use crate::access::{AccessError, Caller};
use crate::failure::Failure;
use crate::nonces::{BadNonce, BadTime};
use crate::store::StoreError;
use std::net::IpAddr;
use std::sync::Arc;
use toolwarrant_base::wording::Words;
use toolwarrant_base::words;
use toolwarrant_signing::{SKEW_SECONDS, Signature};

const BEFORE_RESTORE: &str = "this request was signed before the server's data was restored from a backup: sign it again. If that does \
                              not help, your clock is behind the server's: set it.";
const WRONG: &str = "no live secret of that key makes this signature: compare `canonical_request`, which the server has built, with \
                     what was signed, and check key and secret.";

#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    pub key_id: &'a str,
    /// In Unix seconds.
    pub timestamp: u64,
    pub nonce: &'a str,
    /// As the server built it.
    pub canonical: &'a str,
    pub signature: &'a Signature,
    pub from: Option<IpAddr>,
}

const UNKNOWN: &str = "the server does not know if it has answered this read before; sign it again later";

impl<H: Handlers> Pipeline<H> {
    /// Verifies a request, charges it, and uses its nonce, unless the budget is spent. `reads` is
    /// true if it cannot change anything.
    ///
    /// # Errors
    /// `unauthenticated`, with the same message for every key; `overloaded` if it is not known if a
    /// read was answered before.
    pub fn verify(&self, signed: &SignedRequest<'_>, reads: bool) -> Result<(Caller, Charge), Failure> {
        let SignedRequest { key_id, timestamp, nonce, canonical, signature, from } = *signed;
        self.nonces.judge(timestamp).map_err(|bad| match bad {
            BadTime::Behind(seconds) => self.refuse_signature(off_by(seconds, " s behind")),
            BadTime::Ahead(seconds) => self.refuse_signature(off_by(seconds, " s ahead of")),
            BadTime::BeforeRestore => self.refuse_signature(BEFORE_RESTORE.into()),
        })?;
        let verified = self.access.verify(key_id, canonical, signature, self.address(from), &self.clock);
        let mut caller = verified.map_err(|error| match error {
            AccessError::Unauthenticated => self.refuse_signature(WRONG.into()),
            AccessError::NoLease => self.refuse_caller(error),
        })?;
        match self.nonces.take(&caller, nonce, timestamp, reads) {
            Ok(used) => {
                caller.nonce = Some(Arc::new(used));
                Ok((caller, Charge(Ok(()))))
            }
            Err(BadNonce::Unpaid(retry)) => Ok((caller, Charge(Err(retry)))),
            Err(BadNonce::Used) => Err(self.refuse_signature(USED.into())),
            Err(BadNonce::Unknown(seconds)) => {
                Err(overload(H::CATALOGUE, UNKNOWN).with("retry_after_seconds", seconds))
            }
        }
    }

    pub fn refuse_signature(&self, what: Words) -> Failure {
        self.counts.unauthenticated.add(1);
        tracing::debug!(why = what.as_str(), "refused a signed request");
        Failure::exactly(H::CATALOGUE.roles.unauthenticated, what)
    }

    /// Stores the nonce if that is due: before the answer to every request, and before a call that
    /// changes something at once. One that is stored already comes from an earlier run.
    pub async fn keep_nonce(&self, caller: &Caller) -> Result<(), Failure> {
        let Some(nonce) = caller.nonce.as_deref().filter(|nonce| nonce.is_due()) else { return Ok(()) };
        self.tasks.keep_nonce(nonce).await.map_err(|error| match error {
            StoreError::Conflict(_) => self.refuse_signature(USED.into()),
            error => {
                tracing::error!(%error, "the nonce of a signed request could not be stored");
                overload(H::CATALOGUE, "the server cannot write at present")
            }
        })?;
        nonce.set_stored();
        Ok(())
    }
}

fn off_by(seconds: u64, way: &'static str) -> Words {
    words![
        "X-Timestamp is ",
        seconds,
        way,
        " this server's clock, and ",
        SKEW_SECONDS,
        " s are allowed: set the clock, and sign again."
    ]
}
