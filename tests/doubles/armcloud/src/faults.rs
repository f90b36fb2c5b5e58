//! The effects of the switches on one request. All are taken at once, when the request has been
//! authenticated: a switch that is limited to some calls counts each request to which it applies.

use crate::switches::{Asked, Switch, Switches};
use crate::wire::Cut;

#[derive(Debug)]
pub(crate) struct Faults {
    /// Milliseconds.
    pub(crate) stall: u64,
    pub(crate) instead: Option<Instead>,
    /// The code of the answer, although the call acted.
    pub(crate) code_after: Option<i64>,
    pub(crate) spoiling: Spoiling,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    Drop,
    Html(u16),
    Code(i64),
}

#[derive(Debug, Default)]
pub(crate) struct Spoiling {
    /// Milliseconds.
    pub(crate) stall: u64,
    pub(crate) cut: Option<Cut>,
    pub(crate) half: bool,
    pub(crate) shape: Option<String>,
    pub(crate) body_bytes: usize,
}

impl Faults {
    pub(crate) fn take(switches: &mut Switches, asked: Asked<'_>) -> Self {
        let positive = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).unwrap_or_default();
        let drop = switches.take_flag(Switch::DropBefore, asked).then_some(Instead::Drop);
        let status = switches.take_number(Switch::HttpStatus, asked).and_then(|status| u16::try_from(status).ok());
        let instead = status.map(Instead::Html);
        let code = switches.take_number(Switch::Code, asked).map(Instead::Code);
        let cuts = [
            (Switch::DropAfter, Cut::Close),
            (Switch::ResetBefore, Cut::Reset),
            (Switch::ResetAfter, Cut::ResetAfterFirstByte),
        ];
        Self {
            stall: positive(switches.take_number(Switch::Stall, asked)),
            instead: drop.or(instead).or(code),
            code_after: switches.take_number(Switch::CodeAfter, asked),
            spoiling: Spoiling {
                stall: positive(switches.take_number(Switch::StallAnswer, asked)),
                cut: cuts.into_iter().find_map(|(switch, cut)| switches.take_flag(switch, asked).then_some(cut)),
                half: switches.take_flag(Switch::HalfBody, asked),
                shape: switches.take_text(Switch::Shape, asked),
                body_bytes: usize::try_from(positive(switches.take_number(Switch::BodyBytes, asked)))
                    .unwrap_or_default(),
            },
        }
    }
}
