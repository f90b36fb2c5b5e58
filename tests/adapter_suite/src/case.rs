//! The cases: the operation that a client asks for, and the fault that occurs meanwhile.

use cloudphone::phones::contract::DeviceId;
use serde_json::{Value, json};
use strum::VariantArray;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhoneDeed {
    /// Also a command to start while the phone was running.
    Booted,
    Stopped,
    Restarted,
    ProxySet {
        host: String,
        port: u16,
    },
    ProxyCleared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Operation {
    SetProxy,
    /// Named by its address, and needs a password.
    SetSecretProxy,
    ClearProxy,
    Restart,
    Shutdown,
    /// Of a phone that runs.
    Boot,
    BootStopped,
    Session,
}

pub const OPERATIONS: &[Operation] = Operation::VARIANTS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Mishap {
    None,
    Refuses,
    ActsAndRefuses,
    /// The platform or the phone takes the connection.
    SaysNothing,
    LosesCommand,
    LosesAnswer,
    /// The connection breaks in the middle of the answer.
    CutsAnswer,
    Swallows,
    Fails,
    FailsButActs,
    /// Acts, and reports that it does not know the outcome.
    Unsure,
    /// Does not act, and reports that it does not know the outcome.
    GivesUp,
    /// Reports success and shows the effect in its list. The phone was not in the wanted state.
    ShowsOnly,
    /// Some seconds after the report of success.
    ActsLate,
    NeverEnds,
    /// The platform does not act, and another phone answers in place of this one from then on.
    ChangesPlaces,
    /// The proxy is set, and accepts no connection.
    ProxyIsDead,
    CannotBeRead,
    IgnoresProxy,
    /// The proxy itself answers in place of the server.
    ProxyLies,
    /// With each request.
    Rotates,
    /// The callback listener sees the address of a forwarder alone.
    Forwarded,
    /// The phone leaves from the proxy's address without it.
    SharesProxyAddress,
    /// The phone's user makes requests leave from their former address, through another phone that
    /// has the same address.
    LeavesThroughNeighbour,
    /// An app makes requests leave from their former address. The platform shows the phone's real
    /// address.
    LeavesThroughApp,
}

pub(crate) const PROXY: (&str, u16) = ("203.0.113.7", 3128);

pub(crate) fn all(operations: &[Operation]) -> Vec<(Operation, Mishap)> {
    operations.iter().flat_map(|operation| Mishap::VARIANTS.iter().map(|fault| (*operation, *fault))).collect()
}

impl Operation {
    pub(crate) fn call(self, device: &DeviceId) -> (&'static str, Value) {
        let (host, port) = PROXY;
        let proxy = json!({"device_id": device, "scheme": "socks5", "host": host, "port": port});
        match self {
            Self::SetProxy => ("set_proxy", proxy),
            Self::SetSecretProxy => {
                let mut proxy = proxy;
                proxy["username"] = json!("user");
                proxy["password"] = json!("open-sesame");
                ("set_proxy", proxy)
            }
            Self::ClearProxy => ("clear_proxy", json!({"device_id": device})),
            Self::Restart => ("set_power", json!({"device_id": device, "action": "restart"})),
            Self::Shutdown => ("set_power", json!({"device_id": device, "action": "shutdown"})),
            Self::Boot | Self::BootStopped => ("set_power", json!({"device_id": device, "action": "boot"})),
            Self::Session => ("create_session", json!({"device_id": device})),
        }
    }

    pub(crate) fn is(self, deed: &PhoneDeed) -> bool {
        match (self, deed) {
            (Self::SetProxy | Self::SetSecretProxy, PhoneDeed::ProxySet { host, port }) => {
                (host.as_str(), *port) == PROXY
            }
            (Self::ClearProxy, PhoneDeed::ProxyCleared)
            | (Self::Restart, PhoneDeed::Restarted)
            | (Self::Shutdown, PhoneDeed::Stopped)
            | (Self::Boot | Self::BootStopped, PhoneDeed::Booted) => true,
            _ => false,
        }
    }
}
