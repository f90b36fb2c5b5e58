//! Acts: they are stored with their change or not at all, and are found again by each filter.

use super::*;
use toolwarrant_core::act::{Act, ActFilter, Changes, Channel, Claims, Operator, Role, StoredAct};

pub fn act(n: u64, operator: &str, command: &str, object: Option<&str>) -> Act {
    let claims = Claims { reason: Some(format!("reason {n}")), ..Claims::default() };
    let operator = Operator { role: Role::Owner, name: operator.to_owned(), uid: 7, channel: Channel::Offline, claims };
    let changes = Changes::of("state", "one", "other");
    Act {
        id: format!("act_{n}"),
        at: Timestamp(n),
        operator,
        command: command.to_owned(),
        object: object.map(str::to_owned),
        changes,
    }
}

fn number(number: u64, act: &Act) -> StoredAct {
    StoredAct { number, act: act.clone() }
}

fn all() -> ActFilter {
    ActFilter { limit: 100, ..ActFilter::default() }
}

pub async fn an_act_is_stored_with_its_change_or_not_at_all(store: Arc<dyn Store>) {
    let [first, second, third] = [1, 2, 3].map(|n| act(n, "alice", "app create", Some("a")));
    store.put_application(application("a", "first"), vec![first.clone()]).await.unwrap();
    store.put_application(application("b", "first"), vec![second.clone()]).await.unwrap_err();
    store.put_key(key("k", "a", &[1, 1, 1]), vec![second]).await.unwrap_err();
    assert_eq!(store.acts(all()).await.unwrap(), [number(1, &first)]);
    // A write whose answer was late is repeated.
    for acts in [vec![third.clone()], vec![third.clone()], vec![]] {
        store.put_key(key("k", "a", &[1]), acts).await.unwrap();
    }
    assert_eq!(store.acts(all()).await.unwrap(), [number(2, &third), number(1, &first)]);
    store.confirm_keys(vec!["k".to_owned()], vec![act(4, "alice", "key confirm", None)]).await.unwrap_err();
    assert_eq!(store.acts(all()).await.unwrap().len(), 2);
}

pub async fn acts_are_found_newest_first_by_each_filter_and_in_pages(store: Arc<dyn Store>) {
    let acts = [
        act(1, "alice", "key create", Some("k1")),
        act(2, "bob", "key revoke", Some("k1")),
        act(3, "alice", "keyring", None),
        act(4, "alice", "key revoke", Some("k2")),
        act(5, "bob", "app rename", Some("a1")),
    ];
    store.put_acts(acts.to_vec()).await.unwrap();
    let text = |text: &str| Some(text.to_owned());
    for (filter, found) in [
        (all(), &[5, 4, 3, 2, 1][..]),
        (ActFilter { operator: text("alice"), ..all() }, &[4, 3, 1]),
        (ActFilter { object: text("k1"), ..all() }, &[2, 1]),
        (ActFilter { object: text("k1"), operator: text("bob"), ..all() }, &[2]),
        (ActFilter { command: text("key"), ..all() }, &[4, 2, 1]),
        (ActFilter { command: text("key revoke"), ..all() }, &[4, 2]),
        (ActFilter { command: text("app rename"), ..all() }, &[5]),
        (ActFilter { since: Some(Timestamp(2)), until: Some(Timestamp(4)), ..all() }, &[3, 2]),
        (ActFilter { limit: 2, ..all() }, &[5, 4]),
        (ActFilter { before: Some(3), limit: 1, ..all() }, &[2]),
        (ActFilter { object: text("k3"), ..all() }, &[]),
        (ActFilter { id: text("act_3"), ..all() }, &[3]),
        (ActFilter { id: text("act_3"), object: text("k1"), ..all() }, &[]),
    ] {
        let expected: Vec<_> = found.iter().map(|n| number(*n, &acts[*n as usize - 1])).collect();
        assert_eq!(store.acts(filter.clone()).await.unwrap(), expected, "{filter:?}");
    }
}

pub async fn acts_after_a_number_are_read_oldest_first(store: Arc<dyn Store>) {
    let acts = [1, 2, 3, 4].map(|n| act(n, "alice", "key revoke", None));
    store.put_acts(acts.to_vec()).await.unwrap();
    let read = async |after, limit| {
        let acts = store.acts_of_trail(after, limit).await.unwrap();
        acts.iter().map(|stored| stored.number).collect::<Vec<_>>()
    };
    assert_eq!(
        [read(0, 9).await, read(2, 9).await, read(0, 1).await, read(4, 9).await],
        [vec![1, 2, 3, 4], vec![3, 4], vec![1], vec![]]
    );
}
