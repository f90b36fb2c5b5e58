//! The calls that this adapter makes, and their paths. All are POSTs. A call that is not documented for a family is not made there.

/// A call of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiCall {
    /// Pads, by pages.
    Infos,
    /// Seats, all at once.
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
    /// What became of tasks.
    TaskDetail,
    /// Starts a command on a pad.
    AsyncCmd,
    /// Issues a token for a pad's screen.
    ScreenToken,
    /// Which pads were replaced by which.
    PadChanges,
}

/// Which names the calls have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// VMOS Cloud and VSPhone, which differ in their prefix alone.
    PadApi,
    /// ARMCloud.
    Armcloud,
}

impl ApiCall {
    /// Returns the path after the prefix, or `None` where the family has no such call.
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

    /// Whether V2 leaves its body out of the signature, by the vendor's table.
    pub(super) fn is_command(self) -> bool {
        self == Self::AsyncCmd
    }

    /// Largest answer, in bytes. The list of seats has no pages: some 1.5 KB for each seat.
    pub(super) fn largest_answer(self) -> usize {
        if self == Self::UserPadList { 64 << 20 } else { 4 << 20 }
    }
}
