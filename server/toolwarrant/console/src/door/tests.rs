//! Codes and sessions, on a clock that the tests move.

use super::*;
use toolwarrant_core::act::{Channel, Claims, Role};

fn door() -> (Door, impl Fn(u64)) {
    let clock = Clock::manual(Timestamp(1_800_000_000_000));
    let moved = clock.clone();
    (Door::new(clock, Random::from_seed(1)), move |seconds| moved.advance(Duration::from_secs(seconds)))
}

fn operator(role: Role) -> Operator {
    Operator { role, name: "ada".to_owned(), uid: 7, channel: Channel::Console, claims: Claims::default() }
}

fn code(door: &Door) -> String {
    door.make_code(operator(Role::View)).expect("a code").0
}

#[test]
fn a_code_works_once_for_a_minute_and_a_guess_never_does() {
    let (door, pass) = door();
    let sent = code(&door);
    assert_eq!(sent.len(), 32, "128 bits");
    for guess in ["", "0", &"0".repeat(32), &sent[..31], &sent.to_uppercase()] {
        assert_eq!(door.enter(guess), None, "{guess}");
    }
    assert!(door.enter(&sent).is_some_and(|secret| secret.len() == 64 + ".ada".len()), "256 bits");
    assert_eq!(door.enter(&sent), None);
    let [in_time, late] = [code(&door), code(&door)];
    pass(59);
    assert!(door.enter(&in_time).is_some());
    pass(1);
    assert_eq!(door.enter(&late), None);
}

#[test]
fn a_session_has_the_operator_of_its_link_and_ends_when_idle_or_old() {
    let (door, pass) = door();
    let (code, _) = door.make_code(operator(Role::Operate)).expect("a code");
    let secret = door.enter(&code).expect("a session");
    assert_eq!(door.admit(&secret, true).map(|visitor| visitor.operator), Some(operator(Role::Operate)));
    assert!(door.admit(&code, true).is_none());
    assert!(!format!("{:?}", door.list()).contains(&secret[..8]), "the list has no secret");
    for _ in 0..23 {
        pass(29 * 60);
        assert!(door.admit(&secret, true).is_some());
    }
    pass(29 * 60);
    assert!(door.admit(&secret, true).is_some(), "11 h 36 min");
    pass(24 * 60);
    assert!(door.admit(&secret, true).is_none(), "12 h");
    let (code, _) = door.make_code(operator(Role::View)).expect("a code");
    let secret = door.enter(&code).expect("a session");
    pass(29 * 60);
    assert!(door.admit(&secret, false).is_some());
    pass(60);
    assert!(door.admit(&secret, true).is_none(), "a window that waits keeps no session");
    assert!(door.is_unused());
}

#[test]
fn ten_thousand_logins_leave_the_latest_32_sessions() {
    let (door, _) = door();
    let secrets: Vec<_> = (0..10_000).map(|_| door.enter(&code(&door)).expect("a session")).collect();
    let live = |secret: &&String| door.admit(secret, true).is_some();
    assert_eq!(secrets.iter().filter(live).count(), SESSIONS_MAX);
    assert!(live(&&secrets[9_999]) && live(&&secrets[9_968]) && !live(&&secrets[9_967]));
    assert_eq!(door.end(None).len(), SESSIONS_MAX);
    assert!(secrets.iter().all(|secret| !live(&secret)));
}

#[test]
fn a_form_is_taken_once_and_only_in_its_own_session() {
    let (door, _) = door();
    let [one, other] =
        [(); 2].map(|()| door.enter(&code(&door)).and_then(|secret| door.admit(&secret, true)).expect("one"));
    let form = door.make_form(&one);
    assert!(!door.take_form(&other, &form) && !door.take_form(&one, "") && !door.take_form(&one, "0"));
    assert!(door.take_form(&one, &form) && !door.take_form(&one, &form));
}

#[test]
fn a_user_has_300_pages_a_minute_in_all_sessions_and_8_at_a_time() {
    let (door, pass) = door();
    let visitor = |uid| Visitor { session: String::new(), operator: Operator { uid, ..operator(Role::View) } };
    let turn = |uid| door.take_turn(&visitor(uid));
    let held: Vec<_> = (0..20).filter_map(|_| turn(7)).collect();
    assert_eq!(held.len(), PAGES_AT_ONCE);
    drop(held);
    assert_eq!((0..400).filter(|_| turn(7).is_some()).count(), 300 - PAGES_AT_ONCE);
    assert!(turn(8).is_some(), "another user");
    pass(59);
    assert!(turn(7).is_none());
    pass(2);
    assert!(turn(7).is_some());
}

#[test]
fn a_user_ends_no_session_and_no_code_of_another() {
    let (door, _) = door();
    let bea = || Operator { uid: 8, ..operator(Role::Operate) };
    let sent = door.make_code(bea()).expect("a code").0;
    let others = door.make_code(bea()).expect("a code").0;
    let others = door.enter(&others).expect("a session");
    let first = door.enter(&code(&door)).expect("a session");
    for _ in 0..SESSIONS_MAX {
        assert!(door.enter(&code(&door)).is_some());
    }
    (0..=CODES_MAX).for_each(|_| _ = code(&door));
    assert!(door.admit(&first, true).is_none(), "the oldest of the user's own");
    assert!(door.admit(&others, true).is_some() && door.enter(&sent).is_some());
    assert_eq!(door.list().len(), SESSIONS_MAX + 2, "two of the other user");
}
