//! How long requests count, and what is granted.

use super::*;

const START: u64 = 1_790_000_000_000;

fn at(millis: u64) -> Timestamp {
    Timestamp(START + millis)
}

/// Compares the count of a record with all its requests, after random times and after an encoding.
#[test]
fn a_request_counts_for_61_seconds_and_for_hardly_longer() {
    let mut state = 7_u64;
    let mut random = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for gap in [20, 150, 400, 3_000] {
        let (mut record, mut all, mut now) = (Record { holder: 1, ..Record::default() }, Vec::new(), 0);
        for _ in 0..1_000 {
            now += random(2 * gap);
            record.add(at(now), 1);
            all.push(now);
            let later = now + random(70_000);
            let within = |millis: u64| all.iter().filter(|sent| later - **sent < millis).count() as u64;
            let log = SharedLog::default().encode(&record, Allowance { requests: 0, until: at(0) }, at(now));
            let log = SharedLog::decode(&log).expect("a log");
            let counted = u64::from(u32::MAX - log.room(&Record::default(), u32::MAX, at(later)));
            assert!((within(61_000)..=within(61_400)).contains(&counted), "{counted} at {later}");
        }
        assert!(record.admitted.len() <= 322, "{}", record.admitted.len());
    }
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
