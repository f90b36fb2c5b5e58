//! Tests of the fleet.

mod records;
mod screens;

use super::cast::WORK;
use super::*;
use crate::phones::contract::DeviceCapability;
use crate::phones::port::WritePort;
use std::net::IpAddr;
use std::time::Duration;
use toolwarrant::base::SplitMix;
use toolwarrant::tasks::{Leave, Sent, TaskId};

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn sim(seed: u64, devices: u32) -> Sim {
    Sim::new(seed, devices, Clock::manual(NOW), &[9; 32])
}

#[tokio::test]
async fn the_first_phones_play_their_parts_with_any_seed() {
    let mut casts = Vec::new();
    for seed in [0, 1, u64::MAX] {
        let (sim, mut cast) = (sim(seed, 23), String::new());
        for (part, phone) in CAST.iter().zip(sim.list_page(None, 200).unwrap()) {
            let session = sim.session(&phone.id, SessionMode::View).await.map(|session| session.expires_at);
            let expires_at = session.map(|time| time.map(|time| time.since(NOW))).map_err(|error| error.to_string());
            let offers = DeviceCapability::ALL.iter().filter(|capability| phone.offers(**capability));
            let offers: Vec<_> = offers.map(|capability| capability.as_str()).collect();
            let DeviceReading { name, state, spec, power_actions, proxy_schemes, proxy, .. } = &phone.snapshot;
            let state = state.filter(|_| *part != Part::Flapping);
            cast += &format!("{part:?}: {} {state:?} {offers:?} {power_actions:?} {proxy_schemes:?}", name.as_str());
            cast += &format!(" {proxy:?} {} {expires_at:?}\n", spec.model.is_some());
        }
        casts.push(cast);
    }
    casts.dedup();
    assert_eq!(casts.len(), 1);
    insta::assert_snapshot!(casts[0]);
}

#[tokio::test]
async fn the_fleet_is_a_function_of_seed_and_index() {
    let [small, large] = [sim(3, 500).list_page(None, 500).unwrap(), sim(3, 1_000_000).list_page(None, 500).unwrap()];
    assert_eq!(small, large);
    assert_ne!(small, sim(4, 500).list_page(None, 500).unwrap());
    let mut parts = (13..500).map(|index| fleet::draw(3, index).0);
    assert!(CAST.iter().all(|part| parts.clone().any(|drawn| drawn == *part)));
    assert!(parts.by_ref().filter(|part| *part == Part::Plain).count() > 200);
}

#[tokio::test]
async fn a_phone_is_read_by_the_id_that_pages_show_and_by_no_other() {
    let sim = sim(3, DEVICES_MAX + 5);
    let ids = [
        "phone-0000001",
        "phone-1000000",
        "phone-1000001",
        "phone-0000000",
        "phone-1",
        "phone-00000001",
        "phone-+000001",
    ];
    let found = sim.find_all(&ids).unwrap();
    assert_eq!(found.iter().map(|phone| &phone.id).collect::<Vec<_>>(), [&device_id(1), &device_id(1_000_000)]);
    let last = sim.list_page(Some(&device_id(999_998)), 200).unwrap();
    assert_eq!(last.iter().map(|phone| &phone.id).collect::<Vec<_>>(), [&device_id(999_999), &device_id(1_000_000)]);
    assert_eq!(found[1], last[1]);
}

#[tokio::test]
async fn tokens_depend_on_the_key_and_never_repeat() {
    async fn tokens(key: u8) -> [String; 2] {
        let sim = Sim::new(3, 12, Clock::manual(NOW), &[key; 32]);
        let session = async || sim.session(&device_id(1), SessionMode::Control).await.unwrap();
        [session().await, session().await].map(|session| session.token.expose().as_str().to_owned())
    }
    let [first, second] = tokens(1).await;
    assert_ne!(first, second);
    assert_eq!(first.len(), 64);
    assert_eq!([first.clone(), second], tokens(1).await);
    assert_ne!(first, tokens(2).await[0]);
}

fn request(number: u8) -> TaskId {
    TaskId::new(NOW, [number; 10])
}

fn command(index: u32, what: &str) -> Command {
    let id = device_id(index);
    let (tool, rest) = match what.split_once(' ').unwrap_or((what, "proxy.example.com")) {
        ("set_proxy", host) => {
            let login = r#""username":"MARVIN","password":"HUNTER2""#;
            ("set_proxy", format!(r#","scheme":"http","host":"{host}","port":8080,{login}"#))
        }
        ("clear_proxy", _) => ("clear_proxy", String::new()),
        (action, _) => ("set_power", format!(r#","action":"{action}""#)),
    };
    Command::read(tool, &format!(r#"{{"device_id":"{id}"{rest}}}"#)).unwrap()
}

async fn send(sim: &Sim, number: u8, index: u32, what: &str) -> Sent {
    sim.send(request(number), &command(index, what), leave(sim, sim.clock.now().plus(WORK))).await
}

fn leave(sim: &Sim, not_after: Timestamp) -> Leave {
    Leave::until(not_after, &sim.clock)
}

fn read(sim: &Sim, index: u32) -> Arc<DeviceSnapshot> {
    sim.find_all(&[device_id(index).as_str()]).unwrap().remove(0)
}

type ObservedPhone = (DeviceState, [bool; 2], Option<String>, Option<IpAddr>, Option<String>);

async fn observe(sim: &Sim, index: u32) -> ObservedPhone {
    let phone = read(sim, index);
    let flags = [DeviceCapability::Proxy, DeviceCapability::Session].map(|capability| phone.offers(capability));
    let proxy = phone.proxy.as_ref().map(|proxy| proxy.host.as_str().to_owned());
    let (exits, start) = (sim.exits(&device_id(index), None).await, sim.boot_id(&device_id(index)).await);
    (phone.state(), flags, proxy, exits.ok().map(|exits| exits.ordinary), start.ok().map(|start| start.value))
}

fn wait(sim: &Sim, millis: u64) {
    sim.clock.advance(Duration::from_millis(millis));
}

/// Sends random commands, and waits up to `millis` after each.
async fn play(sim: &Sim, random: &mut SplitMix, count: u32, millis: u64) {
    for _ in 0..count {
        let what = ["set_proxy", "set_proxy 192.0.2.7", "clear_proxy", "boot", "shutdown", "restart"];
        let (number, index) = (random.below(8) as u8, 1 + random.below(sim.devices.into()) as u32);
        let sent = send(sim, number, index, what[random.below(6) as usize]);
        tokio::select! { biased; _ = sent => {}, () = std::future::ready(()) => {} }
        wait(sim, random.below(millis));
    }
}

#[tokio::test]
async fn a_command_shows_for_five_seconds_on_its_way_and_commands_act_in_their_order() {
    let (sim, mut shown) = (sim(3, 23), String::new());
    let script: [(u64, &[(u32, &str)]); 9] = [
        (2_000, &[(1, "set_proxy"), (1, "shutdown"), (18, "shutdown")]),
        (2_999, &[(1, "boot")]),
        (1, &[]),
        (1_999, &[]),
        (1, &[]),
        (5_999, &[]),
        (1, &[]),
        (5_000, &[(1, "restart")]),
        (0, &[]),
    ];
    for (millis, commands) in script {
        for (index, what) in commands {
            send(&sim, 1, *index, what).await;
        }
        let [one, late] = [observe(&sim, 1).await, observe(&sim, 18).await];
        let time = sim.clock.now().since(NOW).as_millis();
        shown += &format!("{time}: {:?} {:?} {:?}, late: {:?}\n", one.0, one.2, one.4, late.0);
        wait(&sim, millis);
    }
    insta::assert_snapshot!(shown);
    let (id, operation) = (device_id(1), format!("operation-{}", NOW.0));
    let look_up = |number, operation| sim.look_up(&id, request(number), operation);
    assert!(matches!(look_up(1, Some(&*operation)).await, Ok(Some(Sent::Ok))));
    assert!(matches!(look_up(2, Some(&*operation)).await, Ok(None)));
    assert!(look_up(1, None).await.is_err());
}

#[tokio::test]
async fn a_phone_is_shown_as_it_is_at_any_time_and_its_view_is_remade_only_after_a_change() {
    let (sim, mut random, mut changes) = (sim(3, 200), SplitMix(1), 0);
    let mut before = sim.list_page(None, 200).unwrap();
    for _ in 0..200 {
        play(&sim, &mut random, 1, 4_000).await;
        let listed = sim.list_page(None, 200).unwrap();
        for ((index, seen), before) in (1..=200).zip(&listed).zip(&before) {
            let drawn = sim.draw(&sim.phones(), index, sim.clock.now());
            assert_eq!(seen.snapshot, drawn.reading());
            assert_eq!(Arc::ptr_eq(seen, before), seen == before, "{index}: {before:?}");
            let AtHand::Now(Ok(Some(at_hand))) = sim.at_hand(&device_id(index)) else { panic!("no {index}") };
            assert!(Arc::ptr_eq(seen, &at_hand) && Arc::ptr_eq(seen, &read(&sim, index)));
            changes += usize::from(seen != before);
        }
        before = listed;
    }
    assert!(changes > 100, "{changes}");
}
