//! The endpoints, with the paths that each has on VMOS Cloud and VSPhone, and on ARMCloud. Other
//! paths are answered with 404. The acts of the host and of adb have names without paths.

/// A call of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Infos,
    UserPadList,
    CodeChanges,
    Restart,
    TimingOn,
    TimingOff,
    StorageOn,
    StorageOff,
    SetProxy,
    AsyncCommand,
    TaskDetail,
    Token,
}

/// A call with its paths.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) call: Call,
    /// The name that switches and the journal use.
    pub(crate) name: &'static str,
    /// True if it has a path under `padApi`, whose last part is its name.
    pads: bool,
    /// The path on ARMCloud.
    armcloud: Option<&'static str>,
}

const PREFIXES: [&str; 2] = ["/vcpcloud/api/padApi/", "/vsphone/api/padApi/"];

pub(crate) const ENDPOINTS: [Endpoint; 12] = [
    at(Call::Infos, "infos", true, Some("/openapi/open/pad/infos")),
    at(Call::UserPadList, "userPadList", true, None),
    at(Call::CodeChanges, "queryPadIdChangeRecords", true, None),
    at(Call::Restart, RESTART, true, Some("/openapi/open/pad/restart")),
    at(Call::TimingOn, "timingPadOn", true, None),
    at(Call::TimingOff, "timingPadOff", true, None),
    at(Call::StorageOn, "netStorageOn", false, Some("/openapi/open/pad/v2/net/storage/batch/boot/on")),
    at(Call::StorageOff, "netStorageOff", false, Some("/openapi/open/pad/v2/net/storage/batch/off")),
    at(Call::SetProxy, "setProxy", true, Some("/openapi/open/network/proxy/set")),
    at(Call::AsyncCommand, "asyncCmd", true, Some("/openapi/open/pad/asyncCmd")),
    at(Call::TaskDetail, "padTaskDetail", true, Some("/task-center/open/task/padTaskDetail")),
    at(Call::Token, "stsTokenByPadCode", true, Some("/openapi/open/token/stsTokenByPadCode")),
];

/// Finds the endpoint at a path.
pub(crate) fn find(path: &str) -> Option<&'static Endpoint> {
    let name = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix));
    ENDPOINTS.iter().find(|endpoint| {
        let by_name = endpoint.pads && name == Some(endpoint.name);
        by_name || endpoint.armcloud == Some(path)
    })
}

/// The name of a command over adb that changes nothing.
pub(crate) const SHELL: &str = "shell";

/// The name of a restart, over any of the interfaces.
pub(crate) const RESTART: &str = "restart";

/// The names of the other acts of the host.
pub(crate) const ACTS: [&str; 5] = ["start", "stop", "status", "set-proxy", "clear-proxy"];

/// Returns the names to which a switch can be limited.
pub(crate) fn names() -> Vec<&'static str> {
    ENDPOINTS.iter().map(|endpoint| endpoint.name).chain([SHELL]).chain(ACTS).collect()
}

const fn at(call: Call, name: &'static str, pads: bool, armcloud: Option<&'static str>) -> Endpoint {
    Endpoint { call, name, pads, armcloud }
}
