use super::*;
use crate::phones::contract::{ClearProxyArgs, DeviceSpec};
use crate::phones::port::{DeviceReading, DeviceSnapshot, Offers, Paces, PhoneStart};
use proptest::prelude::*;
use toolwarrant::handler::Flag;
use toolwarrant::{Clock, Timestamp};

/// A platform whose phones can only be listed.
struct Shelf(Vec<Arc<DeviceSnapshot>>);

impl Shelf {
    fn of<'a>(ids: impl Iterator<Item = &'a String>) -> Self {
        Self(ids.map(|id| Arc::new(phone(id).into())).collect())
    }
}

const NO_MORE: &str = "a shelf does no more";

impl Upstream for Shelf {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        if self.0.is_empty() {
            return Err(Unreachable("empty".into()));
        }
        let later = self.0.iter().filter(|phone| after.is_none_or(|after| phone.id > *after));
        later.take(limit.into()).for_each(|phone| see(&[phone]));
        Ok(())
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        let found = ids.iter().filter_map(|id| self.0.iter().find(|phone| phone.id.as_str() == *id));
        found.for_each(|phone| see(&[phone]));
        Ok(())
    }

    fn session<'a>(&'a self, _: &'a DeviceId, _: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>> {
        Box::pin(async { Err(SessionError::Refused(NO_MORE.into())) })
    }
}

impl Control for Shelf {
    fn facts(&self, _: &DeviceId, _: &Command) -> Facts {
        Facts::default()
    }

    fn send<'a>(&'a self, _: TaskId, _: &'a Command, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async { Sent::Ok })
    }

    fn look_up<'a>(
        &'a self,
        _: &'a DeviceId,
        _: TaskId,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Sent>, Unreachable>> {
        Box::pin(async { Ok(None) })
    }

    fn exits<'a>(&'a self, _: &'a DeviceId, _: Option<&'a SetProxyArgs>) -> BoxFuture<'a, Result<Exits, Unreachable>> {
        Box::pin(async { Err(Unreachable(NO_MORE.into())) })
    }

    fn boot_id<'a>(&'a self, _: &'a DeviceId) -> BoxFuture<'a, Result<PhoneStart, Unreachable>> {
        Box::pin(async { Err(Unreachable(NO_MORE.into())) })
    }
}

fn phone(id: &str) -> DeviceReading {
    let spec = DeviceSpec {
        model: None,
        os_version: None,
        cpu_cores: None,
        memory_mb: None,
        storage_gb: None,
        screen: None,
        region: None,
    };
    DeviceReading {
        id: device(id),
        name: "".into(),
        state: None,
        offers: Offers { proxy: Flag::Offered, power: Flag::Offered, session: Flag::Offered },
        spec: spec.into(),
        power_actions: Vec::new().into(),
        proxy_schemes: Vec::new().into(),
        proxy: None,
        session_modes: Vec::new().into(),
        paces: Paces::default(),
    }
}

fn device(id: &str) -> DeviceId {
    DeviceId::new(id).ok().unwrap()
}

fn name(text: &str) -> PlatformName {
    PlatformName::parse(text).unwrap()
}

fn fleet(ids: &[String], names: &[&str]) -> Platforms {
    let member = |name_: &&str| -> (PlatformName, Arc<dyn Control>) {
        let prefix = format!("{name_}-");
        (name(name_), Arc::new(Shelf::of(ids.iter().filter(move |id| id.starts_with(&prefix)))))
    };
    Platforms::of(names.iter().map(member))
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
        let mut after = after.map(|after| device(&after));
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
    let ids = ["a-1", "b-1"].map(str::to_owned);
    let fleet = fleet(&ids, &["a", "ab", "b"]);
    assert_eq!(fleet.unread(), []);
    assert_eq!(fleet.list_page(None, 9).unwrap().len(), 2);
    assert_eq!(fleet.unread(), [name("ab")]);
}

#[tokio::test]
async fn a_phone_of_a_platform_that_is_not_configured_is_not_there_and_nothing_is_sent_to_it() {
    let fleet = fleet(&["a-1".to_owned()], &["a"]);
    let found = fleet.find_all(&["a-1", "c-1", "a-2", "nothing"]).unwrap();
    assert_eq!(found.iter().map(|phone| phone.id.as_str()).collect::<Vec<_>>(), ["a-1"]);
    assert!(matches!(fleet.at_hand(&device("c-1")), AtHand::Now(Ok(None))));
    assert_eq!(fleet.read_anew(&device("c-1")).await.unwrap(), None);
    let clear = |id: &str| Command::ClearProxy(ClearProxyArgs { device_id: device(id), idempotency_key: None });
    let request = TaskId::new(Timestamp(0), [0; 10]);
    let leave = || Leave::until(Timestamp(0), &Clock::manual(Timestamp(0)));
    assert_eq!(fleet.send(request, &clear("a-1"), leave()).await, Sent::Ok);
    assert_eq!(
        fleet.send(request, &clear("c-1"), leave()).await,
        Sent::NotSent("the platform of c-1 is not configured".into())
    );
    assert!(fleet.look_up(&device("c-1"), request, Some("7")).await.is_err());
}
