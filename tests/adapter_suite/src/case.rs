//! The cases: what is asked for, and what goes wrong meanwhile.

use cloudphone::phones::contract::DeviceId;
use serde_json::{Value, json};

/// What was done on a phone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhoneDeed {
    /// It was started, or it was told to and ran.
    Booted,
    /// It was stopped.
    Stopped,
    /// It was restarted.
    Restarted,
    /// It was given this proxy.
    ProxySet {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// Its proxy was taken away.
    ProxyCleared,
}

/// What a client asks for.
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

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// Nothing.
    None,
    /// The platform refuses the command, and nothing is done.
    Refuses,
    /// The command gets lost, and nothing comes back.
    LosesCommand,
    /// The command is carried out, and nothing comes back.
    LosesAnswer,
    /// The connection ends in the middle of the answer to a command that is carried out.
    CutsAnswer,
    /// Success is reported, and nothing is done.
    Swallows,
    /// A failure is reported, and nothing is done.
    Fails,
    /// A failure is reported of what is done.
    FailsButActs,
    /// The platform says that it does not know how it went, and it was done.
    Unsure,
    /// The effect comes some seconds after the report of success.
    ActsLate,
    /// The operation is never reported to have ended.
    NeverEnds,
    /// Nothing can be read on the phone.
    CannotBeRead,
    /// Requests of the phone do not follow its proxy.
    IgnoresProxy,
    /// The proxy answers in the place of whom it is to reach.
    ProxyLies,
    /// The phone leaves from another address each time.
    Rotates,
}

/// All faults.
pub const MISHAPS: [Mishap; 15] = [
    Mishap::None,
    Mishap::Refuses,
    Mishap::LosesCommand,
    Mishap::LosesAnswer,
    Mishap::CutsAnswer,
    Mishap::Swallows,
    Mishap::Fails,
    Mishap::FailsButActs,
    Mishap::Unsure,
    Mishap::ActsLate,
    Mishap::NeverEnds,
    Mishap::CannotBeRead,
    Mishap::IgnoresProxy,
    Mishap::ProxyLies,
    Mishap::Rotates,
];

/// The proxies of the cases.
pub(crate) const PROXY: (&str, u16) = ("203.0.113.7", 3128);

pub(crate) fn all(operations: &[Operation]) -> Vec<(Operation, Mishap)> {
    operations.iter().flat_map(|operation| MISHAPS.map(|fault| (*operation, fault))).collect()
}

impl Operation {
    /// The tool and its arguments.
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

    /// Checks whether a deed is what was asked for.
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
