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

pub use api::{ApiSettings, Family};
pub use sign::{AccountKeys, Scheme};

use crate::adapter_kit::guard::{Guard, GuardLimits};
use crate::adapter_kit::phone_ledger::refresh::Refresh;
use crate::adapter_kit::phone_ledger::{KnownPhones, Listed, PhoneLedger, Row};
use crate::adapter_kit::readings::{EverRead, LedgerReadings, PhoneReadings};
use crate::phones::contract::DeviceId;
use crate::phones::port::{
    AtHand, DeviceSnapshot, Direction, Found, Pace, Paces, PlatformName, ReadPort, See, Unreachable,
};
use api::{Api, ApiCall};
use listing::Listing;
use rows::{Abilities, Pad, Reach, UnservedOperations};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::base::hex;
use toolwarrant::files::ServiceFiles;
use toolwarrant::{BoxFuture, Clock};

pub struct Armcloud {
    api: Arc<Api>,
    family: Family,
    ledger: Arc<PhoneLedger<Pad>>,
    listing: Arc<Listing>,
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
    pub settings: ApiSettings,
    pub keys: AccountKeys,
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

/// The codes of ARMCloud's pads with network storage begin so.
const NETWORK_STORAGE: &str = "ACN";

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
        let Account { settings, keys, limits, on_off, power_seconds, proxy_seconds, shared_address } = account;
        let (family, identity) = (settings.family, hash(settings.base_url.as_str(), &keys.access_key));
        let ledger = Arc::new(PhoneLedger::open(files, name, clock.clone()));
        let readings = LedgerReadings::new(Arc::clone(&ledger), readings, shared_address);
        let starts = EverRead::new(
            ledger.is_proven(None, Direction::Start, &identity) || ledger.any(|_, known, _| known.start.is_some()),
        );
        let api = Arc::new(Api::new(settings, keys, Guard::new(limits, clock.clone()), clock.clone())?);
        let listing = Arc::new(Listing::new(Arc::clone(&api)));
        let refresh = Arc::new(Refresh::new(Arc::clone(&ledger), listing.clone(), clock.clone()));
        let pace = |settle_seconds| Some(Pace { settle_seconds, deadline_seconds: settle_seconds + ROOM_SECONDS });
        let paces = Paces { proxy: pace(proxy_seconds), power: pace(power_seconds) };
        let usual = || if family == Family::Armcloud { vec![NETWORK_STORAGE.to_owned()] } else { Vec::new() };
        let abilities = Abilities { on_off: on_off.unwrap_or_else(usual), paces };
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
