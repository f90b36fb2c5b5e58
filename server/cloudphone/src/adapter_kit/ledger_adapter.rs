//! [`ReadPort`] for adapters whose phones are in a ledger. Start at [`LedgerAdapter`].

use super::phone_ledger::refresh::Refresh;
use super::phone_ledger::{KeptRow, KnownPhones, Listed, PhoneLedger, Row, is_current};
use crate::phones::contract::DeviceId;
use crate::phones::port::{AtHand, DeviceSnapshot, Found, ReadPort, See, Unreachable};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;

/// An adapter that has a ledger, and keeps it up to date.
pub trait LedgerAdapter: Send + Sync + 'static {
    type Row: Row;

    /// The knowledge of the platform, apart from rows, on which views depend.
    type Limits;

    /// The advice for a platform that stays unread.
    const UNREAD_REMEDY: Option<&'static str> = None;

    /// The advice for a platform that has no phone.
    const EMPTY_REMEDY: Option<&'static str> = None;

    fn ledger(&self) -> &PhoneLedger<Self::Row>;

    fn refresh(&self) -> &Refresh<Self::Row>;

    /// Returns `None` if the platform cannot be reached.
    fn limits(&self) -> Option<Self::Limits>;

    /// Returns the view of a row, which is made once. Without limits, the row may be out of date.
    fn view<'a>(
        &self,
        id: &DeviceId,
        row: &'a KeptRow<Self::Row>,
        limits: Option<&Self::Limits>,
    ) -> &'a Arc<DeviceSnapshot>;

    /// Reads a phone again into the ledger. Returns a view only if it is not that of the ledger.
    fn reread(&self, known: &Listed<Self::Row>) -> impl Future<Output = Found> + Send;
}

fn show<A: LedgerAdapter>(adapter: &A, rows: KnownPhones<'_, A::Row>, see: See<'_>) {
    let (limits, now) = (adapter.limits(), adapter.ledger().now());
    let mut seen = Vec::with_capacity(rows.size_hint().1.unwrap_or_default());
    seen.extend(
        rows.map(|(id, row, read_at)| adapter.view(id, row, limits.as_ref().filter(|_| is_current(read_at, now)))),
    );
    see(&seen);
}

fn look<A: LedgerAdapter>(adapter: &A, Listed { id, row, read_at }: &Listed<A::Row>) -> Arc<DeviceSnapshot> {
    let limits = adapter.limits().filter(|_| is_current(*read_at, adapter.ledger().now()));
    Arc::clone(adapter.view(id, row, limits.as_ref()))
}

#[async_trait]
impl<A: LedgerAdapter> ReadPort for A {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        self.ledger().page(after, limit, |rows| show(self, rows, see));
        Ok(())
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        self.ledger().find(ids, |rows| show(self, rows, see));
        Ok(())
    }

    fn at_hand(&self, id: &DeviceId) -> AtHand {
        let listed = self.ledger().get(id);
        listed.map_or(AtHand::Nothing, |listed| AtHand::Then(look(self, &listed), listed.read_at))
    }

    async fn read_anew(&self, id: &DeviceId) -> Found {
        let Some(known) = self.ledger().get(id) else {
            let unread = || Unreachable("the platform was not listed yet".into());
            return if self.ledger().is_known() { Ok(None) } else { Err(unread()) };
        };
        match self.reread(&known).await {
            Ok(None) => Ok(self.ledger().get(id).map(|listed| look(self, &listed))),
            Ok(view) => Ok(view),
            Err(error) => {
                tracing::debug!(device = id.as_str(), %error, "a phone could not be read again");
                // The list finds out if the platform is back, or the phone gone.
                self.refresh().wake();
                Ok(Some(Arc::clone(self.view(id, &known.row, None))))
            }
        }
    }

    fn has_left(&self, id: &DeviceId) -> bool {
        self.ledger().has_left(id)
    }

    fn is_unread(&self) -> bool {
        !self.ledger().is_known()
    }

    fn remedy(&self) -> Option<&'static str> {
        match self.is_unread() {
            true => A::UNREAD_REMEDY,
            false => A::EMPTY_REMEDY.filter(|_| self.ledger().count() == 0),
        }
    }

    fn retry_after(&self, _: &DeviceId) -> Option<Duration> {
        let wait = self.refresh().pause_end()?.since(self.ledger().now());
        Some(wait).filter(|wait| !wait.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter_kit::phone_ledger::SHOWN_FOR;
    use crate::adapter_kit::phone_ledger::refresh::Source;
    use crate::adapter_kit::phone_ledger::tests::{TestLedger, TestRow};
    use crate::phones::tests::phone;
    use std::sync::LazyLock;

    struct Rack(TestLedger, Refresh<TestRow>);

    struct Unlisted;

    #[async_trait]
    impl Source<TestRow> for Unlisted {
        async fn list(&self) -> Result<Vec<TestRow>, Unreachable> {
            Err(Unreachable("it is down".into()))
        }
    }

    static SHOWN: LazyLock<[Arc<DeviceSnapshot>; 2]> =
        LazyLock::new(|| ["n-old", "n-current"].map(|id| phone(id, None)));

    impl LedgerAdapter for Rack {
        type Row = TestRow;
        type Limits = ();

        const UNREAD_REMEDY: Option<&'static str> = Some("list it");
        const EMPTY_REMEDY: Option<&'static str> = Some("connect one");

        fn ledger(&self) -> &PhoneLedger<TestRow> {
            &self.0.ledger
        }

        fn refresh(&self) -> &Refresh<TestRow> {
            &self.1
        }

        fn limits(&self) -> Option<()> {
            Some(())
        }

        fn view<'a>(&self, _: &DeviceId, _: &'a KeptRow<TestRow>, limits: Option<&()>) -> &'a Arc<DeviceSnapshot> {
            &SHOWN[usize::from(limits.is_some())]
        }

        async fn reread(&self, known: &Listed<TestRow>) -> Found {
            if known.id.as_str() == "n-a" { Ok(None) } else { Err(Unreachable("silent".into())) }
        }
    }

    #[tokio::test]
    async fn a_row_has_its_limits_for_a_minute_and_a_phone_that_cannot_be_read_again_has_none() {
        let kept = TestLedger::new().await;
        let refresh = Refresh::new(Arc::clone(&kept.ledger), Arc::new(Unlisted));
        let rack = Rack(kept, refresh);
        let read = async |id: &str| rack.read_anew(&DeviceId::new(id).unwrap()).await;
        assert!(rack.is_unread() && read("n-a").await.is_err());
        assert_eq!(rack.remedy(), Some("list it"));
        rack.0.take("").await;
        assert_eq!(rack.remedy(), Some("connect one"));
        rack.0.take("A B").await;
        for (pass, is_current) in [(SHOWN_FOR, true), (Duration::from_millis(1), false)] {
            rack.0.clock.advance(pass);
            let id = DeviceId::new("n-a").unwrap();
            let AtHand::Then(at_hand, _) = rack.at_hand(&id) else { panic!("it is listed") };
            let shown = [rack.list_page(None, 1).unwrap().remove(0), at_hand, read("n-a").await.unwrap().unwrap()];
            assert!(shown.iter().all(|shown| Arc::ptr_eq(shown, &SHOWN[usize::from(is_current)])), "{shown:?}");
            assert!(Arc::ptr_eq(&read("n-b").await.unwrap().unwrap(), &SHOWN[0]));
        }
        assert!(read("n-c").await.unwrap().is_none() && rack.remedy().is_none());
    }
}
