//! The port to a platform that runs phones. Each platform has an adapter; [`simulator`](crate::platforms::simulator) is the built-in one.
//!
//! An adapter translates the vendor's words into ours. A vendor's own text may enter a [`Snapshot`], which is for clients, only as
//! [`Untrusted`], and an error, which is for the log, only as [`Remark`]: each is cleaned as it is made. Why a flag is false is the
//! adapter's to word. Grants and the age of a reading are not its concern.

mod exits;
mod platform_name;
mod seen;
mod snapshot;

pub use exits::{Exits, Through};
pub use platform_name::{NoPlatformName, PlatformName};
pub use seen::{RENDERED_MAX, Seen};
pub use snapshot::{Offers, Pace, Paces, Snapshot};

use super::contract::{Command, DeviceId, SessionMode, SessionToken, SetProxyArgs};
use serde::Serialize;
use std::sync::Arc;
use thiserror::Error;
use toolwarrant::{
    BoxFuture, Facts, HttpsUrl, NoHttpsUrl, Remark, Secret, Sent, TaskId, Timestamp, UpstreamState, Words,
};

/// Gets phones piece by piece, for as long as the call takes. It must not call the adapter, which may hold a lock meanwhile.
pub type See<'a> = &'a mut dyn FnMut(&[&Arc<Seen>]);

/// What a reading of one phone found; `None` where there is no such phone.
pub type Found = Result<Option<Arc<Seen>>, Unreachable>;

/// Reads the phones of a platform. What is not async answers from memory; for all else the adapter sets a deadline.
pub trait Upstream: Send + Sync + 'static {
    /// Shows the next phones in the order of their ids: `limit` phones, or fewer at the end. `after` need not exist any more.
    ///
    /// # Errors
    /// The platform could not be reached; then nothing was shown.
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable>;

    /// Shows the phones that there are among these ids, in the order of `ids`, as [`Self::page`] shows them.
    ///
    /// # Errors
    /// The platform could not be reached; then nothing was shown.
    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable>;

    /// Returns what memory has of one phone, so that it need not be read anew. Default: nothing.
    fn at_hand(&self, _: &DeviceId) -> AtHand {
        AtHand::Nothing
    }

    /// Reads one phone anew, for a precondition. A phone that is known and cannot be read has no state, and its flags are
    /// [`Flag::Unreachable`] where they were true. Default: as a list shows it, which is right where lists are never old.
    fn read_anew<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Found> {
        Box::pin(async move { Ok(self.found(&[id.as_str()])?.pop()) })
    }

    /// Returns what [`Self::page`] shows.
    ///
    /// # Errors
    /// The platform could not be reached.
    fn listed(&self, after: Option<&DeviceId>, limit: u16) -> Result<Vec<Arc<Seen>>, Unreachable> {
        let mut listed = Vec::new();
        self.page(after, limit, &mut |phones| listed.extend(phones.iter().copied().cloned()))?;
        Ok(listed)
    }

    /// Returns what [`Self::read`] shows.
    ///
    /// # Errors
    /// The platform could not be reached.
    fn found(&self, ids: &[&str]) -> Result<Vec<Arc<Seen>>, Unreachable> {
        let mut found = Vec::new();
        self.read(ids, &mut |phones| found.extend(phones.iter().copied().cloned()))?;
        Ok(found)
    }

    /// Returns the platforms whose phones are in no list, because they were never read. Default: none.
    fn unread(&self) -> Vec<PlatformName> {
        Vec::new()
    }

    /// Returns what of a proxy this phone's platform has no words for, such as a character in a password: a fragment for its client.
    /// Default: nothing.
    fn inexpressible(&self, _: &SetProxyArgs) -> Option<Words> {
        None
    }

    /// Issues a screen session, valid for this phone and mode only.
    fn session<'a>(&'a self, id: &'a DeviceId, mode: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>>;
}

/// What memory has of a phone.
#[derive(Clone, Debug)]
pub enum AtHand {
    /// This is how it is at this moment. Of an adapter whose lists are never old.
    Now(Found),
    /// This is how it was in the reading that began then.
    Then(Arc<Seen>, Timestamp),
    /// Nothing.
    Nothing,
}

/// Changes the phones of a platform. The adapter sets a deadline for every method.
pub trait Control: Upstream {
    /// Returns what holds of a command on this phone: what the platform can do if its answer is lost, and what a reading can show. Asked
    /// anew each time that it matters.
    fn facts(&self, id: &DeviceId, command: &Command) -> Facts;

    /// Sends a command under this request id. Sends nothing if `not_after` has passed, which is checked right before the first byte
    /// leaves. Follows no redirect and repeats nothing.
    fn send<'a>(&'a self, request: TaskId, command: &'a Command, not_after: Timestamp) -> BoxFuture<'a, Sent>;

    /// Asks what became of a request on this phone, by its operation if there is one. Returns `None` if the platform knows no such
    /// request.
    fn look_up<'a>(
        &'a self,
        id: &'a DeviceId,
        request: TaskId,
        operation: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Sent>, Unreachable>>;

    /// Makes an ordinary request on the phone, and one explicitly through `proxy` where that can be had. Returns the addresses that they
    /// were seen to come from.
    fn exits<'a>(
        &'a self,
        id: &'a DeviceId,
        proxy: Option<&'a SetProxyArgs>,
    ) -> BoxFuture<'a, Result<Exits, Unreachable>>;

    /// Reads what changes at each start of the phone, and at no other time. A platform that can replace a phone under its id ends it with `@`
    /// and its own name of what was read: readings of two phones show no start.
    fn boot_id<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Result<String, Unreachable>>;

    /// Tries the account, such as credentials and clock, for `platform check`. Changes nothing. Default: there is none.
    fn account(&self) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(async { Vec::new() })
    }

    /// Records that a reading was seen to follow the effect of a command on this phone, there and back. Default: nothing depends on it.
    fn record<'a>(&'a self, _: Direction, _: &'a DeviceId) -> BoxFuture<'a, Result<(), Unreachable>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns what a monitor shows of the platform that an operator has given this name. Reads memory alone. Default: it is always there.
    fn state(&self, name: &PlatformName) -> UpstreamState {
        let (name, calls) = (name.to_string(), Vec::new());
        let (age_seconds, targets, waiting, refused) = (Some(0), 0, 0, 0);
        UpstreamState { name, kind: "built-in", reachable: true, age_seconds, targets, calls, waiting, refused }
    }
}

/// One step of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub step: &'static str,
    /// Whether it is as it should be.
    pub sound: bool,
    /// What was found.
    pub found: String,
    /// What to do about it; empty where it is sound.
    pub remedy: &'static str,
}

impl Finding {
    /// A step that is as it should be.
    #[must_use]
    pub fn sound(step: &'static str, found: impl Into<String>) -> Self {
        Self { step, sound: true, found: found.into(), remedy: "" }
    }

    /// A step that is not.
    #[must_use]
    pub fn faulty(step: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { step, sound: false, found: found.into(), remedy }
    }
}

/// A kind of reading that has to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The exit address followed a proxy there and back.
    Exit,
    /// What is read of a start changed at a restart.
    Start,
}

impl Command {
    /// Returns the phone that the command is about.
    #[must_use]
    pub fn device(&self) -> &DeviceId {
        match self {
            Self::SetProxy(args) => &args.device_id,
            Self::ClearProxy(args) => &args.device_id,
            Self::SetPower(args) => &args.device_id,
        }
    }
}

/// A screen session as the upstream issued it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Opens the screen.
    pub token: Secret<SessionToken>,
    /// Page that shows the screen, if the upstream has one.
    pub url: Option<HttpsUrl>,
    /// When the token expires, if the upstream says so.
    pub expires_at: Option<Timestamp>,
}

impl Session {
    /// Reads the address of a page as the upstream gave it. What is no [`HttpsUrl`] is left out, and the log says so without quoting it.
    #[must_use]
    pub fn page(text: &str) -> Option<HttpsUrl> {
        let warn = |error: &NoHttpsUrl| tracing::warn!(%error, "a screen session comes without its page");
        text.parse().inspect_err(warn).ok()
    }
}

/// The upstream gave no usable answer. The text is for the log only.
#[derive(Clone, Debug, Error)]
#[error("upstream unreachable: {}", .0.as_str())]
pub struct Unreachable(pub Remark);

/// Why no session was issued. The texts are for the log only.
#[derive(Clone, Debug, Error)]
pub enum SessionError {
    /// The outcome is unknown. If a token was issued, it is lost and expires by itself.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The upstream answered without issuing a session.
    #[error("upstream refused a session: {}", .0.as_str())]
    Refused(Remark),
}
