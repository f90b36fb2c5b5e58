//! An answer has the same bytes however it is made. Stored values stay within their budget.

use super::*;
use crate::catalogue::BodyDef;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use toolwarrant_base::json;
use toolwarrant_base::text::Secret;

#[derive(Clone, Debug, Serialize)]
struct Row {
    name: String,
    sizes: Vec<Option<i64>>,
}

#[derive(Clone, Debug, Serialize)]
struct Page {
    rows: Vec<Row>,
    next: Option<String>,
    more: Vec<Row>,
}

impl TargetIds for Row {}
impl TargetIds for Page {}
impl TargetIds for &str {}
impl TargetIds for String {}
impl TargetIds for BTreeMap<(), ()> {}

impl ListResult for Page {
    type Item = Row;
    const OPEN: &'static str = "{\"rows\":[";
}

const CLOSE: &str = ",\"isError\":false}}";

const FRAMES: [Frame<'_>; 3] = [Frame::Plain, text(None), text(Some(",\"structuredContent\":"))];

const fn text(between: Option<&str>) -> Frame<'_> {
    Frame::Text { open: ["{\"id\":", "\"7\"", ",\"text\":\""], more: ",7", body: "", between, close: CLOSE }
}

fn bytes<T: Serialize + TargetIds>(reply: Reply<T>, frame: Frame<'_>) -> Vec<u8> {
    Bytes::from(reply.answer(frame).expect("JSON")).to_vec()
}

fn row() -> impl Strategy<Value = Row> {
    (any::<String>(), any::<Vec<Option<i64>>>()).prop_map(|(name, sizes)| Row { name, sizes })
}

fn page() -> impl Strategy<Value = Page> {
    let rows = || proptest::collection::vec(row(), 0..6);
    (rows(), any::<Option<String>>(), rows()).prop_map(|(rows, next, more)| Page { rows, next, more })
}

proptest! {
    #[test]
    fn a_listing_is_the_bytes_of_the_whole_value_in_every_frame(page in page(), cut in any::<prop::sample::Index>()) {
        let rendered: Vec<_> = page.rows.iter().map(Rendered::of).collect();
        let (first, second) = rendered.split_at(cut.index(rendered.len() + 1));
        for frame in FRAMES {
            let mut listing = ListWriter::<Page>::begin(frame);
            for part in [first, second] {
                listing.extend(&part.iter().collect::<Vec<_>>());
            }
            let listed = listing.finish(Page { rows: Vec::new(), ..page.clone() });
            prop_assert_eq!(bytes(listed, frame), bytes(page.clone().into(), frame));
        }
    }

    #[test]
    fn a_rendered_value_is_the_bytes_of_the_value_in_every_frame(page in page()) {
        for frame in FRAMES {
            prop_assert_eq!(bytes(Rendered::of(&page).reply(frame), frame), bytes(page.clone().into(), frame));
        }
    }

    #[test]
    fn a_value_stands_in_its_frame_as_plain_json_and_as_a_quoted_text(page in page(), spaced in any::<bool>()) {
        let json = match spaced {
            true => serde_json::to_string_pretty(&page).expect("JSON"),
            false => serde_json::to_string(&page).expect("JSON"),
        };
        let value: &serde_json::value::RawValue = json::read(&json).expect("JSON");
        let quoted = serde_json::to_string(&json).expect("JSON");
        let head = "{\"id\":\"7\",\"text\":";
        let expected = [
            json.clone(),
            format!("{head}{quoted}}},7]{CLOSE}"),
            format!("{head}{quoted}}},7],\"structuredContent\":{json}{CLOSE}"),
        ];
        for (frame, expected) in FRAMES.into_iter().zip(expected) {
            let answer = Answer::of(&value, frame).expect("JSON");
            prop_assert!(matches!(frame, Frame::Plain) || answer.body.bytes.capacity() == expected.len());
            prop_assert_eq!(String::from_utf8(answer.body.bytes.clone()), Ok(expected));
        }
    }
}

#[test]
fn answers_are_joined_to_a_list() {
    let list = |answers: &[&str]| {
        let answers: Vec<_> = answers.iter().map(|text| Answer::from(text.as_bytes().to_vec())).collect();
        Bytes::from(Answer::list(&answers))
    };
    assert_eq!(list(&["1"]), "[1]");
    assert_eq!(list(&["{}", "[2]", "3"]), "[{},[2],3]");
}

#[test]
fn what_does_not_fit_the_budget_is_made_for_each_answer_and_what_is_dropped_makes_room() {
    let (made, frame) = (Cell::new(0), FRAMES[1]);
    let length = Rendered::of(&"a text").len();
    let budget = Arc::new(RenderBudget::new(2 * length - 1));
    let [first, second] = [(); 2].map(|()| Prepared::within(&budget));
    let answer = |prepared: &Prepared<&'static str>| {
        let reply = prepared.reply(frame, || {
            made.set(made.get() + 1);
            "a text"
        });
        assert_eq!(bytes(reply, frame), bytes("a text".into(), frame));
        (made.take(), budget.left.load(Relaxed))
    };
    assert_eq!([answer(&first), answer(&first)], [(1, length - 1), (0, length - 1)]);
    assert_eq!([answer(&second), answer(&second)], [(1, length - 1), (1, length - 1)]);
    drop(first);
    assert_eq!([answer(&second), answer(&second)], [(1, length - 1), (0, length - 1)]);
    drop(second);
    assert_eq!(budget.left.load(Relaxed), 2 * length - 1);
}

#[test]
fn an_answer_with_a_secret_is_one_to_wipe_however_it_is_made() {
    #[derive(Serialize)]
    struct Codes {
        codes: Vec<Secret<String>>,
        last: Option<Secret<String>>,
    }
    impl TargetIds for Codes {}
    impl ListResult for Codes {
        type Item = Secret<String>;
        const OPEN: &'static str = "{\"codes\":[";
    }
    let secret = || Secret::new("hunter2".to_owned());
    for frame in FRAMES {
        let has_secret = |reply: Reply<_>| reply.answer(frame).expect("JSON").body.has_secret;
        let listed = |items: &[Rendered<Secret<String>>], last| {
            let mut listing = ListWriter::<Codes>::begin(frame);
            listing.extend(&items.iter().collect::<Vec<_>>());
            has_secret(listing.finish(Codes { codes: Vec::new(), last }))
        };
        assert!(has_secret(Codes { codes: vec![secret()], last: None }.into()));
        assert!(has_secret(Rendered::of(&Codes { codes: vec![secret()], last: None }).reply(frame)));
        assert!(listed(&[Rendered::of(&secret())], None) && listed(&[], Some(secret())));
        assert!(!listed(&[], None));
        let answers = [Answer::from(Vec::new()), Answer::of(&secret(), frame).expect("JSON")];
        assert!(Answer::list(&answers).body.has_secret && !Answer::list(&answers[..1]).body.has_secret);
    }
}

#[test]
fn a_value_that_is_no_json_fails_its_answer_and_takes_no_budget() {
    let broken = || BTreeMap::from([((), ())]);
    let budget = Arc::new(RenderBudget::new(1_000));
    let prepared = Prepared::within(&budget);
    for reply in [Reply::from(broken()), Rendered::of(&broken()).reply(FRAMES[1]), prepared.reply(FRAMES[1], broken)] {
        assert!(reply.answer(FRAMES[1]).is_err());
    }
    assert_eq!(budget.left.load(Relaxed), 1_000);
}

#[test]
fn a_body_leaves_the_object_for_a_block_of_its_own_and_is_made_from_a_value_alone() {
    let page = Page { rows: Vec::new(), next: Some("a \"b\"\n".to_owned()), more: Vec::new() };
    let body = Some(BodyDef { field: "next", is_picture: false });
    let to = |frame: Frame<'static>| Recipient { body, ..frame.into() };
    let bytes = |frame| Bytes::from(Reply::from(page.clone()).answer(to(frame)).expect("JSON"));
    let whole = serde_json::to_string(&page).expect("JSON");
    assert_eq!(bytes(Frame::Plain), whole);
    let blocks = r#"{\"rows\":[],\"more\":[]}"},{"type":"text","text":"a \"b\"\n"},7]"#;
    for frame in &FRAMES[1..] {
        assert_eq!(bytes(*frame), format!("{{\"id\":\"7\",\"text\":\"{blocks}{CLOSE}"));
        assert!(Rendered::of(&page).reply(to(*frame)).answer(to(*frame)).is_err());
    }
    assert!(Rendered::of(&page).reply(to(Frame::Plain)).answer(to(Frame::Plain)).is_ok());
}
