//! The platform's codes, in one table. A code that is not in it does not prove anything about the
//! request.
//!
//! Sources: the vendors' pages of 2025 and 2026 for VMOS Cloud and VSPhone, those of ARMCloud of
//! late 2025, and clients that quote them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The credentials are refused, and the request was not carried out.
    Denied,
    /// The platform does not promise that the request was not carried out.
    Refused,
    TooOften,
    Unsupported,
    Failed,
    Unknown,
}

pub(super) const ACCEPTED: i64 = 200;

pub(super) const WRONG_SIGNATURE: i64 = 2019;

pub(super) const UNSUPPORTED: i64 = 404;

pub(super) const FORBIDDEN: i64 = 403;

/// Returns true if a refusal comes before the platform acts: it is about the credentials, or the
/// right to make the call. Every other refusal was seen after the act, or can be.
pub(super) fn precedes_act(code: i64) -> bool {
    code == FORBIDDEN || meaning(code) == Meaning::Denied
}

pub(super) fn meaning(code: i64) -> Meaning {
    match code {
        // VMOS, all with HTTP 401: signature, access key, header, timestamp, address not on the
        // account's list.
        WRONG_SIGNATURE | 2031 | 2032 | 2033 | 1116 => Meaning::Denied,
        // HTTP's own. ARMCloud: missing header, invalid signature, failed verification.
        401 | 100003..=100005 => Meaning::Denied,
        UNSUPPORTED => Meaning::Unsupported,
        FORBIDDEN => Meaning::Refused,
        // ARMCloud's limit of calls.
        429 => Meaning::TooOften,
        // Parameter missing or invalid.
        1104 | 100000 | 100013 | 110065 => Meaning::Refused,
        // No access right; HTTP method not supported.
        100001 | 100012 => Meaning::Refused,
        // Screen tokens: missing, invalid, not yours.
        100006..=100008 | 120006 | 120008 => Meaning::Refused,
        // Too many calls for this pad; a reset within 3 min of the last one.
        code if is_too_often(code) => Meaning::Refused,
        1219 => Meaning::Refused,
        code if is_missing_pad(code) => Meaning::Refused,
        // A pad twice in one list.
        110027 => Meaning::Refused,
        // Power of pads with network storage (ARMCloud): starting or stopping already, not in a
        // state for it, no such pad, old pad, no compute bound, none free, not released, board
        // offline, storage too old or full.
        111070 | 111071 | 111072 | 111076 | 111078..=111081 => Meaning::Refused,
        110071 | 110074 | 110079 | 2200014 | 220009 => Meaning::Refused,
        // Restart, reset, property, command: each failed.
        10001 | 10002 | 110003..=110005 | 110011 => Meaning::Failed,
        // Switching off fails repeatedly.
        111073 => Meaning::Failed,
        // Includes known codes. 500 and 503 are errors of the system and also refusals. 100010 asks
        // for a retry. 100011 is an earlier copy that runs. 110012 is a command without an answer
        // in time. 110031, a pad that is not ready, is a guess.
        _ => Meaning::Unknown,
    }
}

pub(super) fn find_remedy(code: i64) -> &'static str {
    match code {
        WRONG_SIGNATURE | 100004 | 100005 => "see that the secret key and `signing` are those of this account",
        2031 => "see that the access key is that of this account, and that base-url is its host",
        2032 | 100003 => "see that `signing` is that of this account: the platform misses a header",
        2033 => "set this machine's clock: signatures are valid for 5 minutes",
        1116 => "add the public address of this machine to the allow list of the account, in the vendor's console",
        UNSUPPORTED => "see that base-url and prefix are of one platform, as docs/accounts.md has them",
        FORBIDDEN | 100001 => "ask the vendor to allow these calls on this account",
        code if is_too_often(code) => "wait a minute; if it stays, lower requests-per-second and requests-per-minute",
        _ => "see that base-url, prefix, signing and both keys are those of the account",
    }
}

/// Returns true for no such pad (VMOS, ARMCloud and its rooms), and for the pad of another account.
pub(super) fn is_missing_pad(code: i64) -> bool {
    matches!(code, 2020 | 110028 | 110013 | 120005 | 110042)
}

/// Returns true for limits in general, and for one pad, usually within 2 s.
pub(super) fn is_too_often(code: i64) -> bool {
    matches!(code, 429 | 110014 | 1218)
}

pub(super) fn may_pass(code: i64) -> bool {
    is_too_often(code) || matches!(code, 500 | 503 | 100010 | 100011)
}
