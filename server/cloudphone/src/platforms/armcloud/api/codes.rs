//! The platform's codes, in one table. A code that is not in it does not prove anything about the
//! request.
//!
//! Sources: the vendors' pages of 2025 and 2026 for VMOS Cloud and VSPhone, those of ARMCloud of
//! late 2025, and clients that quote them.

/// The outcome of a request, according to the code of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The platform does not accept the credentials; the request was not carried out.
    Denied,
    /// The request was refused. The platform does not promise that it was not carried out.
    Refused,
    /// Calls come too often.
    TooOften,
    /// The platform has no such call.
    Unsupported,
    /// The request was tried, and failed.
    Failed,
    /// The outcome is unknown.
    Unknown,
}

/// Accepted.
pub(super) const ACCEPTED: i64 = 200;

/// The signature does not match.
pub(super) const WRONG_SIGNATURE: i64 = 2019;

/// HTTP's status for a path that does not exist.
pub(super) const UNSUPPORTED: i64 = 404;

/// HTTP's status for a request that is not allowed.
pub(super) const FORBIDDEN: i64 = 403;

/// Returns true if a refusal with this code is known to come before the platform acts: it is about
/// the credentials, or about the right to make the call. Every other refusal has been seen after
/// the act, or can be.
pub(super) fn precedes_act(code: i64) -> bool {
    code == FORBIDDEN || meaning(code) == Meaning::Denied
}

/// Returns the meaning of a code.
pub(super) fn meaning(code: i64) -> Meaning {
    match code {
        // VMOS: signature, access key, header, timestamp, an address that is not on the account's
        // list (all with HTTP 401).
        WRONG_SIGNATURE | 2031 | 2032 | 2033 | 1116 => Meaning::Denied,
        // HTTP's own, and ARMCloud's: missing header, invalid signature, failed verification.
        401 | 100003..=100005 => Meaning::Denied,
        UNSUPPORTED => Meaning::Unsupported,
        FORBIDDEN => Meaning::Refused,
        // ARMCloud's limit of calls.
        429 => Meaning::TooOften,
        // Parameter missing or invalid.
        1104 | 100000 | 100013 | 110065 => Meaning::Refused,
        // No access right; HTTP method not supported.
        100001 | 100012 => Meaning::Refused,
        // Tokens for screens: missing, invalid, not yours.
        100006..=100008 | 120006 | 120008 => Meaning::Refused,
        // Too many calls for this pad; a reset within 3 min of the last one.
        code if is_too_often(code) => Meaning::Refused,
        1219 => Meaning::Refused,
        code if is_missing_pad(code) => Meaning::Refused,
        // A pad twice in one list.
        110027 => Meaning::Refused,
        // Power of pads with network storage (ARMCloud): already starting or stopping, not in a
        // state for it, no such pad, an old pad, no compute bound, none free, not released, board
        // offline, storage too old or full.
        111070 | 111071 | 111072 | 111076 | 111078..=111081 => Meaning::Refused,
        110071 | 110074 | 110079 | 2200014 | 220009 => Meaning::Refused,
        // Restart, reset, property, command: each failed.
        10001 | 10002 | 110003..=110005 | 110011 => Meaning::Failed,
        // Switching off fails repeatedly.
        111073 => Meaning::Failed,
        // Unknown, including these known codes: 500 and 503 are errors of the system and also
        // refusals. 100010 asks for a retry. 100011 is an earlier copy that is running. 110012 is a
        // command without an answer in time. 110031, a pad that is not ready, is a guess.
        _ => Meaning::Unknown,
    }
}

/// Returns the remedy of an operator whose account is refused with this code.
pub(super) fn find_remedy(code: i64) -> &'static str {
    match code {
        WRONG_SIGNATURE | 100004 | 100005 => "see that the secret key and `signing` are those of this account",
        2031 => "see that the access key is that of this account, and that base-url is its host",
        2032 | 100003 => "see that `signing` is that of this account: the platform misses a header",
        2033 => "set this machine's clock: signatures are valid for 5 minutes",
        1116 => "add the public address of this machine to the allow list of the account, in the vendor's console",
        UNSUPPORTED => "see that base-url and prefix are of one platform, as docs/platforms.md has them",
        FORBIDDEN | 100001 => "ask the vendor to allow these calls on this account",
        code if is_too_often(code) => "wait a minute; if it stays, lower requests-per-second and requests-per-minute",
        _ => "see that base-url, prefix, signing and both keys are those of the account",
    }
}

/// Returns true if a code means that there is no such pad, for VMOS, ARMCloud and its rooms, or
/// that the pad belongs to another account.
pub(super) fn is_missing_pad(code: i64) -> bool {
    matches!(code, 2020 | 110028 | 110013 | 120005 | 110042)
}

/// Returns true if a code means that calls come too often: in general, or for one pad (in general,
/// within 2 s).
pub(super) fn is_too_often(code: i64) -> bool {
    matches!(code, 429 | 110014 | 1218)
}

/// Returns true if a retry of a read can help after this code.
pub(super) fn may_pass(code: i64) -> bool {
    is_too_often(code) || matches!(code, 500 | 503 | 100010 | 100011)
}
