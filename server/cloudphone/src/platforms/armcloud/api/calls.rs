//! The calls that this adapter makes. All are POSTs. A call is made only to families that document
//! it.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiCall {
    /// Lists pads, by pages.
    Infos,
    UserPadList,
    Restart,
    /// For a pad that is paid by time.
    TimingPadOn,
    TimingPadOff,
    NetStorageOn,
    NetStorageOff,
    SetProxy,
    TaskDetail,
    AsyncCmd,
    ScreenToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// VMOS Cloud and VSPhone, which differ only in their prefix.
    PadApi,
    Armcloud,
}

impl ApiCall {
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
        };
        match family {
            Family::PadApi => pad_api,
            Family::Armcloud => armcloud,
        }
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        let path = self.path(Family::PadApi).or_else(|| self.path(Family::Armcloud)).unwrap_or_default();
        path.trim_start_matches("/openapi/open/pad/v2/").trim_start_matches('/')
    }

    /// Returns true if V2 signatures leave out the body, by the vendor's table.
    pub(super) fn is_command(self) -> bool {
        self == Self::AsyncCmd
    }

    /// Returns bytes. The list of seats has no pages: about 1.5 KB per seat.
    pub(super) fn largest_answer(self) -> usize {
        if self == Self::UserPadList { 64 << 20 } else { 4 << 20 }
    }
}
