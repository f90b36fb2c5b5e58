//! The port to a platform that runs phones. Each platform has an adapter; [`sim`] is the built-in one.
//!
//! An adapter translates the vendor's words into ours. A vendor's own text may enter a [`Snapshot`], which is for clients, only as
//! [`Untrusted`], and an error, which is for the log, only as [`Remark`]: each is cleaned as it is made. Why a flag is false is the
//! adapter's to word. Grants and the age of a reading are not its concern.

pub mod armcloud;
pub mod check;
pub mod guard;
pub mod platforms;
pub mod readings;
pub mod roster;
mod seen;
pub mod shell;
pub mod shown;
pub mod sim;

use super::contract::{Command, DeviceCapabilities, DeviceCapability, DeviceId, DeviceSpec, DeviceState, PowerAction};
use super::contract::{Proxy, ProxyScheme, SessionMode, SessionToken, SetProxyArgs};
use check::Finding;
pub use readings::{Exits, Through};
use roster::PlatformName;
pub use seen::{RENDERED_MAX, Seen};
use shown::Direction;
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;
use toolwarrant::{
    BoxFuture, Facts, Flag, HttpsUrl, NoHttpsUrl, Remark, Secret, Sent, TaskId, Timestamp, Untrusted, UpstreamState,
    Words, words,
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

/// All that one reading of a phone found.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Identifier of the phone.
    pub id: DeviceId,
    /// Name given by its owner.
    pub name: Untrusted,
    /// Its state; `None` if it could not be read.
    pub state: Option<DeviceState>,
    /// The capabilities that it offers at present.
    pub offers: Offers,
    /// Hardware and system.
    pub spec: Arc<DeviceSpec>,
    /// The power actions that the platform has for it, whatever its state.
    pub power_actions: Cow<'static, [PowerAction]>,
    /// The proxy schemes that the platform has for it, whatever its state.
    pub proxy_schemes: Cow<'static, [ProxyScheme]>,
    /// The proxy in force; `None` if there is none or it could not be read.
    pub proxy: Option<Proxy>,
    /// What the platform's screen sessions can be limited to.
    pub session_modes: Cow<'static, [SessionMode]>,
    /// How long writes take on it.
    pub paces: Paces,
}

/// How long writes take on a phone; `None`: as the contract says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paces {
    /// Setting and clearing the proxy.
    pub proxy: Option<Pace>,
    /// Changing the power state.
    pub power: Option<Pace>,
}

/// How long a write takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Longest time until its effect shows once the platform has reported success, in seconds.
    pub settle_seconds: u32,
    /// Longest time that it takes in all, in seconds.
    pub deadline_seconds: u32,
}

/// The flag of each capability. Clients read the reason of a refused one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offers {
    /// Setting and clearing the proxy.
    pub proxy: Flag,
    /// Changing the power state.
    pub power: Flag,
    /// Issuing screen sessions.
    pub session: Flag,
}

impl Snapshot {
    /// Returns the flag of one capability. The precondition of tools, `capabilities` and `notes` all use it.
    #[must_use]
    pub fn flag(&self, capability: DeviceCapability) -> &Flag {
        match capability {
            DeviceCapability::Proxy => &self.offers.proxy,
            DeviceCapability::Power => &self.offers.power,
            DeviceCapability::Session => &self.offers.session,
        }
    }

    /// Checks whether the flag of a capability is true.
    #[must_use]
    pub fn offers(&self, capability: DeviceCapability) -> bool {
        self.flag(capability).refusal().is_none()
    }

    /// Returns the flags as clients see them.
    #[must_use]
    pub fn capabilities(&self) -> DeviceCapabilities {
        DeviceCapabilities {
            proxy: self.offers(DeviceCapability::Proxy),
            power: self.offers(DeviceCapability::Power),
            session: self.offers(DeviceCapability::Session),
        }
    }

    /// Returns the state as clients see it.
    #[must_use]
    pub fn state(&self) -> DeviceState {
        self.state.unwrap_or(DeviceState::Unknown)
    }

    /// Returns why the state is unknown and why each refused capability is refused: one fragment for each, in the order of the
    /// contract.
    #[must_use]
    pub fn notes(&self) -> Vec<Words> {
        let state = (self.state() == DeviceState::Unknown)
            .then(|| "`state` is unknown: the platform could not read it; the device need not be faulty".into());
        let flags = DeviceCapability::ALL.iter().filter_map(|capability| {
            Some(words!["`", capability, "` is not offered: ", self.flag(*capability).refusal()?])
        });
        state.into_iter().chain(flags).collect()
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
