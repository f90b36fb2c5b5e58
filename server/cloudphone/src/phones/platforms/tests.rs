use super::*;
use crate::phones::tests::{Staged, id, name, phone};
use proptest::prelude::*;

fn fleet(ids: &[String], names: &[&str]) -> Platforms {
    names.iter().fold(Platforms::default(), |fleet, text| {
        let own = ids.iter().filter(|id| id.starts_with(&format!("{text}-")));
        let phones = Some(own.map(|id| phone(id, None)).collect());
        fleet.with(name(text), Arc::new(Staged { phones, ..Staged::default() }))
    })
}

/// Names whose ids are easily put in the wrong order: `a-…` comes before `a1-…`, and `a-9` before
/// `a0-0`.
const NAMES: [&str; 5] = ["a", "a0", "a1", "ab", "b"];

proptest! {
    #[test]
    fn pages_of_any_size_from_anywhere_are_the_phones_of_all_platforms_in_the_order_of_their_ids(
        ids in prop::collection::btree_set((0..5_usize, "[a-z0-9-]{0,3}"), 0..40),
        after in prop::option::of("[a-b][0-9b-]{0,3}"),
        limit in 1..8_u16,
    ) {
        let mut ids: Vec<String> = ids.into_iter().map(|(index, rest)| format!("{}-{rest}", NAMES[index])).collect();
        ids.sort_unstable();
        let fleet = fleet(&ids, &NAMES);
        let mut after = after.map(|after| id(&after));
        let expected: Vec<_> = ids.iter().filter(|id| after.as_ref().is_none_or(|after| id.as_str() > after.as_str())).collect();
        let mut seen = Vec::new();
        loop {
            let page = fleet.list_page(after.as_ref(), limit).unwrap();
            after = page.last().map(|phone| phone.id.clone());
            let full = page.len() == usize::from(limit);
            seen.extend(page.into_iter().map(|phone| phone.id.to_string()));
            if !full {
                break;
            }
        }
        prop_assert!(seen.iter().eq(expected), "{seen:?}");
    }
}

#[test]
fn a_platform_that_fails_is_named_until_it_is_read_and_takes_nothing_from_the_others() {
    let fleet = fleet(&["a-1", "b-1"].map(str::to_owned), &["a", "b"]).with(name("ab"), Arc::<Staged>::default());
    assert_eq!(fleet.list_unread(), []);
    assert_eq!(fleet.list_page(None, 9).unwrap().len(), 2);
    assert_eq!(fleet.list_unread(), [(name("ab"), None)]);
}

#[test]
fn the_failure_of_the_only_platform_is_that_of_the_list() {
    let fleet = Platforms::default().with(name("a"), Arc::<Staged>::default());
    assert!(fleet.list_page(None, 9).is_err() && fleet.read(&["a-1"], &mut |_| ()).is_err());
    assert_eq!(fleet.list_unread(), [(name("a"), None)]);
}

#[test]
fn a_phone_of_a_platform_that_is_not_configured_is_not_there() {
    let fleet = fleet(&["a-1".to_owned()], &["a"]);
    let mut found = Vec::new();
    let see = &mut |phones: &[&Arc<DeviceSnapshot>]| found.extend(phones.iter().map(|phone| phone.id.to_string()));
    fleet.read(&["a-1", "c-1", "a-2", "nothing"], see).unwrap();
    assert_eq!(found, ["a-1"]);
    assert!(fleet.of(&id("a-2")).is_ok());
    let Err(Unreachable(why)) = fleet.of(&id("c-1")) else { panic!("it has a platform") };
    assert_eq!(why.as_str(), "the platform of c-1 is not configured");
}
