//! PhoneReadings on a phone that nobody can forge by what he prints: from which address it makes requests, and since when it runs.
//!
//! An address is never what a phone or a proxy says. It is the one from which this server saw a request to a one-time path
//! ([`EchoPaths`]). A phone is asked to make an ordinary request, which takes the way that all its traffic takes, and, where that
//! needs no password, requests that go explicitly through the proxy. What such readings show is [`Exits::verdict`]'s to say; an absence
//! is refunded, so it needs more than a presence. Start at [`PhoneReadings::exits`].

mod direct;
mod means;
mod script;
mod through;

pub use direct::DirectAddresses;
pub use means::Tool;
pub use script::EchoUrl;
pub use through::ProxyReader;

use super::shell::{Shell, run_whole};
use crate::phones::contract::{DeviceId, SetProxyArgs};
use crate::phones::port::{Exits, Through, Unreachable};
use means::{Asker, Tools};
use std::time::Duration;
use toolwarrant::{EchoPaths, Means, Random, SeenFrom};

/// Takes readings on phones.
#[derive(Debug)]
pub struct PhoneReadings {
    /// The echo, and how phones reach it.
    echo: Option<(EchoPaths, EchoUrl)>,
    random: Random,
    tools: Tools,
    by_server: Option<ProxyReader>,
}

impl PhoneReadings {
    /// Takes readings of starts, and of addresses at the echo, if there is one, which phones reach at the URL.
    #[must_use]
    pub fn new(echo: Option<(EchoPaths, EchoUrl)>, random: Random) -> Self {
        Self { echo, random, tools: Tools::default(), by_server: None }
    }

    /// Lets this server ask through proxies itself, where a phone cannot.
    #[must_use]
    pub fn with_proxy_reader(self, reader: ProxyReader) -> Self {
        Self { by_server: Some(reader), ..self }
    }

    /// Reads from which address an ordinary request leaves the phone and, with a proxy, which address that shows.
    ///
    /// # Errors
    /// The phone cannot run commands or make requests, or the ordinary request did not arrive, or from several addresses.
    pub async fn exits(
        &self,
        shell: &dyn Shell,
        id: &DeviceId,
        proxy: Option<&SetProxyArgs>,
    ) -> Result<Exits, Unreachable> {
        let (echo, url) = self.echo.as_ref().ok_or_else(|| Unreachable(NO_ECHO.into()))?;
        let expect = || echo.expect().map_err(|_| Unreachable("the system has no randomness".into()));
        let ordinary = expect()?;
        let pair = [expect()?, expect()?];
        let explicit = proxy.and_then(means::explicit);
        let script = script::requests(url, &ordinary, explicit.as_deref().map(|proxy| (proxy, &pair)));
        let ran = run_whole(shell, &self.random, id, &script).await;
        let tool = Tool::named(&ran.inspect_err(|_| self.tools.forget(id))?.output);
        let asker = proxy.and_then(|proxy| means::asker(proxy, tool, self.by_server.is_some()).map(|by| (by, proxy)));
        if let (Some((Asker::Server, proxy)), Some(reader)) = (asker, &self.by_server)
            && let Err(Unreachable(why)) = reader.ask(proxy, url, &pair).await
        {
            tracing::debug!(device = id.as_str(), why = why.as_str(), "nothing was read through a proxy");
        }
        // Last, so that who repeats a request from elsewhere has had the time to.
        let ordinary = match (ordinary.seen(Duration::ZERO).await, tool) {
            (SeenFrom::One(address), _) => Ok(address),
            (_, Some(Tool::Missing)) => Err("the phone has no program that makes a request"),
            (SeenFrom::Nobody, _) => Err("a request of the phone did not arrive"),
            (SeenFrom::Several, _) => Err("a request of the phone arrived from several addresses"),
        };
        match (ordinary.is_ok() || tool == Some(Tool::Missing), tool) {
            (true, Some(tool)) => self.tools.remember(id, tool),
            _ => self.tools.forget(id),
        }
        let ordinary = ordinary.map_err(|why| Unreachable(why.into()))?;
        let [first, second] = [pair[0].seen(Duration::ZERO).await, pair[1].seen(Duration::ZERO).await];
        let through = match (first, asker) {
            (SeenFrom::One(address), Some((by, _))) if first == second => Some(match by {
                Asker::Phone => Through::Phone(address),
                Asker::Server => Through::Server(address),
            }),
            _ => None,
        };
        Ok(Exits { ordinary, through, direct: None })
    }

    /// Says what [`Self::exits`] can show of this proxy on this phone, by what is known of the phone so far.
    #[must_use]
    pub fn means(&self, id: &DeviceId, proxy: &SetProxyArgs) -> Means {
        match self.echo {
            Some(_) => means::means(proxy, self.tools.known(id), self.by_server.is_some()),
            None => Means::Nothing(NO_ECHO),
        }
    }

    /// The program with which the phone made its last request, where that is known.
    #[must_use]
    pub fn tool(&self, id: &DeviceId) -> Option<Tool> {
        self.tools.known(id)
    }

    /// Reads what changes when the phone starts: the boot id of its kernel, abbreviated, and when its first process started, in ticks
    /// since. Containers share their host's boot id.
    ///
    /// # Errors
    /// The phone cannot run commands, or one of both could not be read.
    pub async fn start(&self, shell: &dyn Shell, id: &DeviceId) -> Result<String, Unreachable> {
        let ran = run_whole(shell, &self.random, id, script::START).await?;
        script::start_of(&ran.output).ok_or_else(|| Unreachable("the start of the phone is not readable".into()))
    }
}

/// Why no address is read where the operator has set no echo up.
const NO_ECHO: &str = "this server has no echo for phones to ask";

#[cfg(test)]
mod tests;
