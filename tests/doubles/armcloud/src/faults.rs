//! The effects of the switches on one request. All are taken at once, when the request has been
//! authenticated: a switch that is limited to some calls counts each request to which it applies.

use crate::switches::{Asked, Switches};
use axum::http::Response;
use thiserror::Error;

#[derive(Debug)]
pub(crate) struct Faults {
    /// Milliseconds.
    pub(crate) stall: u64,
    pub(crate) instead: Option<Instead>,
    /// The code of the answer, although the call acted.
    pub(crate) code_after: Option<i64>,
    /// Milliseconds before the answer.
    pub(crate) answer_stall: u64,
    pub(crate) cut: Option<Cut>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    Drop,
    Html(u16),
    Code(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Close,
    Reset,
    ResetAfterFirstByte,
    HalfBody,
}

/// The end of a connection in place of an answer, after these bytes of it.
#[derive(Debug, Default, Error)]
#[error("the answer is cut")]
pub(crate) struct CutAnswer {
    pub(crate) sent: Vec<u8>,
    pub(crate) is_reset: bool,
}

impl Cut {
    pub(crate) fn cut(self, answer: &Response<String>) -> CutAnswer {
        let (status, body) = (answer.status().as_u16(), answer.body());
        let half = &body.as_bytes()[..body.len() / 2];
        let head = format!("HTTP/1.1 {status} Cut\r\nContent-Length: {}\r\n\r\n", body.len());
        CutAnswer {
            sent: match self {
                Self::Close | Self::Reset => Vec::new(),
                Self::ResetAfterFirstByte => b"H".to_vec(),
                Self::HalfBody => [head.as_bytes(), half].concat(),
            },
            is_reset: matches!(self, Self::Reset | Self::ResetAfterFirstByte),
        }
    }
}

impl Faults {
    pub(crate) fn take(switches: &mut Switches, asked: Asked<'_>) -> Self {
        let drop = switches.is_set(asked, |set| &mut set.drop_before_acting).then_some(Instead::Drop);
        let status = switches.take(asked, |set| &mut set.http_status).map(Instead::Html);
        let code = switches.take(asked, |set| &mut set.code).map(Instead::Code);
        let cuts = [
            switches.is_set(asked, |set| &mut set.drop_after_acting).then_some(Cut::Close),
            switches.is_set(asked, |set| &mut set.reset_before_answer).then_some(Cut::Reset),
            switches.is_set(asked, |set| &mut set.reset_after_first_byte).then_some(Cut::ResetAfterFirstByte),
            switches.is_set(asked, |set| &mut set.half_body).then_some(Cut::HalfBody),
        ];
        Self {
            stall: switches.take(asked, |set| &mut set.stall_ms).unwrap_or_default(),
            instead: drop.or(status).or(code),
            code_after: switches.take(asked, |set| &mut set.code_after_acting),
            answer_stall: switches.take(asked, |set| &mut set.stall_answer_ms).unwrap_or_default(),
            cut: cuts.into_iter().flatten().next(),
        }
    }
}
