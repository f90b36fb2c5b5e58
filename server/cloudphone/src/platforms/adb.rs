//! Phones of one's own, through the adb server of this machine.
//!
//! An adb server lists a phone for minutes after it was switched off, and hands commands over long
//! after their callers gave up. So a phone runs only if it answers, and a command waits on the
//! phone for a word before it acts ([`server`] has the steps). For what adb cannot do, such as
//! switching a phone on, the operator names programs ([`programs`]). A screen is a series of
//! pictures ([`screen`]). Start at [`Adb`].

mod address;
mod asking;
mod connections;
mod control;
mod elements;
mod facts;
mod identity;
mod lines;
mod listing;
mod other_work;
mod phone;
mod programs;
mod row;
mod screen;
mod server;
mod start;
mod states;
mod wire;

pub use address::{AdbAddress, NetworkAddress};
pub use lines::PhonePattern;
pub use programs::{AdbPrograms, PowerPrograms, ProxyPrograms};
pub use start::start_server;

use crate::adapter_kit::host_program::RunningPrograms;
use crate::adapter_kit::ledger_adapter::LedgerAdapter;
use crate::adapter_kit::phone_ledger::refresh::Refresh;
use crate::adapter_kit::phone_ledger::{KeptRow, Listed, PhoneLedger};
use crate::adapter_kit::readings::{LedgerReadings, PhoneReadings};
use crate::phones::contract::{DeviceId, DeviceSpec, PowerAction, ProxyScheme, texts};
use crate::phones::port::{DeviceReading, DeviceSnapshot, Found, Offers, Pace, Paces, PlatformName, WritePort};
use asking::PhoneAsker;
use connections::Connections;
use facts::PhoneFacts;
use listing::AdbListing;
use other_work::OtherWork;
use phone::AdbPhones;
use programs::PhonePrograms;
use row::AdbRow;
use screen::AdbScreen;
use server::AdbServer;
use states::AdbState;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::files::ServiceFiles;
use toolwarrant::handler::Flag;
use toolwarrant::text::Untrusted;
use toolwarrant::{Clock, Random};

pub struct Adb {
    ledger: Arc<PhoneLedger<AdbRow>>,
    phones: Arc<AdbPhones>,
    screen: AdbScreen,
    listing: Arc<AdbListing>,
    refresh: Arc<Refresh<AdbRow>>,
    programs: Arc<PhonePrograms>,
    readings: LedgerReadings<AdbRow>,
    work: Arc<OtherWork>,
    region: Option<String>,
    paces: Paces,
    shows_screens: bool,
}

#[derive(Clone, Debug)]
pub struct AdbSettings {
    pub server: AdbAddress,
    pub only: Vec<PhonePattern>,
    /// Phones to which the server is to be connected.
    pub connect: Vec<NetworkAddress>,
    /// By serial, or by `usb:` and a USB path.
    pub names: BTreeMap<String, String>,
    pub region: Option<String>,
    /// Until a phone is up after it has reported a restart.
    pub power_seconds: u32,
    /// Until a proxy is in force after its program has ended.
    pub proxy_seconds: u32,
    /// Phones share addresses, such as behind one router.
    pub shared_address: bool,
    pub programs: AdbPrograms,
}

impl AdbSettings {
    pub const POWER_SECONDS: u32 = 180;
    pub const PROXY_SECONDS: u32 = 30;

    /// Serves every phone behind the adb server of this machine.
    #[must_use]
    pub fn every_phone() -> Self {
        Self {
            server: start::local_server(),
            only: vec![PhonePattern::any()],
            connect: Vec::new(),
            names: BTreeMap::new(),
            region: None,
            power_seconds: Self::POWER_SECONDS,
            proxy_seconds: Self::PROXY_SECONDS,
            shared_address: false,
            programs: AdbPrograms::default(),
        }
    }
}

const ADDRESSES_EVERY: Duration = Duration::from_secs(5);

const NO_PROXY: &str = "a proxy must apply to all traffic of a phone, which adb cannot do, as apps may ignore Android's \
                        own proxy setting; the operator names no program that does";
const NO_SESSION: &str = "this server has no page for screens: its public URL is neither https nor on this machine";
const NO_SERVER: &str = " If that does not help, no adb server runs on this machine: install Android's platform tools \
                         there, connect a phone that allows USB debugging, and run `adb start-server`.";
const NO_PHONE: &str = "The adb server lists no phone that is served: connect one that allows USB debugging, accept the \
                        question on its screen, and list the devices again.";
const NO_START: &str = "the phone does not let its start be read, so no restart could be verified";

impl Adb {
    pub fn new(
        name: PlatformName,
        settings: AdbSettings,
        readings: PhoneReadings,
        files: &ServiceFiles,
        (clock, random): (Clock, &Random),
    ) -> Self {
        let ledger = Arc::new(PhoneLedger::open(files, name, clock.clone()));
        let readings = LedgerReadings::new(Arc::clone(&ledger), readings, settings.shared_address);
        let running = RunningPrograms::default();
        let programs =
            Arc::new(PhonePrograms { named: settings.programs, names: settings.names, running, clock: clock.clone() });
        let server = AdbServer { address: settings.server, clock: clock.clone(), random: random.clone() };
        let phones = Arc::new(AdbPhones { ledger: Arc::clone(&ledger), server: server.clone() });
        let asker = PhoneAsker { server, programs: Arc::clone(&programs), connect: settings.connect.into() };
        let known = Connections::of_rows(ledger.all_phones().into_iter().filter_map(AdbRow::restore));
        let listing = Arc::new(AdbListing::new(asker, settings.only, known));
        let refresh = Arc::new(Refresh::new(Arc::clone(&ledger), listing.clone()));
        let [proxy, power] = [settings.proxy_seconds, settings.power_seconds].map(|seconds| Some(Pace::of(seconds)));
        let work = Arc::new(OtherWork::default());
        let screen = AdbScreen { phones: Arc::clone(&phones), work: Arc::clone(&work), clock };
        Self {
            ledger,
            phones,
            screen,
            listing,
            refresh,
            programs,
            readings,
            work,
            region: settings.region,
            paces: Paces { proxy, power },
            shows_screens: false,
        }
    }

    /// Offers sessions if this server has a page for screens.
    #[must_use]
    pub fn with_screens(self, shows_screens: bool) -> Self {
        Self { shows_screens, ..self }
    }

    pub fn keep_fresh(self: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        let adapter = Arc::clone(self);
        async move { tokio::join!(adapter.refresh.run(), adapter.read_addresses()).0 }
    }

    async fn read_addresses(&self) {
        let clock = &self.phones.server.clock;
        while self.programs.named.proxy.is_some() {
            let is_ready = |row: &AdbRow| row.state == AdbState::Running;
            match self.readings.next_unread(is_ready) {
                Some(id) => {
                    if let Err(error) = self.exits(&id, None).await {
                        tracing::debug!(device = id.as_str(), %error, "the own address of a phone could not be read");
                    }
                }
                None => clock.sleep_until(clock.now().plus(ADDRESSES_EVERY)).await,
            }
        }
    }

    fn describe(&self, id: &DeviceId, row: &AdbRow, is_known: bool) -> DeviceReading {
        let AdbRow { address, state, facts, .. } = row;
        let PhoneFacts { start, model, release, cores, memory_mb, storage_gb, .. } = facts;
        let offered = |is_ready: bool| match is_known {
            true if is_ready => Flag::Offered,
            // A phone that does not answer may do so in a moment.
            true => Flag::Passing(state.why()),
            false => Flag::Unreachable,
        };
        let runs = *state == AdbState::Running;
        let power = match (state, start) {
            // Switching on and off needs no connection to the phone.
            (state, _) if self.programs.named.power.is_some() && state.may_be_off() => offered(true),
            // The operator's program restarts a phone that hangs, too.
            (state, _) if self.programs.named.restart.is_some() && state.may_run() => offered(true),
            (AdbState::Running, None) => Flag::Refused(NO_START),
            (state, _) if state.may_run() => offered(runs),
            _ => Flag::Refused(state.why()),
        };
        let while_running = |refusal: Option<&'static str>| match (state, refusal) {
            (_, Some(why)) => Flag::Refused(why),
            (state, None) if state.may_run() => offered(runs),
            (AdbState::Stopped, None) if self.programs.named.power.is_some() => {
                Flag::Curable { why: state.why(), cure: texts::BOOT_FIRST }
            }
            (_, None) => Flag::Refused(state.why()),
        };
        let proxy = while_running(self.programs.named.proxy.is_none().then_some(NO_PROXY));
        let session = while_running((!self.shows_screens).then_some(NO_SESSION));
        DeviceReading {
            id: id.clone(),
            name: Untrusted::clean(self.programs.name_of(address).unwrap_or(address.as_str())),
            state: state.visible_state().filter(|_| is_known),
            offers: Offers { proxy, power, session },
            spec: Arc::new(DeviceSpec {
                model: model.clone(),
                os_version: release.clone(),
                cpu_cores: *cores,
                memory_mb: *memory_mb,
                storage_gb: *storage_gb,
                screen: None,
                region: self.region.as_deref().map(Untrusted::clean),
            }),
            // Nothing over adb starts a phone that is off.
            power_actions: Cow::Borrowed(match self.programs.named.power {
                Some(_) => PowerAction::ALL,
                None => &[PowerAction::Restart],
            }),
            proxy_schemes: Cow::Borrowed(match self.programs.named.proxy {
                Some(_) => &[ProxyScheme::Socks5, ProxyScheme::Http],
                None => &[],
            }),
            proxy: None,
            session_modes: Cow::Borrowed(&[]),
            paces: self.paces,
        }
    }
}

impl LedgerAdapter for Adb {
    type Row = AdbRow;
    type Limits = ();

    const UNREAD_REMEDY: Option<&'static str> = Some(NO_SERVER);
    const EMPTY_REMEDY: Option<&'static str> = Some(NO_PHONE);

    fn ledger(&self) -> &PhoneLedger<AdbRow> {
        &self.ledger
    }

    fn refresh(&self) -> &Refresh<AdbRow> {
        &self.refresh
    }

    fn limits(&self) -> Option<()> {
        self.refresh.is_reachable().then_some(())
    }

    fn view<'a>(&self, id: &DeviceId, row: &'a KeptRow<AdbRow>, limits: Option<&()>) -> &'a Arc<DeviceSnapshot> {
        let is_known = limits.is_some();
        row.made[usize::from(is_known)].get_or_init(|| Arc::new(self.describe(id, row, is_known).into()))
    }

    async fn reread(&self, Listed { id, row: known, .. }: &Listed<AdbRow>) -> Found {
        let (_work, began) = (self.work.begin(id), self.ledger.now());
        match self.listing.read_one(known).await? {
            // Two lists without a phone decide that it has left, however often it is read.
            row if row.state == AdbState::Absent => {
                self.refresh.wake();
                Ok(Some(Arc::new(self.describe(id, &row, true).into())))
            }
            row => {
                self.ledger.note(row, began).await;
                Ok(None)
            }
        }
    }
}
