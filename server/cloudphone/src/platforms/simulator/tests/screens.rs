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

/// Returns the labels of what is on the screen.
async fn draw(sim: &Sim, index: u32) -> Vec<String> {
    let listed = sim.elements(&device_id(index)).await.unwrap().unwrap();
    listed.iter().map(|element| element.label.as_str().to_owned()).collect()
}

async fn check(sim: &Sim, index: u32, shown: &[&str]) {
    let labels = draw(sim, index).await;
    assert!(shown.iter().all(|text| labels.iter().any(|label| label == text)), "{shown:?}: {labels:?}");
}

#[tokio::test]
async fn a_person_types_a_note_and_switches_a_proxy_off_until_a_command_sets_one() {
    let sim = sim(3, 12);
    check(&sim, 1, &["Phone 1", "Running", "2001:db8::1", "none"]).await;
    let swipe = json!({"swipe": {"from": {"x": 180, "y": 630}, "to": {"x": 180, "y": 300}, "milliseconds": 100}});
    let keys = [json!({"key": "enter"}), json!({"text": "&cd"}), json!({"key": "backspace"})];
    let notes = json!({"touch": {"x": NOTES[0], "y": NOTES[1]}});
    for input in [json!({"text": "nowhere"}), notes, json!({"text": "a <b>"})].into_iter().chain(keys) {
        put(&sim, 1, input).await.unwrap();
    }
    check(&sim, 1, &["a <b> &c"]).await;
    for (key, is_black) in [("power", true), ("home", true), ("wake", false), ("wake", false)] {
        put(&sim, 1, json!({"key": key})).await.unwrap();
        assert_eq!(draw(&sim, 1).await.is_empty(), is_black, "{key}");
        assert_eq!(sim.sleeps(&device_id(1)).await.unwrap(), is_black, "{key}");
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
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/phone.png");
    let still = sim.still(&device_id(10)).await.unwrap();
    assert_eq!(std::fs::read(page).unwrap(), *still.bytes(), "docs/phone.png is this drawing");
}

#[tokio::test]
async fn only_a_phone_that_can_be_read_and_runs_has_a_picture_and_takes_input() {
    let sim = sim(3, 12);
    for (index, why) in [(2, "the phone is stopped"), (4, "the phone cannot be read"), (13, "no such phone")] {
        assert!(sim.still(&device_id(index)).await.unwrap_err().to_string().ends_with(why));
        put(&sim, index, json!({"key": "home"})).await.unwrap_err();
    }
    check(&sim, 3, &["Starting"]).await;
    put(&sim, 3, json!({"key": "home"})).await.unwrap_err();
    let without: Vec<_> = (1..=12).filter(|index| sim.screen(&device_id(*index)).is_none()).collect();
    assert_eq!(without, [7, 11]);
    sim.cut();
    sim.still(&device_id(1)).await.unwrap_err();
}

#[tokio::test]
async fn an_input_of_any_text_and_at_any_point_leaves_a_whole_picture() {
    let (sim, mut random) = (sim(3, 12), SplitMix(1));
    let hostile: Vec<_> = "<>&\"'a \u{202e}\u{ffff}\u{e0001}漢😀".chars().collect();
    let (before, shown) = (sim.still(&device_id(12)).await.unwrap(), sim.elements(&device_id(12)).await.unwrap());
    for _ in 0..300 {
        let typed = (0..=random.below(80)).map(|_| hostile[random.below(hostile.len() as u64) as usize]);
        let typed = json!({"text": typed.collect::<String>()});
        let mut point = || json!({"x": random.below(400), "y": random.below(700)});
        let swipe = json!({"swipe": {"from": point(), "to": point(), "milliseconds": 1}});
        let keys = ["home", "enter", "backspace", "up", "power", "wake"].map(|key| json!({"key": key}));
        let touches = [NOTES, NOTES, SETTINGS, SWITCH, BACK].map(|[x, y]| json!({"touch": {"x": x, "y": y}}));
        let inputs = [&[typed, swipe, json!({"touch": point()})], &keys[..], &touches[..]].concat();
        put(&sim, 12, inputs[random.below(inputs.len() as u64) as usize].clone()).await.unwrap();
        assert_eq!(sim.still(&device_id(12)).await.unwrap().size(), before.size());
        let listed = sim.elements(&device_id(12)).await.unwrap().unwrap();
        assert!(listed.iter().all(|element| !element.label.as_str().contains(deceives)), "{listed:?}");
    }
    put(&sim, 12, json!({"key": "wake"})).await.unwrap();
    put(&sim, 12, json!({"key": "home"})).await.unwrap();
    assert_eq!(sim.elements(&device_id(12)).await.unwrap(), shown);
}
