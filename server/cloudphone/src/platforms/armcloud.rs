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
use crate::adapter_kit::ledger_adapter::LedgerAdapter;
use crate::adapter_kit::phone_ledger::refresh::Refresh;
use crate::adapter_kit::phone_ledger::{KeptRow, Listed, PhoneLedger, Row};
use crate::adapter_kit::readings::{EverRead, LedgerReadings, PhoneReadings};
use crate::phones::contract::DeviceId;
use crate::phones::port::{DeviceSnapshot, Direction, Found, Pace, Paces, PlatformName, Unreachable};
use api::{Api, ApiCall};
use listing::Listing;
use rows::{Abilities, Pad, UnservedOperations};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Clock;
use toolwarrant::base::hex;
use toolwarrant::files::ServiceFiles;

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
    /// The readings may make requests of this server through proxies.
    pub reads_through_proxy: bool,
}

const LEAVES_WITHIN: Duration = Duration::from_secs(8);

/// The codes of ARMCloud's pads with network storage begin so.
const NETWORK_STORAGE: &str = "ACN";

impl Armcloud {
    pub fn new(
        name: PlatformName,
        account: Account,
        readings: PhoneReadings,
        files: &ServiceFiles,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let Account { settings, keys, limits, on_off, power_seconds, proxy_seconds, shared_address, .. } = account;
        let (family, identity) = (settings.family, hash(settings.base_url.as_str(), &keys.access_key));
        let ledger = Arc::new(PhoneLedger::open(files, name, clock.clone()));
        let readings = LedgerReadings::new(Arc::clone(&ledger), readings, shared_address);
        let starts = EverRead::new(
            ledger.is_proven(None, Direction::Start, &identity) || ledger.any(|_, known, _| known.start.is_some()),
        );
        let api = Arc::new(Api::new(settings, keys, Guard::new(limits, clock.clone()), clock.clone())?);
        let listing = Arc::new(Listing::new(Arc::clone(&api)));
        let refresh = Arc::new(Refresh::new(Arc::clone(&ledger), listing.clone()));
        let paces = Paces { proxy: Some(Pace::of(proxy_seconds)), power: Some(Pace::of(power_seconds)) };
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
}

impl LedgerAdapter for Armcloud {
    type Row = Pad;
    type Limits = UnservedOperations;

    fn ledger(&self) -> &PhoneLedger<Pad> {
        &self.ledger
    }

    fn refresh(&self) -> &Refresh<Pad> {
        &self.refresh
    }

    fn limits(&self) -> Option<UnservedOperations> {
        self.api.guard.would_refuse().is_none().then(|| self.find_unserved())
    }

    fn view<'a>(
        &self,
        id: &DeviceId,
        row: &'a KeptRow<Pad>,
        limits: Option<&UnservedOperations>,
    ) -> &'a Arc<DeviceSnapshot> {
        self.abilities.snapshot(id, row, limits.copied())
    }

    async fn reread(&self, known: &Listed<Pad>) -> Found {
        match self.api.guard.would_refuse() {
            Some(withheld) => Err(Unreachable(withheld.to_string().into())),
            None => self.listing.reread(&self.ledger, known, &self.clock).await.map(|()| None),
        }
    }
}

fn hash(base_url: &str, access_key: &str) -> String {
    // The length separates the two parts that are hashed.
    let parts = format!("{}:{base_url}{access_key}", base_url.len());
    hex::encode(&Sha256::digest(parts))
}
