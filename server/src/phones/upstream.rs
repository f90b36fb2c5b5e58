//! What is asked of whoever runs the phones, and what they answer. One adapter a platform; [`sim`] is the built-in one.
//!
//! An adapter translates: a vendor's words end here. The text of its errors is for the log, everything in a [`Snapshot`] is
//! for clients, so a vendor's text enters one as [`Untrusted`] or not at all. Grants, age and paging are not its concern.

pub mod sim;

use super::contract::{Command, DeviceCapabilities, DeviceCapability, DeviceId, DeviceSpec, DeviceState, PowerAction};
use super::contract::{Proxy, ProxyScheme, SessionMode, SetProxyArgs};
use std::net::IpAddr;
use std::sync::Arc;
use thiserror::Error;
use toolwarrant::{BoxFuture, Facts, Flag, Secret, Sent, TaskId, Timestamp, Untrusted};

/// A platform with phones. Every method ends within a deadline of the adapter's own.
pub trait Upstream: Send + Sync + 'static {
    /// The next phones in the order of their ids, at most `limit`; fewer only at the end. `after` need not exist any more.
    fn page<'a>(
        &'a self,
        after: Option<&'a DeviceId>,
        limit: u16,
    ) -> BoxFuture<'a, Result<Vec<Arc<Snapshot>>, Unreachable>>;

    /// Reads phones by id: one entry for each of `ids`, in their order, `None` where there is no such phone.
    fn read<'a>(&'a self, ids: &'a [DeviceId]) -> BoxFuture<'a, Result<Vec<Option<Arc<Snapshot>>>, Unreachable>>;

    /// Issues a screen session, valid for this phone and mode only.
    fn session<'a>(&'a self, id: &'a DeviceId, mode: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>>;
}

/// A platform whose phones can be changed. Every method ends within a deadline of the adapter's own.
pub trait Control: Upstream {
    /// What it can do about a request on that phone whose answer was lost.
    fn facts(&self, id: &DeviceId) -> Facts;

    /// Sends a command under that request id, unless `not_after` has passed: that is checked right before the first byte
    /// leaves. Follows no redirect and repeats nothing.
    fn send<'a>(&'a self, request: TaskId, command: &'a Command, not_after: Timestamp) -> BoxFuture<'a, Sent>;

    /// What has become of a request, by its operation where there is one; `None` if it knows of no such request.
    fn look_up<'a>(
        &'a self,
        request: TaskId,
        operation: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Sent>, Unreachable>>;

    /// The address from which a request made on the phone leaves: an ordinary one, or one sent explicitly `through` a proxy.
    fn exit_ip<'a>(
        &'a self,
        id: &'a DeviceId,
        through: Option<&'a SetProxyArgs>,
    ) -> BoxFuture<'a, Result<IpAddr, Unreachable>>;

    /// The identifier that the phone drew when it started.
    fn boot_id<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Result<String, Unreachable>>;
}

/// All that an upstream knows of one phone, as of one reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Identifier of the phone.
    pub id: DeviceId,
    /// Name given by its owner.
    pub name: Untrusted,
    /// What it was last seen doing; `None` when that could not be read.
    pub state: Option<DeviceState>,
    /// What the platform can do on it at present.
    pub offers: Offers,
    /// Hardware and system.
    pub spec: DeviceSpec,
    /// The power actions that the platform has for it, whatever its state.
    pub power_actions: Vec<PowerAction>,
    /// The proxy schemes that the platform has for it, whatever its state.
    pub proxy_schemes: Vec<ProxyScheme>,
    /// The proxy in force; `None` when there is none or it could not be read.
    pub proxy: Option<Proxy>,
}

/// Each capability, offered or refused with the reason that clients read.
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
    /// The flag of one capability. The precondition, `capabilities` and `notes` all come from here.
    #[must_use]
    pub fn flag(&self, capability: DeviceCapability) -> &Flag {
        match capability {
            DeviceCapability::Proxy => &self.offers.proxy,
            DeviceCapability::Power => &self.offers.power,
            DeviceCapability::Session => &self.offers.session,
        }
    }

    /// Whether the flag of that capability is true.
    #[must_use]
    pub fn offers(&self, capability: DeviceCapability) -> bool {
        matches!(self.flag(capability), Flag::Offered)
    }

    /// The flags as the wire shows them.
    #[must_use]
    pub fn capabilities(&self) -> DeviceCapabilities {
        DeviceCapabilities {
            proxy: self.offers(DeviceCapability::Proxy),
            power: self.offers(DeviceCapability::Power),
            session: self.offers(DeviceCapability::Session),
        }
    }

    /// The state as the wire shows it.
    #[must_use]
    pub fn state(&self) -> DeviceState {
        self.state.unwrap_or(DeviceState::Unknown)
    }

    /// Why the state is unknown and why each refused capability is: one fragment for each, in the order of the spec.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let state = (self.state() == DeviceState::Unknown)
            .then(|| "`state` is unknown: the platform could not read it; the device need not be faulty".to_owned());
        let flags = DeviceCapability::ALL.iter().filter_map(|capability| match self.flag(*capability) {
            Flag::Offered => None,
            Flag::Refused(why) => Some(format!("`{}` is not offered: {why}", capability.as_str())),
        });
        state.into_iter().chain(flags).collect()
    }
}

/// A screen session as the upstream issued it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Opens the screen.
    pub token: Secret<String>,
    /// Page that shows the screen, where the upstream has one.
    pub url: Option<String>,
    /// When the token ends, where the upstream says so.
    pub expires_at: Option<Timestamp>,
}

/// The upstream gave no answer that could be used. The text is for the log only.
#[derive(Clone, Debug, Error)]
#[error("upstream unreachable: {0}")]
pub struct Unreachable(pub String);

/// Why there is no session. The texts are for the log only.
#[derive(Clone, Debug, Error)]
pub enum SessionError {
    /// Nothing is known of the request's fate; a token that was issued is lost and expires by itself.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The upstream answered, and issued none.
    #[error("upstream refused a session: {0}")]
    Refused(String),
}
