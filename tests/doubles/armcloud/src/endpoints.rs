//! The endpoints of VMOS Cloud and VSPhone. The acts of the host and of adb have names without
//! paths.

use strum::{EnumString, IntoStaticStr, VariantNames};

/// Named as at the end of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "camelCase")]
pub(crate) enum Call {
    Infos,
    UserPadList,
    Restart,
    TimingPadOn,
    TimingPadOff,
    SetProxy,
    AsyncCmd,
    PadTaskDetail,
    StsTokenByPadCode,
}

const PREFIXES: [&str; 2] = ["/vcpcloud/api/padApi/", "/vsphone/api/padApi/"];

pub(crate) fn find(path: &str) -> Option<Call> {
    PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix))?.parse().ok()
}

/// A command over adb that changes nothing.
pub(crate) const SHELL: &str = "shell";

pub(crate) const RESTART: &str = "restart";

pub(crate) const ACTS: [&str; 5] = ["start", "stop", "status", "set-proxy", "clear-proxy"];

pub(crate) fn is_name(name: &str) -> bool {
    Call::VARIANTS.iter().chain(&[SHELL]).chain(&ACTS).any(|known| *known == name)
}
