//! The address from which each phone makes requests without a proxy that this server set, if known.
//!
//! A client with a proxy of its own in force could set another, make ordinary requests come from
//! the address before the send, and get a refund for a write that took effect. So an absence is
//! measured against an address that was read and stored before this server first sent a proxy. A
//! phone whose address was not read by then never gets one.

use super::ever::EverRead;
use crate::adapter_kit::phone_ledger::{Knowledge, OwnAddress, PhoneLedger, Row};
use crate::phones::contract::{DeviceId, SetProxyArgs};
use crate::phones::port::{Exits, Unreachable};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::ignore_poison;
use toolwarrant::tasks::Provability;

const NEVER_READ: &str = "no request of a phone of this account has reached the callback listener so far";

const ASK_AGAIN: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub struct OwnAddresses<R: Row> {
    ledger: Arc<PhoneLedger<R>>,
    asked: Mutex<HashMap<DeviceId, LastReading>>,
    /// True if the operator says that phones share addresses, and that their users are one.
    may_share: bool,
    ever: EverRead,
}

#[derive(Debug, Default)]
struct LastReading {
    /// At the last reading without a proxy.
    name: String,
    seen: Option<IpAddr>,
    at: Timestamp,
}

impl<R: Row> OwnAddresses<R> {
    /// With `may_share`, an address counts as a phone's own even if other phones have it.
    #[must_use]
    pub fn new(ledger: Arc<PhoneLedger<R>>, may_share: bool) -> Self {
        let ever = EverRead::new(ledger.any(|_, known, _| matches!(known.own_address, Some(OwnAddress::Read(_)))));
        Self { ledger, asked: Mutex::default(), may_share, ever }
    }

    #[must_use]
    pub fn may_share(&self) -> bool {
        self.may_share
    }

    /// Limits what a reading can prove on a phone now. Asks for one reading of each phone before
    /// its first proxy, even if that proves nothing else.
    #[must_use]
    pub fn restrict(&self, id: &DeviceId, provability: Provability, now: Timestamp) -> Provability {
        let is_new = !self.is_settled(id) && !ignore_poison(self.asked.lock()).contains_key(id);
        match provability {
            Provability::Nothing(_) if is_new => Provability::Presence,
            Provability::Nothing(why) => Provability::Nothing(why),
            _ if !is_new && self.ever.is_in_vain(now) => Provability::Nothing(NEVER_READ),
            provability => provability,
        }
    }

    /// Adds the address without a proxy to a reading. A reading before a proxy is sent is that
    /// address, unless the platform shows another one: then an app passes traffic on. If it cannot
    /// be stored, an absence is never evidence on this phone. A phone with another `name` was
    /// replaced, and its own address is not known.
    pub async fn complete(
        &self,
        (id, name, public): (&DeviceId, &str, Option<IpAddr>),
        proxy: Option<&SetProxyArgs>,
        reading: Result<Exits, Unreachable>,
        now: Timestamp,
    ) -> Result<Exits, Unreachable> {
        let seen = reading.as_ref().ok().map(|exits| exits.ordinary);
        let (former, is_replaced) = self.note_reading((id, name), proxy.is_none(), seen, now);
        self.ever.note(reading.is_ok(), now);
        let exits = reading?;
        let is_own = !differs(public, exits.ordinary);
        if proxy.is_none() && is_own {
            let _ = self.note(id, OwnAddress::Read(exits.ordinary)).await;
        } else if proxy.is_none() && !self.is_settled(id) {
            let (device, seen) = (id.as_str(), exits.ordinary);
            let shown = public.map(tracing::field::display);
            tracing::warn!(device, %seen, shown, "the platform shows another address of a phone, so no missing proxy is refunded there");
        }
        let direct = match self.ledger.own_address(id) {
            Some(OwnAddress::Read(address)) if !is_replaced && !differs(public, address) => Some(address),
            _ => None,
        };
        let is_shared = match direct {
            Some(address) if !self.may_share => self.is_shared(id, address),
            _ => false,
        };
        Ok(Exits { direct, is_shared, former, ..exits })
    }

    fn note_reading(
        &self,
        (id, name): (&DeviceId, &str),
        is_without: bool,
        seen: Option<IpAddr>,
        now: Timestamp,
    ) -> (Option<IpAddr>, bool) {
        let mut asked = ignore_poison(self.asked.lock());
        let last = asked.entry(id.clone()).or_default();
        last.at = now;
        if is_without || last.name.is_empty() {
            name.clone_into(&mut last.name);
        }
        let former = last.seen;
        last.seen = seen.or(former);
        (former, last.name != name)
    }

    /// Returns true if the user of another phone may make requests come from this address. A phone
    /// that has answered, and whose address nobody knows, may have any.
    fn is_shared(&self, id: &DeviceId, address: IpAddr) -> bool {
        self.ledger.any(|other, known, row| {
            let read = match known.own_address {
                Some(OwnAddress::Read(read)) => Some(read),
                Some(OwnAddress::Unread) | None => None,
            };
            let shown = row.and_then(Row::public_address);
            let is_unknown = read.is_none() && shown.is_none() && row.is_some_and(Row::has_answered);
            other != id && (read == Some(address) || shown == Some(address) || is_unknown)
        })
    }

    /// Returns a ready phone without a known address that was not asked within [`ASK_AGAIN`].
    #[must_use]
    pub fn next_unread(&self, is_ready: impl Fn(&R) -> bool, now: Timestamp) -> Option<DeviceId> {
        let asked = ignore_poison(self.asked.lock());
        self.ledger.first_without_address(|id, row| {
            let at = asked.get(id).map(|last| last.at);
            (is_ready(row) && at.is_none_or(|at| now.since(at) >= ASK_AGAIN)).then_some(at)
        })
    }

    /// Returns true if the address was read, or cannot be read any more.
    fn is_settled(&self, id: &DeviceId) -> bool {
        self.ledger.own_address(id).is_some()
    }

    /// Stores the address of a phone durably, before its first proxy is sent. An earlier one stays.
    pub async fn note(&self, id: &DeviceId, address: OwnAddress) -> Result<(), Unreachable> {
        if self.is_settled(id) {
            return Ok(());
        }
        let note = move |known: &mut Knowledge| known.own_address = known.own_address.or(Some(address));
        self.ledger.learn(Some(id), note).await
    }

    /// Replaces the address durably, unless the platform shows another one.
    pub async fn replace(&self, (id, public): (&DeviceId, Option<IpAddr>), address: IpAddr) -> Result<(), Unreachable> {
        if differs(public, address) {
            return Err(Unreachable("the platform shows another address of this phone".into()));
        }
        let replace = move |known: &mut Knowledge| known.own_address = Some(OwnAddress::Read(address));
        self.ledger.learn(Some(id), replace).await
    }
}

/// Compares only addresses of one family.
fn differs(shown: Option<IpAddr>, seen: IpAddr) -> bool {
    shown.is_some_and(|shown| shown.is_ipv4() == seen.is_ipv4() && shown != seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter_kit::phone_ledger::tests::{TestLedger, TestRow};

    async fn ledger() -> TestLedger {
        let kept = TestLedger::new().await;
        kept.take("A B C D").await;
        kept
    }

    fn own(kept: &TestLedger) -> OwnAddresses<TestRow> {
        OwnAddresses::new(Arc::clone(&kept.ledger), false)
    }

    fn id(name: &str) -> DeviceId {
        DeviceId::new(&format!("n-{name}")).unwrap()
    }

    #[tokio::test]
    async fn the_address_from_before_the_first_proxy_stays_and_what_was_not_read_by_then_is_never_known() {
        let mut kept = ledger().await;
        let [one, two] = ["192.0.2.1", "192.0.2.2"].map(|text| OwnAddress::Read(text.parse().unwrap()));
        for (phone, address) in [("a", one), ("a", two), ("b", OwnAddress::Unread), ("b", two)] {
            own(&kept).note(&id(phone), address).await.unwrap();
        }
        for _ in 0..2 {
            let known = ["a", "b", "c"].map(|phone| kept.ledger.own_address(&id(phone)));
            assert_eq!(known, [Some(one), Some(OwnAddress::Unread), None]);
            kept.restart().await;
        }
    }

    #[tokio::test]
    async fn an_address_that_others_may_choose_is_no_evidence_of_an_absence() {
        let kept = ledger().await;
        let [one, two, three]: [IpAddr; 3] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|text| text.parse().unwrap());
        let read =
            |ordinary| Ok(Exits { ordinary, through: None, direct: None, is_shared: false, former: None, other: None });
        let direct = own(&kept);
        let complete = async |direct: &OwnAddresses<TestRow>, phone: &str, ordinary, public| {
            let exits = direct.complete((&id(phone), "", public), None, read(ordinary), Timestamp(0)).await.unwrap();
            (exits.direct, exits.is_shared)
        };
        assert_eq!(complete(&direct, "a", one, None).await, (Some(one), false));
        assert_eq!(complete(&direct, "b", two, Some(two)).await, (Some(two), false));
        assert_eq!(complete(&direct, "c", three, Some(one)).await, (None, false));
        assert_eq!(complete(&direct, "d", one, None).await, (Some(one), true));
        assert_eq!(complete(&direct, "a", one, None).await, (Some(one), true));
        let direct = OwnAddresses::new(Arc::clone(&kept.ledger), true);
        assert_eq!(complete(&direct, "a", one, None).await, (Some(one), false));
        // The platform shows that another phone has the address, which was never read.
        kept.take("A B C D X:192.0.2.2").await;
        assert_eq!(complete(&own(&kept), "b", two, None).await, (Some(two), true));
        direct.replace((&id("d"), Some(one)), three).await.unwrap_err();
        direct.replace((&id("d"), None), three).await.unwrap();
        assert_eq!(complete(&own(&kept), "d", three, None).await, (Some(three), false));
        assert_eq!(complete(&own(&kept), "a", one, None).await, (Some(one), false));
        assert_eq!(complete(&own(&kept), "b", two, Some(one)).await, (None, false));
        // A phone whose address nobody knows may have any, until it is read.
        kept.take("A B C D Y").await;
        let direct = own(&kept);
        assert_eq!(complete(&direct, "a", one, None).await, (Some(one), true));
        let next = |at| direct.next_unread(TestRow::has_answered, Timestamp(at));
        assert_eq!(next(0), Some(id("y")));
        let lost = Err(Unreachable("nothing arrived".into()));
        direct.complete((&id("y"), "", None), None, lost, Timestamp(0)).await.unwrap_err();
        assert_eq!((next(599_999), next(600_000)), (None, Some(id("y"))), "after a while");
        let other = "192.0.2.4".parse().unwrap();
        assert_eq!(complete(&direct, "y", other, None).await, (Some(other), false));
        assert_eq!((next(600_000), complete(&direct, "a", one, None).await), (None, (Some(one), false)));
    }

    #[tokio::test]
    async fn a_reading_has_the_address_of_the_one_before_and_no_own_address_of_a_phone_that_was_replaced() {
        let kept = ledger().await;
        let direct = own(&kept);
        let id = id("a");
        let [one, two]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        let proxy = super::super::tests::proxy("socks5", "192.0.2.2", 1080);
        let read = async |name: &str, proxy: Option<&SetProxyArgs>, ordinary: Option<IpAddr>| {
            let exits = Exits {
                ordinary: ordinary.unwrap_or(one),
                through: None,
                direct: None,
                is_shared: false,
                former: None,
                other: None,
            };
            let reading = ordinary.map(|_| exits).ok_or(Unreachable("nothing arrived".into()));
            let read = direct.complete((&id, name, None), proxy, reading, Timestamp(0)).await;
            read.ok().map(|exits| (exits.former, exits.direct))
        };
        assert_eq!(read("AC1", None, Some(one)).await, Some((None, Some(one))));
        assert_eq!(read("AC1", Some(&proxy), Some(two)).await, Some((Some(one), Some(one))));
        assert_eq!(read("AC1", None, None).await, None);
        assert_eq!(read("AC2", Some(&proxy), Some(one)).await, Some((Some(two), None)));
        assert_eq!(read("AC2", None, Some(one)).await, Some((Some(one), Some(one))));
    }

    #[tokio::test]
    async fn a_new_phone_is_read_once_and_an_account_that_was_never_read_is_not_tried_by_each_write() {
        let kept = ledger().await;
        let direct = own(&kept);
        let [one, two, three] = ["a", "b", "c"].map(id);
        let blind = Provability::Nothing("no program");
        let fail = async |id: &DeviceId| {
            let lost = Err(Unreachable("nothing arrived".into()));
            direct.complete((id, "", None), None, lost, Timestamp(0)).await.unwrap_err();
        };
        assert_eq!(direct.restrict(&one, blind, Timestamp(0)), Provability::Presence);
        fail(&one).await;
        assert_eq!(direct.restrict(&one, blind, Timestamp(0)), blind);
        assert_eq!(direct.restrict(&one, Provability::Both, Timestamp(0)), Provability::Both);
        fail(&two).await;
        let never = Provability::Nothing(NEVER_READ);
        assert_eq!(direct.restrict(&one, Provability::Both, Timestamp(0)), never);
        assert_eq!(direct.restrict(&three, Provability::Both, Timestamp(0)), Provability::Both, "it is new");
        assert_eq!(direct.restrict(&one, Provability::Both, Timestamp(300_000)), Provability::Both, "after a while");
        let seen = Exits {
            ordinary: "192.0.2.1".parse().unwrap(),
            through: None,
            direct: None,
            is_shared: false,
            former: None,
            other: None,
        };
        direct.complete((&three, "", None), None, Ok(seen), Timestamp(0)).await.unwrap();
        assert_eq!(direct.restrict(&one, Provability::Both, Timestamp(0)), Provability::Both);
    }
}
