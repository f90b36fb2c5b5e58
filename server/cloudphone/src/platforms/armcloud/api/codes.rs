//! The platform's codes, in one table. What is not in it says nothing of whether something was done.
//!
//! Sources: the vendors' pages of 2025 and 2026 for VMOS Cloud and VSPhone, those of ARMCloud of late 2025, and clients that quote them.

/// What a code says of the request that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The platform does not take the credentials; nothing was done.
    Denied,
    /// The request was refused; nothing was done.
    Refused,
    /// Calls come too often; nothing was done.
    TooOften,
    /// The platform has no such call.
    Unsupported,
    /// It was tried, and failed.
    Failed,
    /// Nobody can tell.
    Unknown,
}

/// Accepted.
pub(super) const ACCEPTED: i64 = 200;

/// The signature does not fit.
pub(super) const WRONG_SIGNATURE: i64 = 2019;

/// HTTP's, for a path that is not there.
pub(super) const UNSUPPORTED: i64 = 404;

/// Reads the table.
pub(super) fn meaning(code: i64) -> Meaning {
    match code {
        // VMOS: signature, access key, header, timestamp, address that is not on the account's list (all with HTTP 401).
        WRONG_SIGNATURE | 2031 | 2032 | 2033 | 1116 => Meaning::Denied,
        // HTTP's own, and ARMCloud's: header missing, signature invalid, verification failed.
        401 | 100003..=100005 => Meaning::Denied,
        UNSUPPORTED => Meaning::Unsupported,
        // ARMCloud's limit of calls.
        429 => Meaning::TooOften,
        // Parameter missing or bad.
        1104 | 100000 | 100013 | 110065 => Meaning::Refused,
        // No access right; HTTP method not supported.
        100001 | 100012 => Meaning::Refused,
        // Tokens for screens: missing, invalid, not yours.
        100006..=100008 | 120006 | 120008 => Meaning::Refused,
        // This pad too often: in general, within 2 s, a reset within 3 min.
        110014 | 1218 | 1219 => Meaning::Refused,
        code if is_missing_pad(code) => Meaning::Refused,
        // A pad twice in one list.
        110027 => Meaning::Refused,
        // Power of pads with network storage (ARMCloud): on its way up or down already, not in a state to be, no such pad, an old one, no
        // compute bound, none free, not released, board offline, storage too old or full.
        111070 | 111071 | 111072 | 111076 | 111078..=111081 => Meaning::Refused,
        110071 | 110074 | 110079 | 2200014 | 220009 => Meaning::Refused,
        // Restart, reset, property, command: each failed.
        10001 | 10002 | 110003..=110005 | 110011 => Meaning::Failed,
        // Switching off fails again and again.
        111073 => Meaning::Failed,
        // Known and unknown alike: 500 and 503 are errors of the system, and refusals too; 100010 asks for a repeat; 100011 is an earlier
        // copy that runs; 110012 is a command without an answer in time; 110031, a pad that is not ready, is a guess.
        _ => Meaning::Unknown,
    }
}

/// Whether a code says that there is no such pad: VMOS, ARMCloud, its rooms, or a pad that is another account's.
pub(super) fn is_missing_pad(code: i64) -> bool {
    matches!(code, 2020 | 110028 | 110013 | 120005 | 110042)
}

/// Whether a repeat of a read that was answered so can help.
pub(super) fn may_pass(code: i64) -> bool {
    matches!(code, 429 | 500 | 503 | 100010 | 100011)
}
