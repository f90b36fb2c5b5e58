//! Puts the parts of the product together, and makes the platforms.
//!
//! To use another platform, pass it to [`service`] in [`Platforms`], and run that with [`program`].
//! The program then has every operator command, the doctor and the monitor.

use crate::adapter_kit::readings::{CallbackUrls, PhoneReadings, ProxyReader};
use crate::commands::{Operated, PhoneCommand};
use crate::configuration::{self, PlatformConfig, SIMULATOR};
use crate::phones::contract::Contract;
use crate::phones::devices::{Phones, ScreenPasses};
use crate::phones::platforms::Platforms;
use crate::phones::port::{Platform, PlatformName};
use crate::phones::proxy_hosts::ProxyHosts;
use crate::phones::screens::Screens;
use crate::phones::writes::Writes;
use crate::platforms::adb::{self, Adb, AdbSettings};
use crate::platforms::armcloud::Armcloud;
use crate::platforms::simulator::Sim;
use anyhow::{Context, Result, bail};
use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, ArgGroup, Args};
use serde_json::json;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::http::{CallbackListener, CallbackPaths};
use toolwarrant::operator::{Check, Flags, KeyPrefixes, Names};
use toolwarrant::page::Passes;
use toolwarrant::{BoxFuture, Clock, Program, Random, Service, Setup};

/// Flags that the product has with every platform.
#[derive(Clone, Copy, Debug, Args)]
pub struct OwnFlags {
    /// Allow proxies in private networks; the default is true only if all phones are simulated,
    /// because those have no network to protect
    #[arg(long, value_name = "BOOL",
          action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub allow_private_proxy: Option<bool>,

    /// Minutes after which a session on this server's screen page ends, watched or not
    #[arg(long, value_name = "N", default_value = "30", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_440))]
    pub screen_minutes: u32,
}

/// The flags of the product.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("both-echo").args(["echo_listen", "echo_url"]).multiple(true))]
pub struct ProductFlags {
    #[command(flatten)]
    own: OwnFlags,

    /// Number of simulated phones
    #[arg(long, value_name = "N", default_value = "24", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000_000))]
    sim_devices: u32,

    /// Seed of the simulated phones: the same seed gives the same fleet
    #[arg(long, value_name = "N", default_value = "1")]
    sim_seed: u64,

    /// Address of the callback listener: phones of a real platform make requests to it, so that
    /// this server sees the address of their traffic. It serves no other purpose. Phones must
    /// reach it without a proxy in between
    #[arg(long, value_name = "ADDRESS:PORT")]
    echo_listen: Option<SocketAddr>,

    /// URL at which phones reach the callback listener, such as http://203.0.113.7:8081. With a
    /// second one after a comma, at an IPv6 address, a proxy must apply to both families
    #[arg(long, value_name = "URL")]
    echo_url: Option<CallbackUrls>,
}

impl OwnFlags {
    fn proxy_hosts(self) -> ProxyHosts {
        if self.allow_private_proxy == Some(true) { ProxyHosts::PublicAndPrivate } else { ProxyHosts::Public }
    }
}

const JOURNAL: &str = "simulated.jsonl";

#[must_use]
pub fn program<F: Flags>() -> Program<F> {
    let names = Names {
        keys: KeyPrefixes { id: "cpk_", secret: "cps_" },
        ..Names::of("cloudphone", env!("CARGO_PKG_VERSION"))
    };
    Program::with_names(names, "Serves cloud phones to AI agents over the Model Context Protocol.")
        .demo("demo", &["device", "stream"])
        .demo("demo-read", &["device_read"])
        .try_first("list_devices", json!({"limit": 3}))
}

#[must_use]
pub fn service(platforms: Arc<Platforms>, own: OwnFlags, clock: Clock, passes: Passes) -> Service<Contract<Phones>> {
    let last = Duration::from_mins(own.screen_minutes.into());
    let phones = Phones::new(platforms.clone(), own.proxy_hosts(), clock.clone());
    let phones = Arc::new(phones.with_screens(ScreenPasses { passes, last }));
    let writes = Writes::new(platforms.clone(), phones.views());
    let screens = Screens::new(phones.clone(), clock);
    Service::with_executor(Contract(phones), Arc::new(writes)).inventory(platforms).page(Arc::new(screens))
}

/// Runs the program. It simulates phones if the configuration names no platform.
#[must_use]
pub fn run() -> ExitCode {
    program::<ProductFlags>()
        .commands::<PhoneCommand>()
        .table(configuration::TABLE)
        .fleet("adb", "Serve every phone behind the adb server of this machine, instead of simulated phones")
        .alone(|_, config| keeps_for_itself(&configuration::platforms(config).ok()?))
        .usage(
            "Without a command it serves 24 simulated phones on http://127.0.0.1:8080/mcp; its first start prints two keys to try \
             it with. With --config it serves the phones of the platforms in that file. The other commands are for the \
             operator, and work with and without a running server.",
        )
        .check(Check {
            name: "simulated phones",
            holds: "their journal can be read at the next start",
            remedy: "restore simulated.jsonl from a backup, or remove it: the phones are then as before the first command",
            look: |folder| {
                Sim::examine(&folder.join(JOURNAL)).map(|()| Vec::new()).map_err(|error| error.to_string())
            },
        })
        .run(compose)
}

const HINT: &str = "Then try set_proxy: on phone-0000001 it ends as success, on phone-0000013 as failed_silent, refunded, on\n\
                    phone-0000020 as timeout, on phone-0000023 as failed. `cloudphone task list` shows how each went.\n\n";

const SIMULATES: &str = "the simulated phones exist in this process alone; --config names a platform";

const USES_ADB: &str = "the phones of kind \"adb\" are behind the adb server of this machine alone; serve them from a \
                        process without a shared store";

fn keeps_for_itself(named: &[(PlatformName, PlatformConfig)]) -> Option<&'static str> {
    let uses_adb = || named.iter().any(|(_, platform)| matches!(platform, PlatformConfig::Adb(_)));
    if simulates(named) { Some(SIMULATES) } else { uses_adb().then_some(USES_ADB) }
}

/// Returns true also without a platform.
fn simulates(named: &[(PlatformName, PlatformConfig)]) -> bool {
    named.is_empty() || named.iter().any(|(_, platform)| matches!(platform, PlatformConfig::Simulator))
}

fn compose(setup: Setup<'_, ProductFlags>) -> Result<Service<Contract<Phones>, PhoneCommand>> {
    let Setup { flags, fleet, config, folder, files, clock, random, passes, tasks } = setup;
    let named = match fleet {
        Some(_) if config.path().is_some() => {
            bail!("the folder is that of `stdio --adb`; leave out --config or --data")
        }
        Some(switch) => vec![(PlatformName::parse(switch)?, PlatformConfig::Adb(Box::new(AdbSettings::every_phone())))],
        None => configuration::platforms(&config)?,
    };
    let echo = echo(&flags, &random)?;
    let are_real = named.iter().any(|(_, platform)| !matches!(platform, PlatformConfig::Simulator));
    let own = OwnFlags { allow_private_proxy: flags.own.allow_private_proxy.or(Some(!are_real)), ..flags.own };
    let have_proxies = named.iter().any(|(_, platform)| match platform {
        PlatformConfig::Armcloud(_) => true,
        PlatformConfig::Adb(settings) => settings.programs.proxy.is_some(),
        PlatformConfig::Simulator => false,
    });
    if have_proxies && echo.is_none() {
        tracing::warn!(
            "there is no callback listener, so no proxy on a real platform can be verified; --echo-listen sets one up"
        );
    }
    let (listener, reached) = echo.map_or((None, None), |(listener, paths, url)| (Some(listener), Some((paths, url))));
    let mut platforms = Platforms::default();
    let mut background: Vec<BoxFuture<'static, ()>> = Vec::new();
    let simulates = simulates(&named);
    if simulates {
        let sim = Sim::new(flags.sim_seed, flags.sim_devices, clock.clone(), &random.bytes()?);
        let sim = sim.with_journal(&folder.join(JOURNAL)).context("cannot simulate phones")?;
        platforms = platforms.with(PlatformName::parse(SIMULATOR)?, Arc::new(sim));
    }
    for (name, platform) in named {
        let cannot = format!("cannot use the platform {name}");
        let readings = PhoneReadings { echo: reached.clone(), random: random.clone(), by_server: None };
        let adapter: Arc<dyn Platform> = match platform {
            PlatformConfig::Simulator => continue,
            PlatformConfig::Armcloud(account) => {
                let by_server = account.reads_through_proxy.then(|| ProxyReader::new(own.proxy_hosts()));
                let readings = PhoneReadings { by_server, ..readings };
                let adapter = Armcloud::new(name.clone(), *account, readings, &files, clock.clone());
                let adapter = Arc::new(adapter.context(cannot)?);
                background.push(Box::pin(adapter.keep_fresh()));
                adapter
            }
            PlatformConfig::Adb(settings) => {
                let adapter = Adb::new(name.clone(), *settings, readings, &files, (clock.clone(), &random));
                let adapter = Arc::new(adapter.with_screens(passes.have_page()));
                let fresh = adapter.keep_fresh();
                background.push(Box::pin(async move {
                    if fleet.is_some() {
                        adb::start_server().await;
                    }
                    fresh.await;
                }));
                adapter
            }
        };
        platforms = platforms.with(name, adapter);
    }
    let names: Vec<_> = platforms.iter().map(|(name, _)| name.as_str()).collect();
    let serves = match names[..] {
        [SIMULATOR] => format!("{} simulated phones", flags.sim_devices),
        _ => format!("the phones of {}", names.join(", ")),
    };
    let platforms = Arc::new(platforms);
    let operated = Arc::new(Operated { platforms: platforms.clone(), clock: clock.clone(), tasks });
    let service = service(platforms, own, clock, passes).commands(operated.clone()).upstreams(operated).serves(serves);
    let service = if simulates { service.hint(HINT) } else { service };
    if let Some(listener) = listener {
        background.push(Box::pin(listener.serve(std::future::pending())));
    }
    Ok(background.into_iter().fold(service, Service::background))
}

fn echo(flags: &ProductFlags, random: &Random) -> Result<Option<(CallbackListener, CallbackPaths, CallbackUrls)>> {
    let (address, url) = match (flags.echo_listen, &flags.echo_url) {
        (None, None) => return Ok(None),
        (Some(address), Some(url)) => (address, url),
        _ => bail!("--echo-listen and --echo-url go together; give both, or neither"),
    };
    let bound = CallbackListener::bind(address, random.clone());
    let (listener, paths) = bound.with_context(|| format!("cannot listen on {address} for --echo-listen"))?;
    Ok(Some((listener, paths, url.clone())))
}
