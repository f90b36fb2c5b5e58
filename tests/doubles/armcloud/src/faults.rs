//! The effects of the switches on one request: an action in place of the usual one, and faults of
//! the answer. All are taken at once, when the request has been authenticated. So a switch that is
//! limited to some calls counts each request to which it applies.

use crate::switches::{Asked, Switch, Switches};
use crate::wire::Cut;

#[derive(Debug)]
pub(crate) struct Faults {
    /// The milliseconds to wait before the call acts.
    pub(crate) stall: u64,
    pub(crate) instead: Option<Instead>,
    /// The number of calls allowed per second.
    pub(crate) rate: Option<i64>,
    /// The code of the answer, although the call acted.
    pub(crate) code_after: Option<i64>,
    /// The HTTP status of the answer, although the call acted.
    pub(crate) status_after: Option<u16>,
    /// The text of an answer with a code.
    pub(crate) code_text: Option<String>,
    pub(crate) spoiling: Spoiling,
}

/// An action in place of the requested one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    Drop,
    /// A page of HTML with this status.
    Html(u16),
    Redirect(String),
    Code(i64),
}

/// The faults of the answer.
#[derive(Debug, Default)]
pub(crate) struct Spoiling {
    /// The milliseconds to wait before the answer.
    pub(crate) stall: u64,
    pub(crate) cut: Option<Cut>,
    /// True if the connection closes after half of the answer's body.
    pub(crate) half: bool,
    pub(crate) shape: Option<String>,
    pub(crate) body_bytes: usize,
    /// The code to write in place of each padCode.
    pub(crate) echo: Option<String>,
    /// The seconds until the reset time that a 429 reports.
    pub(crate) rate_reset: i64,
}

impl Faults {
    pub(crate) fn take(switches: &mut Switches, asked: Asked<'_>) -> Self {
        let positive = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).unwrap_or_default();
        let drop = switches.take_flag(Switch::DropBefore, asked).then_some(Instead::Drop);
        let status = |status: Option<i64>| status.and_then(|status| u16::try_from(status).ok());
        let instead = status(switches.take_number(Switch::HttpStatus, asked)).map(Instead::Html);
        let redirect = switches.take_text(Switch::Redirect, asked).map(Instead::Redirect);
        let code = switches.take_number(Switch::Code, asked).map(Instead::Code);
        let cuts = [
            (Switch::DropAfter, Cut::Close),
            (Switch::ResetBefore, Cut::Reset),
            (Switch::ResetAfter, Cut::ResetAfterFirstByte),
        ];
        Self {
            stall: positive(switches.take_number(Switch::Stall, asked)),
            instead: drop.or(instead).or(redirect).or(code),
            rate: switches.take_number(Switch::RatePerSecond, asked),
            code_after: switches.take_number(Switch::CodeAfter, asked),
            status_after: status(switches.take_number(Switch::StatusAfter, asked)),
            code_text: switches.take_text(Switch::CodeText, asked),
            spoiling: Spoiling {
                stall: positive(switches.take_number(Switch::StallAnswer, asked)),
                cut: cuts.into_iter().find_map(|(switch, cut)| switches.take_flag(switch, asked).then_some(cut)),
                half: switches.take_flag(Switch::HalfBody, asked),
                shape: switches.take_text(Switch::Shape, asked),
                body_bytes: usize::try_from(positive(switches.take_number(Switch::BodyBytes, asked)))
                    .unwrap_or_default(),
                echo: switches.take_text(Switch::EchoPadCode, asked),
                rate_reset: switches.take_number(Switch::RateReset, asked).unwrap_or(1),
            },
        }
    }
}
