//! Readings on the phones of a ledger, with the address from which each makes requests without a
//! proxy that this server set, if known.
//!
//! A client with a proxy of its own in force could set another, make ordinary requests come from
//! the address before the send, and get a refund for a write that took effect. So an absence is
//! measured against an address that was read and stored before this server first sent a proxy. A
//! phone whose address was not read by then never gets one.

use super::{Dial, EverRead, NO_ECHO, PhoneReadings, START, provability, start_of};
use crate::adapter_kit::phone_ledger::{Knowledge, LastReading, Listed, OwnAddress, PhoneLedger, Row};
use crate::adapter_kit::shell::{Shell, Tool, run_whole};
use crate::phones::contract::{DeviceId, SetProxyArgs};
use crate::phones::port::{Exits, NoAddress, PhoneStart, Unreachable};
use crate::phones::proxy_hosts::ProxyHosts;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::tasks::Provability;

const NEVER_READ: &str = "no request of a phone of this account has reached the callback listener so far";

const ASK_AGAIN: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub struct LedgerReadings<R: Row> {
    ledger: Arc<PhoneLedger<R>>,
    readings: PhoneReadings,
    /// True if the operator says that phones share addresses, and that their users are one.
    may_share: bool,
    ever: EverRead,
}

impl<R: Row> LedgerReadings<R> {
    /// With `may_share`, an address counts as a phone's own even if other phones have it.
    #[must_use]
    pub fn new(ledger: Arc<PhoneLedger<R>>, readings: PhoneReadings, may_share: bool) -> Self {
        let ever = EverRead::new(ledger.any(|_, known, _| matches!(known.own_address, Some(OwnAddress::Read(_)))));
        Self { ledger, readings, may_share, ever }
    }

    /// Returns what [`Self::exits`] can prove on a phone now. `dials` is true if the phone opens
    /// connections, and `is_proven` if an absence was seen to follow there. Asks for one reading of
    /// each phone before its first proxy, even if that proves nothing else.
    #[must_use]
    pub fn provability(&self, id: &DeviceId, proxy: &SetProxyArgs, (dials, is_proven): (bool, bool)) -> Provability {
        let LastReading { at, tool, .. } = self.ledger.last_reading(id);
        let is_new = at.is_none() && !self.is_settled(id);
        let PhoneReadings { echo, by_server, .. } = &self.readings;
        let provability = match echo {
            Some(_) => provability::of(proxy, tool, dials, by_server.is_some()),
            None => Provability::Nothing(NO_ECHO),
        };
        match provability {
            Provability::Nothing(_) if is_new => Provability::Presence,
            Provability::Nothing(why) => Provability::Nothing(why),
            _ if !is_new && self.ever.is_in_vain(self.ledger.now()) => Provability::Nothing(NEVER_READ),
            Provability::Both if !is_proven => Provability::Presence,
            provability => provability,
        }
    }

    /// Reads the addresses of a phone, and adds its own one. A reading before a proxy is sent is
    /// that address, unless the platform shows another one: then an app passes traffic on. If it
    /// cannot be stored, an absence is never evidence on this phone. A phone with another name was
    /// replaced, and its own address is not known.
    pub async fn exits(
        &self,
        (shell, dial): (&dyn Shell, Option<&dyn Dial>),
        id: &DeviceId,
        proxy: Option<&SetProxyArgs>,
    ) -> Result<Exits, Unreachable> {
        let mut tool = None;
        let read = self.readings.exits((shell, dial, id), proxy, &mut tool).await;
        self.complete(id, tool, proxy.is_none(), read).await
    }

    async fn complete(
        &self,
        id: &DeviceId,
        tool: Option<Tool>,
        is_without: bool,
        read: Result<Exits, Unreachable>,
    ) -> Result<Exits, Unreachable> {
        let ((name, public), mut last) = (self.describe(id), self.ledger.last_reading(id));
        if is_without || last.name.is_empty() {
            last.name.clone_from(&name);
        }
        let (former, is_replaced) = (last.seen, last.name != name);
        (last.at, last.tool) = (Some(self.ledger.now()), tool);
        last.seen = read.as_ref().ok().map(|exits| exits.ordinary).or(former);
        self.ledger.note_reading(id, last);
        self.ever.note(read.is_ok(), self.ledger.now());
        let exits = read?;
        if is_without && !differs(public, exits.ordinary) {
            let _ = self.note(id, OwnAddress::Read(exits.ordinary)).await;
        } else if is_without && !self.is_settled(id) {
            let (device, seen) = (id.as_str(), exits.ordinary);
            let shown = public.map(tracing::field::display);
            tracing::warn!(device, %seen, shown, "the platform shows another address of a phone, so no missing proxy is refunded there");
        }
        let direct = match self.ledger.own_address(id) {
            Some(OwnAddress::Read(address)) if !is_replaced && !differs(public, address) => Some(address),
            _ => None,
        };
        let is_shared = direct.is_some_and(|address| !self.may_share && self.is_shared(id, address));
        Ok(Exits { direct, is_shared, former, ..exits })
    }

    /// Returns the platform's name and public address of a phone.
    fn describe(&self, id: &DeviceId) -> (String, Option<IpAddr>) {
        let listed = self.ledger.get(id);
        listed.map(|Listed { row, .. }| (row.name().to_owned(), row.public_address())).unwrap_or_default()
    }

    /// Reads the address of a phone without a proxy again, and replaces the one that is known,
    /// unless the platform shows another one.
    pub async fn renew(&self, phone: (&dyn Shell, Option<&dyn Dial>), id: &DeviceId) -> Result<(), Unreachable> {
        let address = self.readings.exits((phone.0, phone.1, id), None, &mut None).await?.ordinary;
        if differs(self.describe(id).1, address) {
            return Err(Unreachable("the platform shows another address of this phone".into()));
        }
        let replace = move |known: &mut Knowledge| known.own_address = Some(OwnAddress::Read(address));
        self.ledger.learn(Some(id), replace).await
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
    pub fn next_unread(&self, is_ready: impl Fn(&R) -> bool) -> Option<DeviceId> {
        let now = self.ledger.now();
        let is_due = |last: &LastReading| last.at.is_none_or(|at| now.since(at) >= ASK_AGAIN);
        self.ledger.first_without_address(|row, last| (is_ready(row) && is_due(last)).then_some(last.at))
    }

    /// Returns true if the address was read, or cannot be read any more.
    fn is_settled(&self, id: &DeviceId) -> bool {
        self.ledger.own_address(id).is_some()
    }

    /// Stores durably, before the first proxy of a phone is sent, that its address was not read, if
    /// it was not. Otherwise an address that a proxy chose could count as the phone's own.
    pub async fn note_proxy(&self, id: &DeviceId) -> Result<(), Unreachable> {
        self.note(id, OwnAddress::Unread).await
    }

    /// Stores the address of a phone durably. An earlier one stays.
    async fn note(&self, id: &DeviceId, address: OwnAddress) -> Result<(), Unreachable> {
        if self.is_settled(id) {
            return Ok(());
        }
        let note = move |known: &mut Knowledge| known.own_address = known.own_address.or(Some(address));
        self.ledger.learn(Some(id), note).await
    }

    /// Judges the addresses of ordinary requests of different phones.
    pub fn judge_addresses(&self, seen: &[IpAddr]) -> Result<(), NoAddress> {
        let Some((_, urls)) = &self.readings.echo else { return Err(NoAddress::NoListener) };
        let is_public = |host: &str| ProxyHosts::Public.judge(host).is_ok();
        match seen {
            _ if is_public(&urls.first.host) && !seen.iter().all(|address| is_public(&address.to_string())) => {
                Err(NoAddress::Private)
            }
            [one, others @ ..] if others.contains(one) && !self.may_share => Err(NoAddress::Shared),
            _ => Ok(()),
        }
    }

    /// Reads the boot id of the kernel and the start of the first process in ticks since the boot.
    /// Containers share the boot id of their host, so it alone does not suffice.
    pub async fn start(&self, shell: &dyn Shell, id: &DeviceId) -> Result<PhoneStart, Unreachable> {
        let output = run_whole(shell, &self.readings.random, id, START).await?;
        start_of(&output).ok_or_else(|| Unreachable("the start of the phone is not readable".into()))
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
    use crate::adapter_kit::readings::tests::{Running, proxy};

    async fn ledger() -> TestLedger {
        let kept = TestLedger::new().await;
        kept.take("A B C D").await;
        kept
    }

    impl TestLedger {
        fn readings(&self, may_share: bool) -> LedgerReadings<TestRow> {
            LedgerReadings::new(Arc::clone(&self.ledger), Running::start().readings(), may_share)
        }
    }

    impl LedgerReadings<TestRow> {
        /// Completes a reading without a proxy; `None` if no request arrived. Returns the own
        /// address, and if it is shared.
        async fn tell(&self, phone: &str, seen: Option<&str>) -> Option<(Option<IpAddr>, bool)> {
            let seen = seen.map(|seen| Exits::of(ip(seen), None)).ok_or(Unreachable("nothing arrived".into()));
            let exits = self.complete(&id(phone), None, true, seen).await;
            exits.ok().map(|exits| (exits.direct, exits.is_shared))
        }
    }

    fn id(name: &str) -> DeviceId {
        DeviceId::new(&format!("n-{name}")).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn the_address_from_before_the_first_proxy_stays_and_what_was_not_read_by_then_is_never_known() {
        let mut kept = ledger().await;
        let [one, two] = ["192.0.2.1", "192.0.2.2"].map(|text| OwnAddress::Read(ip(text)));
        for (phone, address) in [("a", one), ("a", two), ("b", OwnAddress::Unread), ("b", two)] {
            kept.readings(false).note(&id(phone), address).await.unwrap();
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
        // B and C show an address in the list of the platform, C another one than it has.
        kept.take("A B:192.0.2.2 C:192.0.2.1 D").await;
        let (one, two, three) = ("192.0.2.1", "192.0.2.2", "192.0.2.3");
        let [b, c] = ["b-192-0-2-2", "c-192-0-2-1"];
        let own = |address, is_shared| Some((Some(ip(address)), is_shared));
        let readings = kept.readings(false);
        for (phone, seen, expected) in [
            ("a", one, own(one, true)),
            (b, two, own(two, false)),
            (c, three, Some((None, false))),
            ("d", one, own(one, true)),
        ] {
            assert_eq!(readings.tell(phone, Some(seen)).await, expected, "{phone}");
        }
        assert_eq!(kept.readings(true).tell("a", Some(one)).await, own(one, false));
        // A phone whose address nobody knows may have any, until it is read.
        kept.take("A B:192.0.2.2 D Y").await;
        assert_eq!(readings.tell(b, Some(two)).await, own(two, true));
        let next = || readings.next_unread(TestRow::has_answered);
        assert_eq!(next(), Some(id("y")));
        assert_eq!(readings.tell("y", None).await, None);
        assert_eq!(next(), None);
        kept.clock.advance(ASK_AGAIN);
        assert_eq!(next(), Some(id("y")), "after a while");
        assert_eq!(readings.tell("y", Some("192.0.2.4")).await, own("192.0.2.4", false));
        assert_eq!((next(), readings.tell(b, Some(two)).await), (None, own(two, false)));
    }

    #[tokio::test]
    async fn a_reading_has_the_address_of_the_one_before_and_no_own_address_of_a_phone_that_was_replaced() {
        let kept = ledger().await;
        let readings = kept.readings(false);
        let [one, two] = ["192.0.2.1", "192.0.2.2"].map(ip);
        let complete = async |is_without: bool, seen: Option<IpAddr>| {
            let seen = seen.map(|seen| Exits::of(seen, None)).ok_or(Unreachable("nothing arrived".into()));
            let read = readings.complete(&id("e-1"), None, is_without, seen).await;
            read.ok().map(|exits| (exits.former, exits.direct))
        };
        kept.take("E-1@1").await;
        assert_eq!(complete(true, Some(one)).await, Some((None, Some(one))));
        assert_eq!(complete(false, Some(two)).await, Some((Some(one), Some(one))));
        assert_eq!(complete(true, None).await, None);
        kept.take("E-2@1").await;
        assert_eq!(complete(false, Some(one)).await, Some((Some(two), None)));
        assert_eq!(complete(true, Some(one)).await, Some((Some(one), Some(one))));
    }

    #[tokio::test]
    async fn a_new_phone_is_read_once_and_an_account_that_was_never_read_is_not_tried_by_each_write() {
        let kept = ledger().await;
        let readings = kept.readings(false);
        let [one, three] = ["a", "c"].map(id);
        // At a name, nobody asks through a proxy with a password.
        let by_phone = proxy("socks5", "proxy.example", 1080);
        let blind = SetProxyArgs { username: crate::phones::contract::Credential::new("u").ok(), ..by_phone.clone() };
        let provability = |id: &DeviceId, proxy: &SetProxyArgs| readings.provability(id, proxy, (false, true));
        assert_eq!(provability(&one, &blind), Provability::Presence);
        readings.tell("a", None).await;
        assert!(matches!(provability(&one, &blind), Provability::Nothing(why) if why != NEVER_READ));
        assert_eq!(provability(&one, &by_phone), Provability::Both);
        assert_eq!(readings.provability(&one, &by_phone, (false, false)), Provability::Presence, "it is not proven");
        readings.tell("b", None).await;
        assert_eq!(provability(&one, &by_phone), Provability::Nothing(NEVER_READ));
        assert_eq!(provability(&three, &by_phone), Provability::Both, "it is new");
        kept.clock.advance(Duration::from_mins(5));
        assert_eq!(provability(&one, &by_phone), Provability::Both, "after a while");
        readings.tell("c", Some("192.0.2.1")).await;
        assert_eq!(provability(&one, &by_phone), Provability::Both);
    }
}
