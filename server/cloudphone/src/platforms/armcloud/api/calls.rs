//! The calls that this adapter makes, and their paths. All are POSTs. A call that is not documented
//! for a family is not made to it.

/// A call of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiCall {
    /// Lists pads, by pages.
    Infos,
    /// Lists seats, all at once.
    UserPadList,
    /// Restarts a pad.
    Restart,
    /// Starts a pad that is paid by time.
    TimingPadOn,
    /// Stops a pad that is paid by time.
    TimingPadOff,
    /// Starts a pad with network storage.
    NetStorageOn,
    /// Stops a pad with network storage.
    NetStorageOff,
    /// Sets or removes the proxy of a pad.
    SetProxy,
    /// Returns the progress of tasks.
    TaskDetail,
    /// Starts a command on a pad.
    AsyncCmd,
    /// Issues a token for a pad's screen.
    ScreenToken,
    /// Lists the pads that were replaced, with their replacements.
    PadChanges,
}

/// A family of platforms, which decides the names of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// VMOS Cloud and VSPhone, which differ only in their prefix.
    PadApi,
    /// ARMCloud.
    Armcloud,
}

impl ApiCall {
    /// Returns the path after the prefix, or `None` if the family has no such call.
    #[must_use]
    pub fn path(self, family: Family) -> Option<&'static str> {
        let [pad_api, armcloud] = match self {
            Self::Infos => [Some("/infos"), Some("/openapi/open/pad/infos")],
            Self::UserPadList => [Some("/userPadList"), None],
            Self::Restart => [Some("/restart"), Some("/openapi/open/pad/restart")],
            Self::TimingPadOn => [Some("/timingPadOn"), None],
            Self::TimingPadOff => [Some("/timingPadOff"), None],
            Self::NetStorageOn => [None, Some("/openapi/open/pad/v2/net/storage/batch/boot/on")],
            Self::NetStorageOff => [None, Some("/openapi/open/pad/v2/net/storage/batch/off")],
            Self::SetProxy => [Some("/setProxy"), Some("/openapi/open/network/proxy/set")],
            Self::TaskDetail => [Some("/padTaskDetail"), Some("/task-center/open/task/padTaskDetail")],
            Self::AsyncCmd => [Some("/asyncCmd"), Some("/openapi/open/pad/asyncCmd")],
            Self::ScreenToken => [Some("/stsTokenByPadCode"), Some("/openapi/open/token/stsTokenByPadCode")],
            Self::PadChanges => [Some("/queryPadIdChangeRecords"), None],
        };
        match family {
            Family::PadApi => pad_api,
            Family::Armcloud => armcloud,
        }
    }

    /// Returns the name of the call, for operators.
    #[must_use]
    pub fn name(self) -> &'static str {
        let path = self.path(Family::PadApi).or_else(|| self.path(Family::Armcloud)).unwrap_or_default();
        path.trim_start_matches("/openapi/open/pad/v2/").trim_start_matches('/')
    }

    /// Returns true if V2 signatures leave out the body of this call, according to the vendor's
    /// table.
    pub(super) fn is_command(self) -> bool {
        self == Self::AsyncCmd
    }

    /// Returns the size of the largest answer, in bytes. The list of seats has no pages: about 1.5
    /// KB per seat.
    pub(super) fn largest_answer(self) -> usize {
        if self == Self::UserPadList { 64 << 20 } else { 4 << 20 }
    }
}
