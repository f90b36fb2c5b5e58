//! The endpoints that are there, by the path that each has on VMOS Cloud and VSPhone, and on ARMCloud. What is not in the table is 404.

/// One call of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Infos,
    UserPadList,
    PadInfo,
    ModelInfo,
    PadDetails,
    CodeChanges,
    Restart,
    Reset,
    TimingOn,
    TimingOff,
    StorageOn,
    StorageOff,
    SetProxy,
    ProxyInfo,
    AsyncCommand,
    SyncCommand,
    TaskDetail,
    Token,
    ClearToken,
    DissolveRoom,
}

/// Where a call is found.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) call: Call,
    /// The name that switches and the journal use.
    pub(crate) name: &'static str,
    /// Whether it has a path under `padApi`, where its name is the last part.
    pads: bool,
    /// The path at ARMCloud.
    armcloud: Option<&'static str>,
}

const PREFIXES: [&str; 2] = ["/vcpcloud/api/padApi/", "/vsphone/api/padApi/"];
/// The one call of VMOS Cloud that is documented elsewhere, and mostly not there.
const PROXY_INFO: &str = "/vcpcloud/open/network/proxy/info";

pub(crate) const ENDPOINTS: [Endpoint; 20] = [
    at(Call::Infos, "infos", true, Some("/openapi/open/pad/infos")),
    at(Call::UserPadList, "userPadList", true, None),
    at(Call::PadInfo, "padInfo", true, None),
    at(Call::ModelInfo, "modelInfo", true, Some("/openapi/open/pad/modelInfo")),
    at(Call::PadDetails, "padDetails", false, Some("/openapi/open/pad/padDetails")),
    at(Call::CodeChanges, "queryPadIdChangeRecords", true, None),
    at(Call::Restart, "restart", true, Some("/openapi/open/pad/restart")),
    at(Call::Reset, "reset", true, Some("/openapi/open/pad/reset")),
    at(Call::TimingOn, "timingPadOn", true, None),
    at(Call::TimingOff, "timingPadOff", true, None),
    at(Call::StorageOn, "netStorageOn", false, Some("/openapi/open/pad/v2/net/storage/batch/boot/on")),
    at(Call::StorageOff, "netStorageOff", false, Some("/openapi/open/pad/v2/net/storage/batch/off")),
    at(Call::SetProxy, "setProxy", true, Some("/openapi/open/network/proxy/set")),
    at(Call::ProxyInfo, "proxyInfo", false, Some("/openapi/open/network/proxy/info")),
    at(Call::AsyncCommand, "asyncCmd", true, Some("/openapi/open/pad/asyncCmd")),
    at(Call::SyncCommand, "syncCmd", true, Some("/openapi/open/pad/syncCmd")),
    at(Call::TaskDetail, "padTaskDetail", true, Some("/task-center/open/task/padTaskDetail")),
    at(Call::Token, "stsTokenByPadCode", true, Some("/openapi/open/token/stsTokenByPadCode")),
    at(Call::ClearToken, "clearStsToken", true, Some("/openapi/open/token/clearStsToken")),
    at(Call::DissolveRoom, "dissolveRoom", true, Some("/rtc/open/room/dissolveRoom")),
];

/// The endpoint at a path. `proxy_info` says whether the undeployed one of VMOS Cloud is there.
pub(crate) fn find(path: &str, has_proxy_info: HasProxyInfo) -> Option<&'static Endpoint> {
    let name = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix));
    ENDPOINTS.iter().find(|endpoint| {
        let by_name = endpoint.pads && name == Some(endpoint.name);
        let undeployed = endpoint.call == Call::ProxyInfo && path == PROXY_INFO && has_proxy_info.0;
        by_name || undeployed || endpoint.armcloud == Some(path)
    })
}

/// Whether VMOS Cloud has its call for the exit of a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HasProxyInfo(pub(crate) bool);

/// The names of all endpoints.
pub(crate) fn names() -> Vec<&'static str> {
    ENDPOINTS.iter().map(|endpoint| endpoint.name).collect()
}

const fn at(call: Call, name: &'static str, pads: bool, armcloud: Option<&'static str>) -> Endpoint {
    Endpoint { call, name, pads, armcloud }
}
