//! The screens after touches and keys, and the readings of the same phones.

use super::*;
use crate::phones::port::{Screen, ScreenError};
use crate::platforms::simulator::fleet::Network;
use serde_json::{Value, json};
use toolwarrant::base::json;
use toolwarrant::text::deceives;

const NOTES: [u32; 2] = [112, 420];
const SETTINGS: [u32; 2] = [248, 420];
const BACK: [u32; 2] = [40, 70];
const SWITCH: [u32; 2] = [298, 135];

async fn put(sim: &Sim, index: u32, input: Value) -> Result<(), ScreenError> {
    sim.input(&device_id(index), &json::convert(&input).unwrap()).await
}

pub(super) async fn touch_switch(sim: &Sim, index: u32) {
    for [x, y] in [BACK, SETTINGS, SWITCH, BACK] {
        put(sim, index, json!({"touch": {"x": x, "y": y}})).await.unwrap();
    }
}

async fn draw(sim: &Sim, index: u32) -> String {
    String::from_utf8(sim.still(&device_id(index)).await.unwrap().bytes().to_vec()).unwrap()
}

async fn check(sim: &Sim, index: u32, shown: &[&str]) {
    let drawing = draw(sim, index).await;
    assert!(shown.iter().all(|text| drawing.contains(&format!(">{text}<"))), "{shown:?}: {drawing}");
}

#[tokio::test]
async fn a_person_types_a_note_and_switches_a_proxy_off_until_a_command_sets_one() {
    let sim = sim(3, 12);
    check(&sim, 1, &["08:00 UTC", "Phone 1", "Running", "2001:db8::1", "none"]).await;
    let swipe = json!({"swipe": {"from": {"x": 180, "y": 630}, "to": {"x": 180, "y": 300}, "milliseconds": 100}});
    let keys = [json!({"key": "enter"}), json!({"text": "&cd"}), json!({"key": "backspace"})];
    let notes = json!({"touch": {"x": NOTES[0], "y": NOTES[1]}});
    for input in [json!({"text": "nowhere"}), notes, json!({"text": "a <b>"})].into_iter().chain(keys) {
        put(&sim, 1, input).await.unwrap();
    }
    check(&sim, 1, &["a &lt;b&gt;", "&amp;c<tspan fill=\"#2450c8\">|"]).await;
    assert!(!draw(&sim, 1).await.contains("nowhere"));
    for (key, is_black) in [("power", true), ("home", true), ("wake", false), ("wake", false)] {
        put(&sim, 1, json!({"key": key})).await.unwrap();
        assert_eq!(!draw(&sim, 1).await.contains(">Notes<"), is_black, "{key}");
    }
    put(&sim, 1, swipe).await.unwrap();
    put(&sim, 1, json!({"touch": {"x": SETTINGS[0], "y": SETTINGS[1]}})).await.unwrap();
    check(&sim, 1, &["no proxy is set"]).await;

    let on = observe(&sim, 10).await;
    touch_switch(&sim, 10).await;
    check(&sim, 10, &["2001:db8::a", "none"]).await;
    let off = observe(&sim, 10).await;
    assert_eq!(off, (on.0, on.1, None, Some(Network::Phones.address(10)), on.4.clone()));
    touch_switch(&sim, 10).await;
    assert_eq!((observe(&sim, 10).await, sim.deeds_of(&device_id(10))), (on, Vec::new()));
    touch_switch(&sim, 10).await;
    send(&sim, 1, 10, "set_proxy").await;
    wait(&sim, 5_000);
    assert_eq!(read(&sim, 10).proxy.as_ref().unwrap().host.as_str(), "proxy.example.com");
    check(&sim, 10, &["http://proxy.example.com:8080"]).await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/phone.svg");
    assert_eq!(std::fs::read_to_string(page).unwrap(), draw(&sim, 10).await, "docs/phone.svg is this drawing");
}

#[tokio::test]
async fn only_a_phone_that_can_be_read_and_runs_has_a_picture_and_takes_input() {
    let sim = sim(3, 12);
    for (index, why) in [(2, "the phone is stopped"), (4, "the phone cannot be read"), (13, "no such phone")] {
        assert!(sim.still(&device_id(index)).await.unwrap_err().to_string().ends_with(why));
        put(&sim, index, json!({"key": "home"})).await.unwrap_err();
    }
    check(&sim, 3, &["Starting…"]).await;
    put(&sim, 3, json!({"key": "home"})).await.unwrap_err();
    let without: Vec<_> = (1..=12).filter(|index| sim.screen(&device_id(*index)).is_none()).collect();
    assert_eq!(without, [7, 11]);
    sim.cut();
    sim.still(&device_id(1)).await.unwrap_err();
}

/// Checks that tags are closed in order, and that text has no other mark-up.
fn check_svg(drawing: &str) {
    let mut open = Vec::new();
    for piece in drawing.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect(drawing);
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{drawing}"),
            None if tag.ends_with('/') => {}
            None => open.extend(tag.split(' ').next()),
        }
        let mut entities = text.split('&').skip(1);
        assert!(entities.all(|rest| ["amp;", "lt;", "gt;"].iter().any(|name| rest.starts_with(name))), "{drawing}");
        assert!(!text.contains('>') && tag.split('"').count() % 2 == 1 && !tag.contains("script"), "{drawing}");
    }
    assert!(open.is_empty() && !drawing.contains(|c| c != '\n' && (deceives(c) || c == '\u{ffff}')), "{drawing}");
}

#[tokio::test]
async fn a_drawing_is_well_formed_after_any_input_and_with_any_text() {
    let (sim, mut random) = (sim(3, 12), SplitMix(1));
    let hostile: Vec<_> = "<>&\"'a \u{202e}\u{ffff}\u{e0001}漢😀]]><script>".chars().collect();
    for _ in 0..3_000 {
        let typed = (0..=random.below(80)).map(|_| hostile[random.below(hostile.len() as u64) as usize]);
        let typed = json!({"text": typed.collect::<String>()});
        let mut point = || json!({"x": random.below(400), "y": random.below(700)});
        let swipe = json!({"swipe": {"from": point(), "to": point(), "milliseconds": 1}});
        let keys = ["home", "enter", "backspace", "up", "power", "wake"].map(|key| json!({"key": key}));
        let touches = [NOTES, NOTES, SETTINGS, SWITCH, BACK].map(|[x, y]| json!({"touch": {"x": x, "y": y}}));
        let inputs = [&[typed, swipe, json!({"touch": point()})], &keys[..], &touches[..]].concat();
        put(&sim, 12, inputs[random.below(inputs.len() as u64) as usize].clone()).await.unwrap();
        check_svg(&draw(&sim, 12).await);
    }
}
