//! The endpoints, with the paths that each has on VMOS Cloud and VSPhone, and on ARMCloud. The acts
//! of the host and of adb have names without paths.

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

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) call: Call,
    pub(crate) name: &'static str,
    /// It has a path under `padApi`, whose last part is its name.
    pads: bool,
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

pub(crate) fn find(path: &str) -> Option<&'static Endpoint> {
    let name = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix));
    ENDPOINTS.iter().find(|endpoint| {
        let by_name = endpoint.pads && name == Some(endpoint.name);
        by_name || endpoint.armcloud == Some(path)
    })
}

/// A command over adb that changes nothing.
pub(crate) const SHELL: &str = "shell";

pub(crate) const RESTART: &str = "restart";

pub(crate) const ACTS: [&str; 5] = ["start", "stop", "status", "set-proxy", "clear-proxy"];

pub(crate) fn names() -> Vec<&'static str> {
    ENDPOINTS.iter().map(|endpoint| endpoint.name).chain([SHELL]).chain(ACTS).collect()
}

const fn at(call: Call, name: &'static str, pads: bool, armcloud: Option<&'static str>) -> Endpoint {
    Endpoint { call, name, pads, armcloud }
}
