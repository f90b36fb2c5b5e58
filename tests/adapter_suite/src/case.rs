//! The cases: the operation that a client asks for, and the fault that occurs meanwhile.

use cloudphone::phones::contract::DeviceId;
use serde_json::{Value, json};

/// An effect on a phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhoneDeed {
    /// The phone started, or got the command to start while it was running.
    Booted,
    /// The phone stopped.
    Stopped,
    /// The phone restarted.
    Restarted,
    /// The phone got this proxy.
    ProxySet {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// The phone's proxy was removed.
    ProxyCleared,
}

/// An operation that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A proxy that needs no password.
    SetProxy,
    /// A proxy that needs a password, by its address.
    SetSecretProxy,
    /// No proxy.
    ClearProxy,
    /// A restart.
    Restart,
    /// A stop.
    Shutdown,
    /// A start.
    Boot,
    /// A screen session.
    Session,
}

/// All operations.
pub const OPERATIONS: [Operation; 7] = [
    Operation::SetProxy,
    Operation::SetSecretProxy,
    Operation::ClearProxy,
    Operation::Restart,
    Operation::Shutdown,
    Operation::Boot,
    Operation::Session,
];

/// A fault of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// No fault.
    None,
    /// The platform refuses the command and does not act.
    Refuses,
    /// The platform acts, and refuses the command all the same.
    ActsAndRefuses,
    /// The platform or the phone takes the connection and says nothing. It does not act.
    SaysNothing,
    /// The command gets lost, and the platform does not answer.
    LosesCommand,
    /// The platform carries out the command and does not answer.
    LosesAnswer,
    /// The platform acts on the command, and the connection breaks in the middle of its answer.
    CutsAnswer,
    /// The platform reports success and does not act.
    Swallows,
    /// The platform reports a failure and does not act.
    Fails,
    /// The platform reports a failure, although it acted.
    FailsButActs,
    /// The platform acts, and reports that it does not know the outcome.
    Unsure,
    /// The platform does not act, and reports that it does not know the outcome.
    GivesUp,
    /// The platform reports success and its list shows the effect, but it does not act. The phone
    /// was not in the wanted state.
    ShowsOnly,
    /// The effect comes some seconds after the report of success.
    ActsLate,
    /// The platform never reports the end of the operation.
    NeverEnds,
    /// The phone cannot be read.
    CannotBeRead,
    /// The phone's requests do not go through its proxy.
    IgnoresProxy,
    /// The proxy itself answers in place of the server that it should reach.
    ProxyLies,
    /// The phone's exit address changes with each request.
    Rotates,
    /// The callback listener sees the address of a forwarder alone. The platform does not act.
    Forwarded,
    /// The phone leaves from the proxy's address without it. The platform does not act.
    SharesProxyAddress,
    /// The proxy is set, and the phone's user makes requests leave from the address that it had
    /// before, through another phone that has the same address.
    LeavesThroughNeighbour,
    /// The proxy is set, and an app makes requests leave from where they left before. The platform
    /// shows the phone's real address.
    LeavesThroughApp,
}

/// All faults, with `None`.
pub const MISHAPS: [Mishap; 23] = [
    Mishap::None,
    Mishap::Refuses,
    Mishap::ActsAndRefuses,
    Mishap::SaysNothing,
    Mishap::LosesCommand,
    Mishap::LosesAnswer,
    Mishap::CutsAnswer,
    Mishap::Swallows,
    Mishap::Fails,
    Mishap::FailsButActs,
    Mishap::Unsure,
    Mishap::GivesUp,
    Mishap::ShowsOnly,
    Mishap::ActsLate,
    Mishap::NeverEnds,
    Mishap::CannotBeRead,
    Mishap::IgnoresProxy,
    Mishap::ProxyLies,
    Mishap::Rotates,
    Mishap::Forwarded,
    Mishap::SharesProxyAddress,
    Mishap::LeavesThroughNeighbour,
    Mishap::LeavesThroughApp,
];

/// The proxies of the cases.
pub(crate) const PROXY: (&str, u16) = ("203.0.113.7", 3128);

pub(crate) fn all(operations: &[Operation]) -> Vec<(Operation, Mishap)> {
    operations.iter().flat_map(|operation| MISHAPS.map(|fault| (*operation, fault))).collect()
}

impl Operation {
    /// Returns the tool and its arguments.
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
            Self::Boot => ("set_power", json!({"device_id": device, "action": "boot"})),
            Self::Session => ("create_session", json!({"device_id": device})),
        }
    }

    /// Returns true if this operation asks for `deed`.
    pub(crate) fn is(self, deed: &PhoneDeed) -> bool {
        match (self, deed) {
            (Self::SetProxy | Self::SetSecretProxy, PhoneDeed::ProxySet { host, port }) => {
                (host.as_str(), *port) == PROXY
            }
            (Self::ClearProxy, PhoneDeed::ProxyCleared)
            | (Self::Restart, PhoneDeed::Restarted)
            | (Self::Shutdown, PhoneDeed::Stopped)
            | (Self::Boot, PhoneDeed::Booted) => true,
            _ => false,
        }
    }
}
