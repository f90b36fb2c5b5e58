//! The decision table: a row is the life of a task.
//!
//! A row has the policy, the facts that are not the usual ones, and the time from which they hold.
//! Then it has each event with its second, in brackets the entries and the effect, and the end, or
//! the phase and the second until which the task waits. Words of an end are a part of what its
//! evidence or its explanation says.

use super::*;

const DIRECTIONS: [(&str, Provability); 4] = [
    ("both", Provability::Both),
    ("presence", Provability::Presence),
    ("absence", Provability::Absence),
    ("nothing", Provability::Nothing("it has no eyes")),
];

const TABLE: &str = "
a probe that proves both
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 1 present (release 15) = success: success; a. a reading of the target showed the effect
probe, idempotent: 0 due (charge, send 5); 0 err (probe); 1 present (release 15) = success
probe, idempotent: 0 due (charge, send 5); 0 none (probe); 1 present (release 65) = success
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 1 absent; 9 absent = verifying until 10
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 10 absent = verifying until 13
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 10 absent; 13 absent (refund, release 15) = failed_silent: 2 readings after the settling time showed that the effect is absent; the charge is refunded
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 10 absent; 13 present (release 15) = success
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 10 unreadable; 60 unreadable (release 60) = timeout
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 20 unreadable; 60 absent (release 60) = timeout
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 50 absent; 99 absent (refund, release 99) = failed_silent
probe, idempotent: 0 due (charge, send 5); 0 err (probe); 9 absent; 10 absent (release 15) = failed: a; the platform says: jam. the platform reported a failure, and no reading showed the effect
probe, idempotent: 0 due (charge, send 5); 0 err (probe); 10 unreadable = verifying until 13
probe, idempotent: 0 due (charge, send 5); 0 err (probe); 10 unreadable; 13 unreadable (release 15) = failed
probe, idempotent: 0 due (charge, send 5); 0 none (probe); 60 unreadable (release 65) = timeout: did not answer in a way that could be understood, and the readings did not decide
probe: 0 due (charge, send 5); 0 none (probe); 30 absent; 59 absent = verifying until 60
probe: 0 due (charge, send 5); 0 none (probe); 30 absent; 60 absent (release 65) = timeout
probe, idempotent: 0 due (charge, send 5); 0 refused (probe); 1 present (release 15) = success
probe, idempotent: 0 due (charge, send 5); 0 refused (probe); 10 absent (release 15) = failed
probe, idempotent: 0 due (charge, send 5); 0 refused (probe); 9 absent = verifying until 10
probe, idempotent: 0 due (charge, send 5); 0 busy (probe); 1 present (release 15) = success
probe, idempotent: 0 due (charge, send 5); 0 busy (probe); 10 absent (reversal, release 15) = failed: was busy and refused the request with 429, and a reading showed that nothing was done
probe, idempotent: 0 due (charge, send 5); 0 busy (probe); 10 unreadable; 12 unreadable (release 15) = failed
probe, idempotent: 0 due (charge, send 5); 0 unsure (probe); 30 present (release 65) = success
probe, idempotent: 0 due (charge, send 5); 0 unsure (probe); 30 absent; 30 due (probe); 33 due (probe); 40 absent = verifying until 60
probe, idempotent: 0 due (charge, send 5); 0 unsure (probe); 60 absent (release 65) = timeout
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 1 undecidable (release 15) = success_unverified
probe, idempotent: 0 due (charge, send 5); 0 err (probe); 1 undecidable (release 15) = failed
probe, idempotent: 0 due (charge, send 5); 0 none (probe); 1 undecidable = verifying until 60
probe, idempotent: 0 due (charge, send 5); 0 none (probe); 60 undecidable (release 65) = timeout

no probe
no probe: 0 due (charge, send 5); 0 ok (release 15) = success_unverified: the platform reported success, and nothing could verify it: this operation has no check
no probe: 0 due (charge, send 5); 0 err (release 15) = failed: reported a failure, and no reading could contradict it
no probe: 0 due (charge, send 5); 0 none; 60 due (release 65) = timeout: the deadline passed while the outcome was unknown
no probe: 0 due (charge, send 5); 0 refused (release 15) = failed
no probe: 0 due (charge, send 5); 0 busy (release 15) = failed
no probe: 60 due (release 60) = failed: nothing was sent before it was too late

a target that cannot be read
probe, idempotent, nothing: 0 due (charge, send 5); 0 ok (release 15) = success_unverified: nothing can be checked: it has no eyes
probe, idempotent, nothing: 0 due (charge, send 5); 0 err (release 15) = failed: nothing can be checked: it has no eyes
probe, idempotent, nothing: 0 due (charge, send 5); 0 none = verifying until 60
probe, idempotent, nothing: 0 due (charge, send 5); 0 none; 60 due (release 65) = timeout: it has no eyes

a probe that proves presence
probe, idempotent, presence: 0 due (charge, send 5); 0 ok (probe); 1 present (release 15) = success
probe, idempotent, presence: 0 due (charge, send 5); 0 ok (probe); 15 absent; 18 absent; 21 absent = verifying until 60
probe, idempotent, presence: 0 due (charge, send 5); 0 ok (probe); 15 absent; 18 absent; 60 absent (release 60) = timeout: a; here, that proves no absence
probe, idempotent, presence: 0 due (charge, send 5); 0 err (probe); 15 absent = verifying until 18
probe, idempotent, presence: 0 due (charge, send 5); 0 err (probe); 15 absent; 18 absent (release 18) = failed
probe, idempotent, presence: 0 due (charge, send 5); 0 none (probe); 30 absent; 40 absent = verifying until 60
probe, idempotent, presence: 0 due (charge, send 5); 0 none (probe); 60 absent (release 65) = timeout

a probe that proves absence
probe, idempotent, absence: 0 due (charge, send 5); 0 ok (probe); 15 absent; 18 absent (refund, release 18) = failed_silent
probe, idempotent, absence: 0 due (charge, send 5); 0 ok (probe); 1 present; 4 present; 9 present = verifying until 10
probe, idempotent, absence: 0 due (charge, send 5); 0 ok (probe); 15 present; 18 unreadable = verifying until 36
probe, idempotent, absence: 0 due (charge, send 5); 0 ok (probe); 15 present; 18 unreadable; 21 present (release 21) = success_unverified: a; here, that proves no success
probe, idempotent, absence: 0 due (charge, send 5); 0 ok (probe); 15 unreadable; 18 unreadable; 60 unreadable (release 60) = timeout
probe, idempotent, absence: 0 due (charge, send 5); 0 err (probe); 15 present; 18 present (release 18) = failed
probe, idempotent, absence: 0 due (charge, send 5); 0 none (probe); 15 present; 18 present = verifying until 27
probe, idempotent, absence: 0 due (charge, send 5); 0 none (probe); 60 present (release 65) = timeout

a probe that proves other directions from the eighteenth second on
probe, idempotent, presence@18: 0 due (charge, send 5); 0 ok (probe); 15 absent; 18 absent; 21 absent = verifying until 60
probe, idempotent, presence, both@18: 0 due (charge, send 5); 0 ok (probe); 15 absent; 18 absent = verifying until 36
probe, idempotent, presence, both@18: 0 due (charge, send 5); 0 ok (probe); 15 absent; 18 absent; 21 absent (refund, release 21) = failed_silent
probe, idempotent, nothing@18: 0 due (charge, send 5); 0 ok (probe); 15 absent; 18 due (release 18) = success_unverified: it says that it is done; nothing can be checked: it has no eyes
probe, idempotent, nothing@18: 0 due (charge, send 5); 0 ok (probe); 15 absent; 18 absent (release 18) = success_unverified: it says that it is done; nothing can be checked: it has no eyes
probe, idempotent, nothing@18: 0 due (charge, send 5); 0 none (probe); 15 absent; 18 due; 60 due (release 65) = timeout: none that could be understood; nothing can be checked: it has no eyes
probe, idempotent, nothing, both@18: 0 due (charge, send 5); 0 none; 60 due (probe); 60 present (release 65) = success

sends that did nothing
probe, idempotent: 0 due (charge, send 5); 0 not sent = ready until 2
probe, idempotent: 0 due (charge, send 5); 0 not sent; 2 due (send 7 again because nothing was done before); 2 not sent; 6 due (send 11 again because nothing was done before); 6 not sent (reversal, release 6) = failed: no request ever left, so nothing was done.
no probe: 0 due (charge, send 5); 0 refused before; 2 due (send 7 again because nothing was done before); 2 refused before; 6 due (send 11 again because nothing was done before); 6 refused before (reversal, release 6) = failed: failure; refused by the platform with 429; such a refusal comes before the act, so nothing was done.
no probe, idempotent: 0 due (charge, send 5); 0 refused before; 2 due (send 7 again because nothing was done before); 2 refused before; 6 due (send 11 again because nothing was done before); 6 refused before (reversal, release 6) = failed: failure; refused by the platform with 429; such a refusal comes before the act, so nothing was done.
no probe: 0 due (charge, send 5); 0 refused (release 15); 2 due; 2 refused = failed: failure; refused by the platform with 429; it does not promise that a refusal means not done.
no probe, idempotent: 0 due (charge, send 5); 0 refused (release 15); 2 due; 2 refused = failed: failure; refused by the platform with 429; it does not promise that a refusal means not done.
no probe: 0 due (charge, send 5); 0 refused before; 2 due (send 7 again because nothing was done before); 2 none; 60 due (release 67) = timeout: none that could be understood.

an unanswered send is repeated only if its absence is proven
probe, idempotent: 0 due (charge, send 5); 0 none (probe); 30 absent; 30 due (send 35 again because no answer came and no effect was read) = sending
probe, idempotent, absence: 0 due (charge, send 5); 0 none (probe); 30 absent; 30 due (send 35 again because no answer came and no effect was read) = sending
probe, idempotent, presence: 0 due (charge, send 5); 0 none (probe); 30 absent; 30 due (probe) = verifying
probe, idempotent, nothing: 0 due (charge, send 5); 0 none; 30 absent; 30 due = verifying until 60
probe, idempotent, nothing@31: 0 due (charge, send 5); 0 none (probe); 30 absent; 30 due (send 35 again because no answer came and no effect was read); 31 err = verifying until 60
probe, idempotent, nothing@31: 0 due (charge, send 5); 0 none (probe); 30 absent; 30 due (send 35 again because no answer came and no effect was read); 31 err; 60 due (release 95) = timeout

a reading from before the send
baseline: 0 due (read); 1 no baseline; 4 due (read); 4 baseline (charge, send 9) = sending
baseline: 0 due (read); 1 no baseline; 50 due (release 50) = failed
baseline: 0 due (read); 1 no baseline; 4 due (read); 5 no baseline (charge, send 10) = sending
baseline: 0 due (read); 1 no baseline; 4 due (read); 5 no baseline (charge, send 10); 5 not sent; 7 due (send 12 again because nothing was done before); 7 ok (probe); 20 absent; 23 absent; 60 absent (release 60) = timeout
baseline: 0 due (read); 1 no baseline; 4 due (read); 5 no baseline (charge, send 10); 5 not sent; 7 due (send 12 again because nothing was done before); 7 ok (probe); 20 present (release 22) = success
baseline: 0 due (read); 1 no baseline; 4 due (read); 5 no baseline (charge, send 10); 5 not sent; 7 due (send 12 again because nothing was done before); 7 err (probe); 20 absent; 23 absent (release 23); 60 absent = failed
baseline: 0 due (read); 60 no baseline; 60 due (release 60) = failed: the target could not be read before the send
baseline, nothing: 0 due (charge, send 5) = sending
baseline, nothing@1: 0 due (read); 4 no baseline (charge, send 9) = sending
baseline, nothing@5: 0 due (read); 4 no baseline; 7 due (charge, send 12) = sending
baseline, nothing: 0 due (charge, send 5); 0 not sent; 2 due (send 7 again because nothing was done before); 2 not sent; 6 due (send 11 again because nothing was done before); 6 not sent (reversal, release 6) = failed: no request ever left, so nothing was done.
baseline, idempotent, nothing, both@1: 0 due (charge, send 5); 1 ok (probe); 16 absent; 19 absent; 60 absent (release 60) = timeout
baseline, idempotent, nothing, both@1: 0 due (charge, send 5); 1 ok (probe); 2 present (release 15) = success
baseline, idempotent, nothing, absence@1: 0 due (charge, send 5); 1 ok (release 15); 2 due = success_unverified: there is no reading from before the send
baseline, dedupes, nothing, both@18: 0 due (charge, send 5); 3 found; 17 due (send 22 again because the upstream recognises a repeated request); 17 not sent; 19 due (send 24 again because no answer came and no effect was read) = sending

another process
probe, looks up, dedupes: 0 due (charge, send 5); 3 found; 17 due (look up) = sending
probe, dedupes: 0 due (charge, send 5); 3 found; 17 due (send 22 again because the upstream recognises a repeated request) = sending
probe: 0 due (charge, send 5); 3 found; 17 due (probe); 26 absent; 27 absent; 60 unreadable (release 65) = timeout: 1 showed an absence, 1 could not tell
no probe: 0 due (charge, send 5); 3 found = sending until 17
probe, dedupes: 0 due (charge, send 5); 3 found; 17 due (send 22 again because the upstream recognises a repeated request); 17 not sent; 19 due (send 24 again because no answer came and no effect was read); 19 not sent; 23 due (send 28 again because no answer came and no effect was read); 23 not sent (probe) = verifying
probe, looks up: 0 due (charge, send 5); 7 taken over; 24 due (look up) = sending
probe: 0 due (charge, send 5); 7 taken over; 24 due (probe) = verifying
no probe: 0 due (charge, send 5); 0 err (release 15); 1 taken over = failed

an operation that is looked up
probe: 0 due (charge, send 5); 1 pending; 4 due (look up); 5 looked up none (probe); 14 absent; 15 absent; 60 unreadable (release 65) = timeout: 1 showed an absence, 1 could not tell
probe: 0 due (charge, send 5); 1 pending; 4 due (look up); 5 looked up nothing = polling until 8
probe: 0 due (charge, send 5); 1 pending; 4 due (look up); 5 looked up not sent = polling until 8
probe: 0 due (charge, send 5); 1 pending; 4 due (look up); 5 looked up pending = polling until 8
probe: 0 due (charge, send 5); 1 pending; 4 due (look up); 5 not looked up = polling until 8
probe: 0 due (charge, send 5); 1 pending; 4 due (look up); 59 not looked up = polling until 60

a target that is gone
probe, idempotent, gone: 0 due (release 0) = failed: no request ever left, so nothing was done; its mill was removed.
baseline, idempotent, gone: 0 found (release 0) = failed: no request ever left, so nothing was done; its mill was removed.
baseline, idempotent, gone@1: 0 due (read); 1 no baseline (release 1) = failed: no request ever left, so nothing was done; its mill was removed.
probe, idempotent, gone@2: 0 due (charge, send 5); 0 not sent; 2 due (reversal, release 2) = failed: no request ever left, so nothing was done; its mill was removed.
probe, idempotent, gone@1: 0 due (charge, send 5); 1 ok (probe); 15 unreadable; 18 unreadable; 60 unreadable (release 60) = timeout
probe, idempotent, gone@1: 0 due (charge, send 5); 1 none (probe); 15 unreadable; 18 unreadable; 60 unreadable (release 65) = timeout
probe, idempotent, gone@1: 0 due (charge, send 5); 1 pending; 60 not looked up (probe); 60 unreadable (release 70) = timeout

cool-downs
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 2 present (release 15) = success
probe, idempotent: 0 due (charge, send 5); 0 pending; 6 looked up ok (probe); 7 present (release 16) = success
probe, idempotent: 0 due (charge, send 5); 0 err (probe); 11 absent (release 15) = failed
probe, idempotent: 0 due (charge, send 5); 0 none (probe); 2 present (release 65) = success
probe, idempotent: 0 due (charge, send 5); 0 ok (probe); 10 absent; 30 absent (refund, release 30) = failed_silent
baseline: 0 due (read); 0 baseline (charge, send 5); 0 ok (probe); 2 present (release 2) = success
baseline: 0 due (read); 0 baseline (charge, send 5); 0 none (probe); 2 present (release 65) = success
";

#[test]
fn every_row_of_the_decision_table_ends_as_it_says() {
    let lived: Vec<_> =
        TABLE.trim().lines().map(|row| if row.contains(": ") { live(row).row } else { row.to_owned() }).collect();
    assert_eq!(lived.join("\n"), TABLE.trim(), "{}", lived.join("\n"));
}

pub(super) struct Life {
    pub(super) task: Task,
    pub(super) entries: Vec<Entry>,
    /// As the machine makes it.
    row: String,
}

/// Carries out the events of a row, and reads neither its effects nor its end.
pub(super) fn live(row: &str) -> Life {
    let (given, events) = row.split_once(": ").expect("the policy");
    let (events, end) = events.split_once(" = ").unwrap_or((events, ""));
    let words: Vec<_> = given.split(", ").collect();
    let needs = ["probe", "baseline"].iter().find(|name| words.contains(*name));
    let probe = needs.and_then(|name| probe(*name == "baseline"));
    let mut task = Task::new(policy(probe, words.contains(&"idempotent")), at(0));
    let (mut all, mut lived) = (Vec::new(), Vec::new());
    for event in events.split("; ") {
        let (event, _) = event.split_once(" (").unwrap_or((event, ""));
        let (second, what) = event.split_once(' ').expect("a second");
        let second = second.parse().expect("a second");
        let Step { task: next, entries, effect } = step(task.clone(), parse(what), at(second), facts(&words, second));
        let noted =
            RecordedEvent { event: Event::Due, obstacle: None, unreadable: None, resend: Resend::of(&task, effect) };
        let again = TimelineEntry::Event(noted).to_string().replace("due", "").replace("; sent again,", " again");
        all.extend(&entries);
        let entries = entries.into_iter().map(|entry| match entry {
            Entry::Release(until) => format!("release {}", seconds(until)),
            entry => entry.kind().expect("a kind").to_owned(),
        });
        let effect = effect.map(|effect| match effect {
            Effect::Send(not_after) => format!("send {}{again}", seconds(not_after)),
            Effect::Baseline => "read".to_owned(),
            Effect::LookUp => "look up".to_owned(),
            Effect::Probe => "probe".to_owned(),
        });
        let done: Vec<_> = entries.chain(effect).collect();
        lived.push(if done.is_empty() { event.to_owned() } else { format!("{event} ({})", done.join(", ")) });
        task = next;
    }
    let row = format!("{given}: {} = {}", lived.join("; "), spell_end(&task, end));
    Life { task, entries: all, row }
}

fn seconds(at: Timestamp) -> u64 {
    at.since(self::at(0)).as_secs()
}

/// Returns the facts that hold from the latest time until `now`.
fn facts(words: &[&str], now: u64) -> Facts {
    let is_gone = |word: &&str| {
        *word == "gone" || word.strip_prefix("gone@").is_some_and(|at| now >= at.parse().expect("a second"))
    };
    let mut facts =
        Facts { dedupes: words.contains(&"dedupes"), looks_up: words.contains(&"looks up"), ..Facts::default() };
    facts.gone = words.iter().any(is_gone).then_some("its mill was removed");
    for word in words {
        let (direction, from) = word.split_once('@').unwrap_or((word, "0"));
        let known = DIRECTIONS.iter().find(|(name, _)| *name == direction);
        let known = known.filter(|_| now >= from.parse().expect("a second"));
        facts.provability = known.map_or(facts.provability, |(_, provability)| *provability);
    }
    facts
}

pub(super) fn parse_sent(answer: &str) -> Option<Sent> {
    let refused =
        |precedes_act, is_busy| Sent::Refused(Refusal { code: 429, why: "too many".into(), precedes_act, is_busy });
    Some(match answer {
        "ok" => Sent::Ok,
        "err" => Sent::Err("jam".into()),
        "none" => Sent::NoAnswer("reset".into()),
        "unsure" => Sent::Unsure("status -4".into()),
        "busy" => refused(false, true),
        "refused" => refused(false, false),
        "refused before" => refused(true, false),
        "not sent" => Sent::NotSent("refused".into()),
        "pending" => Sent::Pending("7".into()),
        _ => return None,
    })
}

fn parse(event: &str) -> Event {
    let verdicts = [Verdict::Present, Verdict::Absent, Verdict::Unreadable, Verdict::Undecidable];
    match event {
        "due" => Event::Due,
        "found" => Event::Found,
        "taken over" => Event::TakenOver,
        "baseline" => Event::Baseline(Some("a".into())),
        "no baseline" => Event::Baseline(None),
        "not looked up" => Event::LookedUp(None),
        _ if event.starts_with("looked up ") => Event::LookedUp(Some(parse_sent(&event["looked up ".len()..]))),
        _ => match parse_sent(event) {
            Some(sent) => Event::Sent(sent),
            None => reading(verdicts.into_iter().find(|verdict| verdict.as_str() == event).expect(event)),
        },
    }
}

fn spell_end(task: &Task, end: &str) -> String {
    let state = task.phase.as_str();
    let Some(evidence) = task.evidence() else {
        return task.wake_at.map_or_else(|| state.to_owned(), |until| format!("{state} until {}", seconds(until)));
    };
    let said = format!(
        "{}; {}. {}",
        evidence.reported.as_str(),
        evidence.observed.as_str(),
        explain_end(task).unwrap_or_default()
    );
    match end.split_once(": ") {
        Some((_, words)) if said.contains(words) => format!("{state}: {words}"),
        Some(_) => format!("{state}: {said}"),
        None => state.to_owned(),
    }
}
