//! How long requests count, and what is granted.

use super::*;

const START: u64 = 1_790_000_000_000;

fn at(millis: u64) -> Timestamp {
    Timestamp(START + millis)
}

#[test]
fn an_allowance_depends_on_what_is_free_and_on_what_is_asked_for() {
    let own = |left| Record { left, last: START / TICK_MILLIS, ..Record::default() };
    let idle = Record { last: 0, ..own(0) };
    let long = |requests| Some(Allowance { requests, until: at(10_000) });
    let short = |requests| Some(Allowance { requests, until: at(1_000) });
    // The requests of others, the limit, the replica, and the requests that wait.
    for (others, limit, own, asked, expected) in [
        (0, 300, own(0), &[1][..], long(19)),
        (0, 300, idle.clone(), &[1], short(1)),
        (0, 300, own(9), &[], long(18)),
        (0, 300, own(9), &[100, 100], long(218)),
        (150, 300, own(0), &[1], long(19)),
        (151, 300, own(0), &[1], short(1)),
        (151, 300, own(9), &[], None),
        (151, 300, own(9), &[100, 60, 40], short(140)),
        (3_001, 6_000, own(0), &[1], short(12)),
        (3_001, 6_000, idle, &[1], short(1)),
        (295, 300, own(0), &[6, 7], None),
        (295, 300, own(3), &[2], short(3)),
        (295, 300, own(6), &[2], None),
        (0, 1, own(0), &[1], short(1)),
        (0, 0, own(0), &[1], None),
    ] {
        let mut other = Record { holder: 2, ..Record::default() };
        other.add(at(0), others);
        let log = SharedLog { records: vec![other] };
        assert_eq!(log.grant(&own, limit, asked, at(0)), expected, "{others} of {limit}: {asked:?}, {own:?}");
    }
}

#[test]
fn a_log_of_another_form_is_not_read() {
    assert_eq!(SharedLog::decode(b"[1,[]]"), Some(SharedLog::default()));
    for body in [&b"[2,[]]"[..], b"[2,{}]", b"", b"[1,[{}]]"] {
        assert_eq!(SharedLog::decode(body), None);
    }
}
