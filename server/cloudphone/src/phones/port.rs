//! The port to a platform that runs phones. Each platform has an adapter.
//!
//! An adapter translates the vendor's terms into those of the contract. A vendor's own text may
//! enter a [`DeviceReading`], which is for clients, only as `Untrusted`. It may enter an error,
//! which is for the log, only as [`Remark`]. Both types clean the text when they are created. The
//! adapter words the reason for a flag that is false. It does not deal with grants or with the age
//! of a reading.

#![warn(missing_docs)]

mod exits;
mod platform_name;
mod reading;
mod screen;
mod snapshot;
mod start;
mod unreachable;

pub use exits::{Exits, NOTHING_ARRIVED, OtherExits, Through};
pub use platform_name::{NoPlatformName, PlatformName};
pub use reading::{DeviceReading, Offers, Pace, Paces};
pub use screen::{
    ELEMENTS_MAX, OpenTarget, Point, Screen, ScreenError, ScreenInput, ScreenKey, Still, StillSize, Typed,
};
pub use snapshot::{DeviceSnapshot, RENDERED_MAX};
pub use start::PhoneStart;
pub use unreachable::Unreachable;

use super::contract::{Command, DeviceId, PowerAction, SessionMode, SessionToken, SetProxyArgs};
use async_trait::async_trait;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use toolwarrant::Timestamp;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Sent, TaskId};
use toolwarrant::text::{Remark, Secret, WebUrl, Words};

/// Receives phones in batches, only during the call. It must not call the adapter, which may hold a
/// lock.
pub type See<'a> = &'a mut dyn FnMut(&[&Arc<DeviceSnapshot>]);

/// The result of reading one phone; `None` if there is no such phone.
pub type Found = Result<Option<Arc<DeviceSnapshot>>, Unreachable>;

/// An adapter: everything that a platform is asked for.
pub trait Platform: ReadPort + WritePort + CheckPort {}

impl<P: ReadPort + WritePort + CheckPort> Platform for P {}

/// Reads the phones of a platform. Methods that are not async answer from memory. The adapter sets
/// a deadline for the others.
#[async_trait]
pub trait ReadPort: Send + Sync + 'static {
    /// Shows the next phones in the order of their ids: `limit` phones, or fewer at the end. The
    /// phone `after` may have disappeared.
    ///
    /// # Errors
    /// The platform could not be reached. No phone was shown.
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable>;

    /// Shows the phones that exist among these ids, in the order of `ids`.
    ///
    /// # Errors
    /// The platform could not be reached. No phone was shown.
    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable>;

    /// Returns what memory holds about one phone, to avoid another reading. Default: nothing.
    fn at_hand(&self, _: &DeviceId) -> AtHand {
        AtHand::Nothing
    }

    /// Reads one phone again, for a precondition. A phone that is known and cannot be read has no
    /// state, and its true flags become `Flag::Unreachable`. Default: the phone as a list shows
    /// it, for adapters whose lists are never old.
    async fn read_anew(&self, id: &DeviceId) -> Found {
        Ok(self.find_all(&[id.as_str()])?.pop())
    }

    /// Returns the phones that [`Self::page`] shows.
    ///
    /// # Errors
    /// As those of [`Self::page`].
    fn list_page(&self, after: Option<&DeviceId>, limit: u16) -> Result<Vec<Arc<DeviceSnapshot>>, Unreachable> {
        let mut listed = Vec::new();
        self.page(after, limit, &mut |phones| listed.extend(phones.iter().copied().cloned()))?;
        Ok(listed)
    }

    /// Returns the phones that [`Self::read`] shows.
    ///
    /// # Errors
    /// The platform could not be reached.
    fn find_all(&self, ids: &[&str]) -> Result<Vec<Arc<DeviceSnapshot>>, Unreachable> {
        let mut found = Vec::new();
        self.read(ids, &mut |phones| found.extend(phones.iter().copied().cloned()))?;
        Ok(found)
    }

    /// Returns true if a phone had this id and has left the lists. Default: false, for adapters
    /// whose phones never leave.
    fn has_left(&self, _: &DeviceId) -> bool {
        false
    }

    /// Returns true if lists have no phone because the platform was never read. Default: false, for
    /// adapters that know their phones from the start.
    fn is_unread(&self) -> bool {
        false
    }

    /// Returns advice for a platform that stays unread, or has no phone. Default: `None`, if time
    /// alone helps.
    fn remedy(&self) -> Option<&'static str> {
        None
    }

    /// Returns the time until the platform of this phone can be called again, if a pause is known.
    /// Default: `None`, for adapters that never pause.
    fn retry_after(&self, _: &DeviceId) -> Option<Duration> {
        None
    }
}

/// The knowledge of a phone in memory.
#[derive(Clone, Debug)]
pub enum AtHand {
    /// The phone as it is now, for adapters whose lists are never old.
    Now(Found),
    /// The phone as found by the reading that began at this time.
    Then(Arc<DeviceSnapshot>, Timestamp),
    /// Nothing.
    Nothing,
}

/// Changes the phones of a platform, and takes the readings that verify a change. The adapter sets
/// a deadline for every async method.
#[async_trait]
pub trait WritePort: Send + Sync + 'static {
    /// Returns the part of a proxy that the platform cannot express, such as a character in a
    /// password. It is a fragment for the client. Default: `None`.
    fn inexpressible(&self, _: &SetProxyArgs) -> Option<Words> {
        None
    }

    /// Returns the pictures and the input of this phone, if this server shows them on a page of its
    /// own. Default: `None`, for platforms that issue sessions themselves or have no screens.
    fn screen(&self, _: &DeviceId) -> Option<&dyn Screen> {
        None
    }

    /// Issues a screen session of the platform, which is valid for this phone and mode only. It is
    /// asked for phones without [`Self::screen`], and for all if this server has no page. Default:
    /// refuses, for platforms that issue none.
    async fn session(&self, _: &DeviceId, _: SessionMode) -> Result<Session, SessionError> {
        Err(SessionError::Refused("this platform issues no sessions".into()))
    }

    /// Returns what the platform can do if the answer to this write is lost, and what
    /// a reading can prove. The engine asks again each time that it matters.
    fn facts(&self, write: &PhoneWrite) -> Facts;

    /// Sends a command under this request id. Calls [`Leave::confirm`] right before the first byte
    /// leaves, and then sends without any other wait. Does not follow redirects and does not repeat
    /// the request.
    async fn send(&self, request: TaskId, command: &Command, leave: Leave) -> Sent;

    /// Asks the platform for the outcome of a task's request on this phone, by its operation if
    /// there is one. Returns `None` if the platform does not know the request.
    async fn look_up(&self, id: &DeviceId, task: TaskId, operation: Option<&str>) -> Result<Option<Sent>, Unreachable>;

    /// Makes an ordinary request on the phone, and requests explicitly through `proxy` if possible.
    /// Returns the addresses from which the requests were seen to come.
    async fn exits(&self, id: &DeviceId, proxy: Option<&SetProxyArgs>) -> Result<Exits, Unreachable>;

    /// Reads the latest start of the phone.
    async fn boot_id(&self, id: &DeviceId) -> Result<PhoneStart, Unreachable>;

    /// Notes that the value of [`Self::boot_id`] was seen to change after a restart of this phone.
    /// `on` is the platform's own name of the phone. Default: does nothing, for adapters whose
    /// [`Self::facts`] do not depend on it.
    async fn note_restart(&self, _: &DeviceId, _on: &str) -> Result<(), Unreachable> {
        Ok(())
    }
}

/// Answers the operator: `platform check`, `platform list` and the monitor. The adapter sets a
/// deadline for every async method.
#[async_trait]
pub trait CheckPort: Send + Sync + 'static {
    /// Returns the state for a monitor. Reads memory only.
    fn state(&self, name: &PlatformName) -> UpstreamState;

    /// Tests the account, such as credentials and clock, without any change. Default: no step.
    async fn account(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Returns the phones that are listed and not served, each with its reason. Reads memory only.
    /// Default: no step.
    fn find_unserved(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Judges the addresses from which ordinary requests of different phones were seen to come.
    /// Default: they are the phones' own, for platforms where nothing can stand in front of the
    /// observer.
    ///
    /// # Errors
    /// The reason that no such address is evidence.
    fn judge_addresses(&self, _seen: &[IpAddr]) -> Result<(), NoAddress> {
        Ok(())
    }

    /// Reads the address of the phone without a proxy again, which then counts as its own. Default:
    /// does nothing, for adapters that store no addresses.
    async fn renew_address(&self, _: &DeviceId) -> Result<(), Unreachable> {
        Ok(())
    }

    /// Records that a reading followed the effect of a command on this phone in both directions.
    /// Default: does nothing, for adapters whose [`WritePort::facts`] do not depend on it.
    async fn record(&self, _: Direction, _: &DeviceId) -> Result<(), Unreachable> {
        Ok(())
    }

    /// Withdraws what [`Self::record`] recorded, because a reading on this phone did not follow a
    /// command. Default: does nothing.
    async fn withdraw(&self, _: Direction, _: &DeviceId) -> Result<(), Unreachable> {
        Ok(())
    }
}

/// The reason that the addresses of phones are no evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoAddress {
    /// The operator has not set up a callback listener.
    #[error("this server has no callback listener")]
    NoListener,
    /// An address is private or loopback.
    #[error("a private address, although phones reach the callback listener at a public one")]
    Private,
    /// Two phones have the same address.
    #[error("one address for both")]
    Shared,
}

/// One step of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The name of the step.
    pub step: &'static str,
    /// True if the result is as it should be.
    pub sound: bool,
    /// The result.
    pub found: String,
    /// The remedy; empty if the result is sound.
    pub remedy: &'static str,
}

impl Finding {
    /// Makes a step whose result is as it should be.
    #[must_use]
    pub fn sound(step: &'static str, found: impl Into<String>) -> Self {
        Self { step, sound: true, found: found.into(), remedy: "" }
    }

    /// Makes a step of a result that is as it should be, or is not.
    #[must_use]
    pub fn of<E: ToString>(step: &'static str, found: Result<String, E>, remedy: &'static str) -> Self {
        found.map_or_else(|error| Self::faulty(step, error.to_string(), remedy), |found| Self::sound(step, found))
    }

    /// Makes a step whose result is not as it should be.
    #[must_use]
    pub fn faulty(step: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { step, sound: false, found: found.into(), remedy }
    }
}

/// A kind of reading to be proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The exit address followed a proxy that was set and cleared.
    Exit,
    /// The value that is read for a start changed at a restart.
    Start,
}

/// A write on a phone.
#[derive(Clone, Debug)]
pub enum PhoneWrite {
    /// A command that can be sent.
    Command(Command),
    /// A write of an earlier contract. It is never sent again, and only a restart is verified.
    Unread {
        /// The tool that was called.
        tool: String,
        /// The phone.
        device: DeviceId,
        /// True if a start proves the effect.
        is_restart: bool,
    },
}

impl PhoneWrite {
    /// Returns the phone that the write is about.
    #[must_use]
    pub fn device(&self) -> &DeviceId {
        match self {
            Self::Command(command) => command.device(),
            Self::Unread { device, .. } => device,
        }
    }

    /// Returns true for a restart.
    #[must_use]
    pub fn is_restart(&self) -> bool {
        match self {
            Self::Command(Command::SetPower(args)) => args.action == PowerAction::Restart,
            Self::Command(Command::SetProxy(_) | Command::ClearProxy(_)) => false,
            Self::Unread { is_restart, .. } => *is_restart,
        }
    }
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

/// A screen session as the platform issued it.
#[derive(Clone, Debug)]
pub struct Session {
    /// The token that opens the screen.
    pub token: Secret<SessionToken>,
    /// The page that shows the screen, if the platform has one.
    pub url: Option<Secret<WebUrl>>,
    /// The time at which the token expires, if the platform reports it.
    pub expires_at: Option<Timestamp>,
}

/// The reason that no session was issued. The texts are for the log only.
#[derive(Clone, Debug, Error)]
pub enum SessionError {
    /// The outcome is unknown. If a token was issued, it is lost and expires by itself.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The platform answered without issuing a session.
    #[error("upstream refused a session: {}", .0.as_str())]
    Refused(Remark),
}
