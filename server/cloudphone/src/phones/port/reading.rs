//! A phone as one reading found it.

use crate::phones::contract::{
    DeviceCapabilities, DeviceCapability, DeviceId, DeviceSpec, DeviceState, PowerAction, Proxy, ProxyScheme,
    SessionMode,
};
use std::borrow::Cow;
use std::sync::Arc;
use toolwarrant::handler::Flag;
use toolwarrant::text::{Untrusted, Words, words};

/// Everything that one reading of a phone found.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReading {
    /// Identifier of the phone.
    pub id: DeviceId,
    /// Name given by its owner.
    pub name: Untrusted,
    /// Its state; `None` if it could not be read.
    pub state: Option<DeviceState>,
    /// The capabilities that it offers now.
    pub offers: Offers,
    /// Hardware and system.
    pub spec: Arc<DeviceSpec>,
    /// The power actions that the platform has for it, in any state.
    pub power_actions: Cow<'static, [PowerAction]>,
    /// The proxy schemes that the platform has for it, in any state.
    pub proxy_schemes: Cow<'static, [ProxyScheme]>,
    /// The proxy in force; `None` if there is no proxy or it could not be read.
    pub proxy: Option<Proxy>,
    /// The modes to which the platform can limit its own screen sessions. The server limits those
    /// of its page.
    pub session_modes: Cow<'static, [SessionMode]>,
    /// The durations of writes on it.
    pub paces: Paces,
}

impl Default for DeviceSpec {
    /// Nothing is known.
    fn default() -> Self {
        let (model, os_version, cpu_cores, memory_mb, storage_gb, screen, region) = Default::default();
        Self { model, os_version, cpu_cores, memory_mb, storage_gb, screen, region }
    }
}

/// The durations of writes on a phone; `None` means the contract's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paces {
    /// Setting and clearing the proxy.
    pub proxy: Option<Pace>,
    /// Changing the power state.
    pub power: Option<Pace>,
}

/// The duration of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The longest time from the platform's report of success until the effect shows, in seconds.
    pub settle_seconds: u32,
    /// The longest time for the whole write, in seconds.
    pub deadline_seconds: u32,
}

impl Pace {
    /// Returns the pace of a write that settles in this time. Its deadline has room for the report
    /// and the readings.
    #[must_use]
    pub fn of(settle_seconds: u32) -> Self {
        Self { settle_seconds, deadline_seconds: settle_seconds.saturating_add(90) }
    }
}

/// The flag of each capability. Clients read the reason of a flag that is false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offers {
    /// Setting and clearing the proxy.
    pub proxy: Flag,
    /// Changing the power state.
    pub power: Flag,
    /// Issuing screen sessions.
    pub session: Flag,
}

impl DeviceReading {
    /// Returns the flag of one capability.
    #[must_use]
    pub fn flag(&self, capability: DeviceCapability) -> &Flag {
        match capability {
            DeviceCapability::Proxy => &self.offers.proxy,
            DeviceCapability::Power => &self.offers.power,
            DeviceCapability::Session => &self.offers.session,
        }
    }

    /// Returns true if the flag of this capability is true.
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

    /// Returns why the state is unknown, and why each capability is not offered: one fragment per
    /// reason, in the order of the contract.
    #[must_use]
    pub fn notes(&self) -> Vec<Words> {
        let flags = DeviceCapability::ALL.iter().filter_map(|capability| {
            Some(words!["`", capability, "` is not offered: ", self.flag(*capability).refusal()?])
        });
        let flags: Vec<_> = flags.collect();
        let state = (self.state() == DeviceState::Unknown).then(|| match flags.is_empty() {
            true => "`state` is unknown: the platform could not read it; the device need not be faulty".into(),
            false => "`state` is unknown: it could not be read".into(),
        });
        state.into_iter().chain(flags).collect()
    }
}
