//! Changes of a trail that verification must find, and changes of state that it must accept.

use super::*;
use crate::retention::{self, Retention};
use crate::verify::{Scope, Verified, verify};

struct Sealed {
    scratch: Scratch,
    anchor: Anchor,
}

const DAYS: [&str; 3] = ["2026-07-28", "2026-07-29", "2026-07-30"];

impl Sealed {
    /// Makes seals 1 to 9: three for each day, each over two lines.
    fn new() -> Self {
        let scratch = Scratch::new();
        let mut sealed = Self { scratch, anchor: Anchor { newest: Head::START, pruned: Head::START, acts: 0 } };
        for day in 0..3 {
            for _ in 0..3 {
                sealed.run(NOON.plus(2 * HALF_DAY * day), 2);
            }
        }
        sealed
    }

    fn run(&mut self, at: Timestamp, lines: usize) {
        let anchor = Some(self.anchor);
        let audit = Audit::start(AuditParts { anchor, ..self.scratch.parts(&Clock::manual(at)) }).expect("started");
        let sealed = audit.handle().seals();
        for n in 0..lines {
            put(&audit, &line(at, &format!("r{n}")));
        }
        audit.stop();
        self.anchor.newest = *sealed.borrow();
    }

    fn verify(&self) -> Verified {
        verify(&self.scratch.dir(), &key(), Some(&self.anchor), Scope::All).expect("read")
    }

    fn edit(&self, day: usize, edit: impl FnOnce(&mut Vec<String>)) {
        let path = self.scratch.file(DAYS[day]);
        let text = fs::read_to_string(&path).expect("there");
        let mut lines = text.split_inclusive('\n').map(str::to_owned).collect();
        edit(&mut lines);
        fs::write(path, lines.concat()).expect("written");
    }

    fn faults(&self) -> String {
        let faults = self.verify().faults.into_iter();
        faults.map(|fault| format!("{} {}-{} {}\n", fault.file, fault.lines.0, fault.lines.1, fault.what)).collect()
    }
}

#[test]
fn every_changed_byte_is_found() {
    let sealed = Sealed::new();
    for (day, step) in [(0, 7), (2, 1)] {
        let path = sealed.scratch.file(DAYS[day]);
        let whole = fs::read(&path).expect("there");
        for at in (0..whole.len()).step_by(step) {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).expect("written");
            assert!(!sealed.verify().faults.is_empty(), "byte {at} of day {day}");
        }
        fs::write(&path, &whole).expect("written");
    }
    assert_eq!(sealed.faults(), "");
}

#[test]
fn every_cut_is_found_and_every_line_that_is_gone_or_moved_or_new() {
    let sealed = Sealed::new();
    for (day, date) in DAYS.iter().enumerate() {
        let path = sealed.scratch.file(date);
        let whole = fs::read(&path).expect("there");
        let count = whole.split_inclusive(|byte| *byte == b'\n').count();
        for length in (0..whole.len()).step_by(29) {
            fs::write(&path, &whole[..length]).expect("written");
            assert!(!sealed.verify().faults.is_empty(), "day {day} cut at {length}");
        }
        let edits: [fn(&mut Vec<String>, usize); 4] = [
            |lines, at| drop(lines.remove(at)),
            |lines, at| lines.insert(at, lines[at].clone()),
            |lines, at| lines.insert(at, "{\"time\":0}\n".to_owned()),
            |lines, at| {
                let other = (at + 1) % lines.len();
                lines.swap(at, other);
            },
        ];
        for (kind, edit) in edits.iter().enumerate() {
            for at in 0..count {
                fs::write(&path, &whole).expect("written");
                let before = fs::read(&path).expect("there");
                sealed.edit(day, |lines| edit(lines, at));
                let same = fs::read(&path).expect("there") == before;
                assert!(same || !sealed.verify().faults.is_empty(), "edit {kind} of line {at} of day {day}");
            }
        }
        fs::write(&path, &whole).expect("written");
    }
    assert_eq!(sealed.faults(), "");
}

#[test]
fn a_file_that_is_missing_or_twice_or_strange_is_found() {
    let sealed = Sealed::new();
    for date in DAYS {
        let (path, away) = (sealed.scratch.file(date), sealed.scratch.0.path().join("away"));
        fs::rename(&path, &away).expect("moved");
        assert!(!sealed.verify().faults.is_empty(), "without {date}");
        fs::rename(&away, &path).expect("moved");
        let copy = sealed.scratch.file("2026-08-01");
        fs::copy(&path, &copy).expect("copied");
        assert!(!sealed.verify().faults.is_empty(), "{date} twice");
        fs::write(&copy, "{\"time\":0}\n").expect("written");
        assert!(!sealed.verify().faults.is_empty(), "a file of no chain");
        fs::remove_file(copy).expect("removed");
    }
    for (day, faults) in [(0, 1), (1, 1), (2, 0)] {
        let path = sealed.scratch.file(DAYS[day]);
        let whole = fs::read(&path).expect("there");
        sealed.edit(day, |lines| lines.push("{\"time\":0}\n".to_owned()));
        assert_eq!(sealed.verify().faults.len(), faults, "a line behind the last seal of {}", DAYS[day]);
        fs::write(&path, whole).expect("written");
    }
    assert_eq!(sealed.faults(), "");
    let other = KeyRing::new("test", &[8; 32], Random::System).chain_key();
    let other = verify(&sealed.scratch.dir(), &other, Some(&sealed.anchor), Scope::All).expect("read");
    assert_eq!(other.faults.len(), 9, "no seal is of another master key");
    let unknown = verify(&sealed.scratch.dir(), &key(), None, Scope::All).expect("read");
    assert_eq!(unknown.faults.len(), 1, "a chain that is recorded nowhere: {unknown:?}");
}

#[test]
fn what_a_killed_process_leaves_is_sound_and_the_next_one_seals_it() {
    let mut sealed = Sealed::new();
    let last = DAYS[2];
    let whole = fs::read(sealed.scratch.file(last)).expect("there");
    sealed.run(NOON.plus(4 * HALF_DAY), 2);
    let more = fs::read(sealed.scratch.file(last)).expect("there");
    for length in whole.len()..=more.len() {
        sealed.anchor.newest.number = 9;
        fs::write(sealed.scratch.file(last), &more[..length]).expect("written");
        let before = verify(&sealed.scratch.dir(), &key(), None, Scope::All).expect("read");
        assert_eq!(before.faults.len(), 1, "it ends at {length}: {before:?}");
        let anchor = Anchor { newest: Head::START, ..sealed.anchor };
        let parts = AuditParts { anchor: Some(anchor), ..sealed.scratch.parts(&Clock::manual(NOON)) };
        let audit = Audit::start(parts).expect("started");
        put(&audit, &line(NOON.plus(6 * HALF_DAY), "next"));
        audit.stop();
        let after = verify(&sealed.scratch.dir(), &key(), Some(&anchor), Scope::All).expect("read");
        assert_eq!((after.faults, after.unsealed_lines), (vec![], 0), "it ends at {length}");
        let found = more[whole.len()..length].iter().filter(|byte| **byte == b'\n').count().min(2) as u64;
        assert!(after.found_lines <= found + 1 && after.sealed_lines >= 19 + found, "{length}");
        fs::remove_file(sealed.scratch.file("2026-07-31")).expect("removed");
    }
}

#[test]
fn what_a_killed_process_leaves_in_a_new_file_is_sealed_too() {
    let mut sealed = Sealed::new();
    sealed.run(NOON.plus(6 * HALF_DAY), 2);
    let path = sealed.scratch.file("2026-07-31");
    let whole = fs::read(&path).expect("there");
    sealed.anchor.newest.number = 0;
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).expect("written");
        sealed.anchor.newest.number = 0;
        assert_eq!(sealed.faults(), "", "it ends at {length}");
        let anchor = sealed.anchor;
        sealed.run(NOON.plus(8 * HALF_DAY), 1);
        sealed.anchor = anchor;
        let after = sealed.verify();
        assert_eq!((after.faults, after.unsealed_lines), (vec![], 0), "it ends at {length}");
        fs::remove_file(sealed.scratch.file("2026-08-01")).expect("removed");
    }
}

#[test]
fn a_cut_end_shows_also_after_another_start() {
    let mut sealed = Sealed::new();
    sealed.edit(2, |lines| lines.truncate(lines.len() - 3));
    sealed.run(NOON.plus(4 * HALF_DAY), 1);
    assert_eq!(
        sealed.faults(),
        "audit-2026-07-30.jsonl 8-8 seal 9 is missing before this: a file is missing, or the end of one\n"
    );
}

#[test]
fn a_clock_that_goes_back_over_midnight_leaves_the_chain_whole() {
    let mut sealed = Sealed::new();
    for day in [0, 2, 1, 400, 2] {
        sealed.run(NOON.plus(2 * HALF_DAY * day), 1);
    }
    let verified = sealed.verify();
    assert_eq!((verified.faults, verified.sealed_lines, verified.last_seal, verified.files), (vec![], 23, 14, 4));
}

#[test]
fn what_is_pruned_by_age_or_size_is_not_missing() {
    let by_age = Retention { days: Some(1), bytes: u64::MAX };
    let by_size = |bytes| Retention { days: None, bytes };
    let cases = [
        (by_age, 2, 1, 3),
        (by_age, 3, 2, 6),
        (by_age, 90, 2, 6),
        (by_age, 1, 0, 0),
        // A clock that is wrong by years, in either direction.
        (by_age, 0, 0, 0),
        (by_size(0), 2, 2, 6),
        (by_size(u64::MAX), 90, 0, 0),
        (Retention { days: Some(retention::DAYS), bytes: retention::BYTES }, 2, 0, 0),
    ];
    for (n, (retention, day, files, last)) in cases.into_iter().enumerate() {
        let mut sealed = Sealed::new();
        let now = NOON.plus(2 * HALF_DAY * day);
        let plan = retention::plan(&sealed.scratch.dir(), retention, now).expect("read");
        if let Some(pruned) = plan.pruned {
            sealed.anchor.pruned = pruned;
        }
        assert_eq!(sealed.anchor.pruned.number, last, "case {n}");
        assert_eq!(sealed.faults(), "", "case {n}, before the files go");
        assert_eq!(plan.remove().expect("removed"), files, "case {n}");
        assert_eq!(sealed.faults(), "", "case {n}");
        assert_eq!(sealed.verify().pruned_seal, last);
        sealed.run(now, 1);
        assert_eq!(sealed.faults(), "", "case {n}");
    }
}
