//! The endpoints of VMOS Cloud and VSPhone, with the names of their paths. The acts of the host and
//! of adb have names without paths.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Infos,
    UserPadList,
    Restart,
    TimingOn,
    TimingOff,
    SetProxy,
    AsyncCommand,
    TaskDetail,
    Token,
}

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) call: Call,
    pub(crate) name: &'static str,
}

const PREFIXES: [&str; 2] = ["/vcpcloud/api/padApi/", "/vsphone/api/padApi/"];

const ENDPOINTS: [Endpoint; 9] = [
    Endpoint { call: Call::Infos, name: "infos" },
    Endpoint { call: Call::UserPadList, name: "userPadList" },
    Endpoint { call: Call::Restart, name: RESTART },
    Endpoint { call: Call::TimingOn, name: "timingPadOn" },
    Endpoint { call: Call::TimingOff, name: "timingPadOff" },
    Endpoint { call: Call::SetProxy, name: "setProxy" },
    Endpoint { call: Call::AsyncCommand, name: "asyncCmd" },
    Endpoint { call: Call::TaskDetail, name: "padTaskDetail" },
    Endpoint { call: Call::Token, name: "stsTokenByPadCode" },
];

pub(crate) fn find(path: &str) -> Option<&'static Endpoint> {
    let name = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix))?;
    ENDPOINTS.iter().find(|endpoint| endpoint.name == name)
}

/// A command over adb that changes nothing.
pub(crate) const SHELL: &str = "shell";

pub(crate) const RESTART: &str = "restart";

pub(crate) const ACTS: [&str; 5] = ["start", "stop", "status", "set-proxy", "clear-proxy"];

pub(crate) fn names() -> Vec<&'static str> {
    ENDPOINTS.iter().map(|endpoint| endpoint.name).chain([SHELL]).chain(ACTS).collect()
}
