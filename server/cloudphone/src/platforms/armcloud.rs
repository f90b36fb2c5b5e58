//! The family ARMCloud, VMOS Cloud and VSPhone: one interface on three hosts.
//!
//! The interface has no request id, so a lost answer stays lost. The platform reports "done" when a
//! command is delivered, and its lists lag. So each outcome is read on the phone itself. A call
//! that changes something names one pad. A command counts as not sent only if it was provably not
//! carried out, and else as unanswered. Start at [`Armcloud`].

pub mod api;
mod control;
pub mod listing;
mod operations;
pub mod rows;
pub mod sign;

pub use api::Family;
pub use sign::Scheme;

use crate::adapter_kit::guard::{Class, Guard, GuardLimits};
use crate::adapter_kit::phone_ledger::refresh::Refresh;
use crate::adapter_kit::phone_ledger::{KnownPhones, Listed, PhoneLedger, Row};
use crate::adapter_kit::readings::{EverRead, LedgerReadings, PhoneReadings};
use crate::phones::contract::DeviceId;
use crate::phones::port::{
    AtHand, DeviceSnapshot, Direction, Found, Pace, Paces, PlatformName, ReadPort, See, Unreachable,
};
use api::{Api, ApiCall, ApiError, ApiSettings, READ_WITHIN, WRITE_WITHIN};
use listing::{InfosQuery, Listing, Lists, NoList, SeatsQuery};
use rows::{Abilities, CodeChanges, Pad, PadRows, Reach, UnservedOperations};
use serde_json::json;
use sha2::{Digest, Sha256};
use sign::AccountKeys;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::base::hex;
use toolwarrant::files::ServiceFiles;
use toolwarrant::text::Secret;
use toolwarrant::{BoxFuture, Clock, Timestamp};
use url::Url;

pub struct Armcloud {
    api: Arc<Api>,
    family: Family,
    ledger: Arc<PhoneLedger<Pad>>,
    listing: Arc<Listing<Arc<Api>>>,
    refresh: Arc<Refresh<Pad>>,
    readings: LedgerReadings<Pad>,
    /// Proofs of other credentials do not hold for the account.
    identity: String,
    /// Starts need commands on phones.
    starts: EverRead,
    abilities: Abilities,
    clock: Clock,
}

pub struct Account {
    pub base_url: Url,
    pub prefix: String,
    pub family: Family,
    pub scheme: Scheme,
    pub access_key: Secret<String>,
    pub secret_key: Secret<String>,
    pub limits: GuardLimits,
    /// Prefixes of the codes of pads that can be booted and shut down; `None` for those of the
    /// platform.
    pub on_off: Option<Vec<String>>,
    /// Until a phone is up after the report of success.
    pub power_seconds: u32,
    /// Until a proxy is in force after the report of success.
    pub proxy_seconds: u32,
    /// Phones share addresses, such as behind one router.
    pub shared_address: bool,
}

const LEAVES_WITHIN: Duration = Duration::from_secs(8);

/// For the report and readings. The deadline of a write adds the settle time.
const ROOM_SECONDS: u32 = 90;

impl Armcloud {
    pub fn new(
        name: PlatformName,
        account: Account,
        readings: PhoneReadings,
        files: &ServiceFiles,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let Account {
            base_url,
            prefix,
            family,
            scheme,
            access_key,
            secret_key,
            limits,
            on_off,
            power_seconds,
            proxy_seconds,
            shared_address,
        } = account;
        let identity = hash(base_url.as_str(), access_key.expose());
        let ledger = Arc::new(PhoneLedger::open(files, name, clock.clone()));
        let readings = LedgerReadings::new(Arc::clone(&ledger), readings, shared_address);
        let starts = EverRead::new(
            ledger.is_proven(None, Direction::Start, &identity) || ledger.any(|_, known, _| known.start.is_some()),
        );
        let keys = AccountKeys { access_key: access_key.expose().clone(), secret_key };
        let settings =
            ApiSettings { base_url, prefix, family, scheme, read_within: READ_WITHIN, write_within: WRITE_WITHIN };
        let api = Arc::new(Api::new(settings, keys, Guard::new(limits, clock.clone()), clock.clone())?);
        let listing = Arc::new(Listing::new(Arc::clone(&api)));
        let refresh = Arc::new(Refresh::new(Arc::clone(&ledger), listing.clone(), clock.clone()));
        let pace = |settle_seconds| Some(Pace { settle_seconds, deadline_seconds: settle_seconds + ROOM_SECONDS });
        let usual = if family == Family::Armcloud { Abilities::of_network_storage() } else { Abilities::default() };
        let paces = Paces { proxy: pace(proxy_seconds), power: pace(power_seconds) };
        let abilities = Abilities { on_off: on_off.unwrap_or(usual.on_off), paces };
        Ok(Self { api, family, ledger, listing, refresh, readings, identity, starts, abilities, clock })
    }

    pub fn keep_fresh(&self) -> impl Future<Output = ()> + Send + 'static {
        let refresh = Arc::clone(&self.refresh);
        async move { refresh.run().await }
    }

    fn code(&self, id: &DeviceId) -> Result<String, Unreachable> {
        let listed = self.ledger.get(id).ok_or_else(|| Unreachable(format!("{id} is in no list").into()))?;
        Ok(listed.row.code().to_owned())
    }

    fn show(&self, pads: KnownPhones<'_, Pad>, see: See<'_>) {
        let (reach, unserved, now) = (self.reach(), self.find_unserved(), self.clock.now());
        let mut seen = Vec::with_capacity(pads.size_hint().1.unwrap_or_default());
        seen.extend(
            pads.map(|(id, row, read_at)| self.abilities.snapshot(id, row, reach.of_row(read_at, now), unserved)),
        );
        see(&seen);
    }

    fn snapshot(&self, listed: &Listed<Pad>, reach: Reach) -> Arc<DeviceSnapshot> {
        let reach = reach.of_row(listed.read_at, self.clock.now());
        Arc::clone(self.abilities.snapshot(&listed.id, &listed.row, reach, self.find_unserved()))
    }

    fn reach(&self) -> Reach {
        if self.api.guard().would_refuse().is_some() { Reach::Unreachable } else { Reach::Reachable }
    }

    fn withholds(&self, calls: &[ApiCall]) -> bool {
        let now = self.clock.now();
        self.api.list_unserved().iter().any(|(call, until)| calls.contains(call) && now < *until)
    }

    fn find_unserved(&self) -> UnservedOperations {
        let now = self.clock.now();
        let withheld = self.api.list_unserved().into_iter().filter(|(_, until)| now < *until);
        let operation = |call| match call {
            ApiCall::SetProxy => UnservedOperations::PROXY,
            ApiCall::ScreenToken => UnservedOperations::SESSION,
            ApiCall::TimingPadOn | ApiCall::NetStorageOn => UnservedOperations::BOOT,
            ApiCall::TimingPadOff | ApiCall::NetStorageOff => UnservedOperations::SHUTDOWN,
            ApiCall::Restart => UnservedOperations::RESTART,
            _ => 0,
        };
        UnservedOperations(withheld.fold(0, |set, (call, _)| set | operation(call)))
    }

    async fn reread(&self, id: &DeviceId) -> Option<Arc<DeviceSnapshot>> {
        let known = self.ledger.get(id)?;
        let read = match self.api.guard().would_refuse() {
            Some(withheld) => Err(Unreachable(withheld.to_string().into())),
            None => self.listing.reread(&self.ledger, &known, &self.clock).await,
        };
        match read {
            Ok(listed) => Some(self.snapshot(&listed, Reach::Reachable)),
            Err(error) => {
                tracing::debug!(device = id.as_str(), %error, "a phone could not be read again");
                // The list finds out if the platform is back, or the phone gone.
                self.refresh.wake();
                Some(self.snapshot(&known, Reach::Unreachable))
            }
        }
    }
}

impl ReadPort for Armcloud {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        self.ledger.page(after, limit, |pads| self.show(pads, see));
        Ok(())
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        self.ledger.find(ids, |pads| self.show(pads, see));
        Ok(())
    }

    fn at_hand(&self, id: &DeviceId) -> AtHand {
        let listed = self.ledger.get(id);
        listed.map_or(AtHand::Nothing, |listed| AtHand::Then(self.snapshot(&listed, self.reach()), listed.read_at))
    }

    fn read_anew<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Found> {
        Box::pin(async move {
            match self.reread(id).await {
                // Without a list, nobody knows that a phone does not exist.
                None if !self.ledger.is_known() => Err(Unreachable("the platform was not listed yet".into())),
                found => Ok(found),
            }
        })
    }

    fn has_left(&self, id: &DeviceId) -> bool {
        self.ledger.has_left(id)
    }

    fn is_unread(&self) -> bool {
        !self.ledger.is_known()
    }

    fn retry_after(&self, _: &DeviceId) -> Option<Duration> {
        let until = self.api.guard().would_refuse()?.until()?;
        Some(until.since(self.clock.now())).filter(|wait| !wait.is_zero())
    }
}

fn hash(base_url: &str, access_key: &str) -> String {
    // The length separates the two parts that are hashed.
    let parts = format!("{}:{base_url}{access_key}", base_url.len());
    hex::encode(&Sha256::digest(parts))
}

impl Lists for Arc<Api> {
    fn infos<'a>(&'a self, ask: &'a InfosQuery) -> BoxFuture<'a, Result<PadRows, NoList>> {
        Box::pin(async move { Ok(self.read(Class::Read, ApiCall::Infos, ask).await?) })
    }

    fn user_pad_list<'a>(&'a self, ask: &'a SeatsQuery) -> BoxFuture<'a, Result<PadRows, NoList>> {
        Box::pin(async move { Ok(self.read(Class::Read, ApiCall::UserPadList, ask).await?) })
    }

    fn change_records(&self) -> BoxFuture<'_, Result<CodeChanges, NoList>> {
        Box::pin(async move { Ok(self.read(Class::Read, ApiCall::PadChanges, &json!({})).await?) })
    }

    fn pause_end(&self) -> Option<Timestamp> {
        self.guard().would_refuse()?.until()
    }
}

impl From<ApiError> for NoList {
    fn from(error: ApiError) -> Self {
        match error {
            error if error.is_unsupported() => Self::Unsupported,
            error if error.is_missing_pad() => Self::NoSuchPad,
            error if error.is_refused() => {
                let remedy = error.remedy();
                Self::Refused(Unreachable(format!("{}; {remedy}", error.why().as_str()).into()))
            }
            error => Self::Failed(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_that_the_platform_does_not_take_is_tried_in_another_form() {
        let of = |code| NoList::from(ApiError::Refused { code, why: "why".into() });
        assert!(matches!(of(100_000), NoList::Refused(_)));
        let NoList::Refused(Unreachable(why)) = of(100_001) else { panic!("it is refused") };
        assert_eq!(why.as_str(), "why; ask the vendor to allow these calls on this account");
        for code in [2019, 429] {
            assert!(matches!(of(code), NoList::Failed(_)), "{code:?}");
        }
        let too_often = ApiError::Refused { code: 429, why: "why".into() };
        assert!(too_often.remedy().starts_with("wait a minute"), "no fault of the keys");
        assert!(matches!(NoList::from(ApiError::NotSent("why".into())), NoList::Failed(_)));
    }
}
