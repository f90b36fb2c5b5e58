//! The stored views of phones that were shown.

use super::*;
use toolwarrant::base::SplitMix;

/// More than a piece of the table.
const PHONES: u32 = 200;

#[tokio::test]
async fn a_phone_is_shown_as_it_is_at_any_time_and_its_view_is_remade_only_after_a_change() {
    let sim = sim(3, PHONES);
    let mut draw = SplitMix(1);
    let mut before = sim.list_page(None, 200).unwrap();
    let mut changes = 0;
    for number in 0..200 {
        let what = ["set_proxy", "set_proxy 192.0.2.1", "clear_proxy", "boot", "shutdown", "restart"];
        let index = 1 + draw.below(if number % 2 == 0 { 23 } else { PHONES.into() }) as u32;
        if sim.part(index) != Part::LosingCommands
            && sim.part(index) != Part::LosingAnswers
            && sim.part(index) != Part::Slow
        {
            send(&sim, number, index, what[draw.below(6) as usize]).await;
        }
        wait(&sim, draw.below(4_000));
        let listed = sim.list_page(None, 200).unwrap();
        for ((index, seen), before) in (1..=PHONES).zip(&listed).zip(&before) {
            assert_eq!(seen.snapshot, sim.snapshot(&sim.phone(index, sim.clock.now())));
            assert_eq!(Arc::ptr_eq(seen, before), seen == before, "{index}: {before:?}");
            let AtHand::Now(Ok(Some(at_hand))) = sim.at_hand(&device_id(index)) else { panic!("no {index}") };
            assert!(Arc::ptr_eq(seen, &at_hand) && Arc::ptr_eq(seen, &read(&sim, index)));
            changes += usize::from(seen != before);
        }
        before = listed;
    }
    assert!(changes > 100, "{changes}");
}
