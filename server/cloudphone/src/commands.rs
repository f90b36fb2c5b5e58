//! The operator's commands about platforms: `platform list` and `platform check`.

use crate::adapter_kit::check::{check, prove};
use crate::phones::contract::{DeviceId, Host, Port, ProxyScheme, SetProxyArgs};
use crate::phones::platforms::Platforms;
use crate::phones::port::{Finding, Platform, PlatformName};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::operator::{Commands, Explanation, OwnCommand, UpstreamState, Upstreams};
use toolwarrant::tasks::OwnTasks;
use toolwarrant::{BoxFuture, Clock};
use url::Url;

/// Commands of the product, in addition to those that every service has.
#[derive(Debug, Subcommand, Serialize, Deserialize)]
pub enum PhoneCommand {
    /// List the platforms that run the phones, and test their accounts
    #[command(subcommand)]
    Platform(PlatformCommand),
}

/// Commands about platforms.
#[derive(Debug, Subcommand, Serialize, Deserialize)]
pub enum PlatformCommand {
    /// List platforms: whether each can be reached, its number of phones, and the age of its data
    List,
    /// Test a platform step by step: its adb server, or the credentials and clock of its account;
    /// list, readings, screen session
    ///
    /// Does not change a phone. With --write a running server restarts one, and sets and clears a
    /// proxy on it, to see whether readings on the phone follow. `task list` shows these writes. It
    /// records the result for this account. Until then, an effect that is not seen counts as
    /// unknown and is never refunded.
    Check {
        /// Its name in the configuration
        name: String,
        /// Read and restart this phone, and with --proxy set and clear a proxy on it, which reads
        /// its own address again; needs a running server, and no other write may run there
        #[arg(long, value_name = "DEVICE")]
        write: Option<String>,
        /// The proxy for --write, without user and password: http://HOST:PORT or socks5://HOST:PORT
        #[arg(long, value_name = "URL", requires = "write")]
        proxy: Option<String>,
        /// Do not ask before writing
        #[arg(long)]
        yes: bool,
    },
}

impl OwnCommand for PhoneCommand {
    fn question(&self) -> Option<String> {
        match self {
            Self::Platform(PlatformCommand::Check { write: Some(device), proxy, yes: false, .. }) => {
                let proxy = proxy.as_ref().map(|proxy| format!(", sets the proxy {proxy} on it and clears its proxy"));
                let proxy = proxy.unwrap_or_default();
                Some(format!(
                    "This restarts {device}, which ends everything that runs on it{proxy}. \
                              No client may write to it meanwhile. Go on?"
                ))
            }
            Self::Platform(_) => None,
        }
    }

    fn changes(&self) -> bool {
        !matches!(self, Self::Platform(PlatformCommand::List))
    }

    fn patience(&self) -> Duration {
        Duration::from_mins(15)
    }
}

pub(crate) struct Operated {
    pub(crate) platforms: Arc<Platforms>,
    pub(crate) clock: Clock,
    pub(crate) tasks: OwnTasks,
}

impl Commands<PhoneCommand> for Operated {
    fn execute(&self, PhoneCommand::Platform(command): PhoneCommand) -> BoxFuture<'_, Result<Value, Explanation>> {
        Box::pin(async move {
            match command {
                PlatformCommand::List => Ok(self.states().iter().map(describe_upstream).collect()),
                PlatformCommand::Check { name, write, proxy, yes: _ } => self.check(&name, write, proxy).await,
            }
        })
    }
}

impl Operated {
    async fn check(&self, name: &str, write: Option<String>, proxy: Option<String>) -> Result<Value, Explanation> {
        let found = self.platforms.iter().find(|(known, _)| known.as_str() == name);
        let Some((_, platform)) = found else {
            let known: Vec<_> = self.platforms.iter().map(|(name, _)| name.as_str()).collect();
            return Err(format!("there is no platform `{name}`; the configuration has {}", known.join(", ")));
        };
        let device = |device: String| {
            let id = DeviceId::new(&device).map_err(|_| format!("`{device}` is not a device id"))?;
            if device.starts_with(&format!("{name}-")) { Ok(id) } else { Err(format!("{id} is not a phone of {name}")) }
        };
        let write = write.map(device).transpose()?;
        let proxy = write.as_ref().zip(proxy).map(|(device, proxy)| proxy_of(device, &proxy)).transpose()?;
        let (mut steps, may_write) = check(platform, write.as_ref()).await;
        if let Some(write) = write {
            steps.extend(match may_write {
                true => prove(platform, (&self.tasks, &self.clock), &write, proxy.as_ref()).await,
                false => vec![Finding::faulty("write", format!("not done on {write}"), "see the steps before")],
            });
        }
        Ok(json!({"platform": name, "sound": steps.iter().all(|step| step.sound), "steps": steps}))
    }
}

impl Upstreams for Operated {
    fn states(&self) -> Vec<UpstreamState> {
        let state = |(name, platform): (&PlatformName, &dyn Platform)| UpstreamState {
            prefix: Some(format!("{name}-")),
            ..platform.state(name)
        };
        self.platforms.iter().map(state).collect()
    }
}

fn describe_upstream(state: &UpstreamState) -> Value {
    let UpstreamState { name, kind, reachable, age_seconds, targets, unserved, .. } = state;
    let unserved: Vec<String> =
        unserved.iter().map(|(call, seconds)| format!("{call} (404, tried again in {seconds} s)")).collect();
    json!({
        "name": name, "kind": kind, "reachable": reachable, "phones": targets, "unserved": unserved,
        "age_seconds": age_seconds,
    })
}

fn proxy_of(device: &DeviceId, url: &str) -> Result<SetProxyArgs, Explanation> {
    let unsound = || format!("`{url}` is not a supported proxy: expected http://HOST:PORT or socks5://HOST:PORT");
    let read = Url::parse(url).map_err(|_| unsound())?;
    let scheme = match read.scheme() {
        "http" => ProxyScheme::Http,
        "socks5" => ProxyScheme::Socks5,
        _ => return Err(unsound()),
    };
    if !read.username().is_empty() || read.password().is_some() {
        return Err("a proxy with a password cannot be measured on a phone: use one without a password".to_owned());
    }
    let port = read.port().or((scheme == ProxyScheme::Http).then_some(80)).ok_or_else(unsound)?;
    let host = read.host_str().unwrap_or_default().trim_matches(['[', ']']);
    Ok(SetProxyArgs {
        device_id: device.clone(),
        scheme,
        host: Host::new(host).map_err(|_| unsound())?,
        port: Port::new(port.into()).map_err(|_| unsound())?,
        username: None,
        password: None,
        idempotency_key: None,
    })
}
