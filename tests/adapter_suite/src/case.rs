//! The cases: what is asked for, what goes wrong meanwhile, and how the answer is waited for.

use crate::judge::{CaseEnd, judge};
use crate::{Deed, Rig};
use cloudphone::phones::contract::DeviceId;
use serde_json::{Value, json};

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
pub enum Fault {
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
pub const FAULTS: [Fault; 15] = [
    Fault::None,
    Fault::Refuses,
    Fault::LosesCommand,
    Fault::LosesAnswer,
    Fault::CutsAnswer,
    Fault::Swallows,
    Fault::Fails,
    Fault::FailsButActs,
    Fault::Unsure,
    Fault::ActsLate,
    Fault::NeverEnds,
    Fault::CannotBeRead,
    Fault::IgnoresProxy,
    Fault::ProxyLies,
    Fault::Rotates,
];

/// The proxies of the cases.
pub(crate) const PROXY: (&str, u16) = ("203.0.113.7", 3128);

pub(crate) fn all(operations: &[Operation]) -> Vec<(Operation, Fault)> {
    operations.iter().flat_map(|operation| FAULTS.map(|fault| (*operation, fault))).collect()
}

impl Operation {
    /// The tool and its arguments.
    fn call(self, device: &DeviceId) -> (&'static str, Value) {
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
    pub(crate) fn is(self, deed: &Deed) -> bool {
        match (self, deed) {
            (Self::SetProxy | Self::SetSecretProxy, Deed::ProxySet { host, port }) => (host.as_str(), *port) == PROXY,
            (Self::ClearProxy, Deed::ProxyCleared)
            | (Self::Restart, Deed::Restarted)
            | (Self::Shutdown, Deed::Stopped)
            | (Self::Boot, Deed::Booted) => true,
            _ => false,
        }
    }
}

/// Carries out one case; `None` if the platform cannot fail so.
pub(crate) async fn carry_out(rig: &Rig, operation: Operation, fault: Fault) -> Option<CaseEnd> {
    let device = rig.double.stage(operation, fault).await?;
    let before = rig.double.deeds(&device).await.len();
    let (tool, arguments) = operation.call(&device);
    let mut told = rig.call(tool, arguments).await;
    if let Ok(task) = &told
        && operation != Operation::Session
    {
        let id = task["task_id"].clone();
        while let Ok(task) = &told
            && task["terminal"] != true
        {
            // The answer is held until the task ends, by the clock that `pass` moves.
            told = rig.call("get_task", json!({"task_id": id, "wait_seconds": 50})).await;
        }
    }
    let deeds = rig.double.deeds(&device).await.split_off(before);
    Some(judge(operation, fault, told, &deeds))
}

impl Rig {
    /// What a tool answered: its result, or its failure.
    #[expect(clippy::expect_used, reason = "a suite without answers must fail")]
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = self.http.post(&self.server.url).header("content-type", "application/json");
        let request = request.header("x-api-key", &self.key.id).header("x-api-secret", &self.key.secret);
        let answer = request.body(body.to_string()).send().await.expect("an answer").bytes().await.expect("a body");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        let value = serde_json::from_str(text).expect("JSON in the text");
        if answer["result"]["isError"] == true { Err(value) } else { Ok(value) }
    }
}
