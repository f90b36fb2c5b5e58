//! Measurements on a phone that its output cannot forge: the address from which it makes requests,
//! and the time of its start.
//!
//! An address is never taken from the output of a phone or the answer of a proxy. It is the address
//! from which this server saw a request to a one-time path ([`CallbackPaths`]). The server asks a
//! phone to make an ordinary request, which takes the route of all its traffic. If that needs no
//! password, it also asks for requests that go explicitly through the proxy. [`Exits::verdict`]
//! interprets such readings. An absence leads to a refund, so it needs more evidence than a
//! presence. Start at [`PhoneReadings::exits`].

mod direct;
mod provability;
mod script;
mod through;

pub use direct::DirectAddresses;
pub use provability::Tool;
pub use script::{CallbackUrl, START, start_of};
pub use through::ProxyReader;

use super::shell::{Shell, run_whole};
use crate::phones::contract::{DeviceId, SetProxyArgs};
use crate::phones::port::{Exits, Through, Unreachable};
use provability::{Asker, Tools};
use std::time::Duration;
use toolwarrant::Random;
use toolwarrant::http::{CallbackPaths, CallbackSource};
use toolwarrant::tasks::Provability;

/// Takes readings on phones.
#[derive(Debug)]
pub struct PhoneReadings {
    /// The callback listener, and the URL at which phones reach it.
    echo: Option<(CallbackPaths, CallbackUrl)>,
    random: Random,
    tools: Tools,
    by_server: Option<ProxyReader>,
}

impl PhoneReadings {
    /// Creates readings of starts and of addresses. Addresses need a callback listener, which
    /// phones reach at the URL.
    #[must_use]
    pub fn new(echo: Option<(CallbackPaths, CallbackUrl)>, random: Random) -> Self {
        Self { echo, random, tools: Tools::default(), by_server: None }
    }

    /// Lets this server make requests through proxies itself if a phone cannot.
    #[must_use]
    pub fn with_proxy_reader(self, reader: ProxyReader) -> Self {
        Self { by_server: Some(reader), ..self }
    }

    /// Reads the address from which an ordinary request leaves the phone and, with a proxy, the
    /// address that the proxy shows.
    ///
    /// # Errors
    /// The phone cannot run commands or make requests, or the ordinary request did not arrive, or
    /// it arrived from several addresses.
    pub async fn exits(
        &self,
        shell: &dyn Shell,
        id: &DeviceId,
        proxy: Option<&SetProxyArgs>,
    ) -> Result<Exits, Unreachable> {
        let (echo, url) = self.echo.as_ref().ok_or_else(|| Unreachable(NO_ECHO.into()))?;
        let expect = || echo.expect().map_err(|error| Unreachable(error.to_string().into()));
        let ordinary = expect()?;
        let pair = [expect()?, expect()?];
        let explicit = proxy.and_then(provability::explicit);
        let script = script::requests(url, &ordinary, explicit.as_deref().map(|proxy| (proxy, &pair)));
        let ran = run_whole(shell, &self.random, id, &script).await;
        let tool = Tool::from_name(&ran.inspect_err(|_| self.tools.forget(id))?.output);
        let asker =
            proxy.and_then(|proxy| provability::asker(proxy, tool, self.by_server.is_some()).map(|by| (by, proxy)));
        if let (Some((Asker::Server, proxy)), Some(reader)) = (asker, &self.by_server)
            && let Err(Unreachable(why)) = reader.ask(proxy, url, &pair).await
        {
            tracing::debug!(device = id.as_str(), why = why.as_str(), "nothing was read through a proxy");
        }
        // Last, so that a repeat of the request from another address has time to arrive.
        let now = Duration::ZERO;
        let (ordinary, first, second) = tokio::join!(ordinary.observe(now), pair[0].observe(now), pair[1].observe(now));
        let ordinary = match (ordinary, tool) {
            (CallbackSource::One(address), _) => Ok(address),
            (_, Some(Tool::Missing)) => Err("the phone has no program that makes a request"),
            (CallbackSource::Nobody, _) => Err("a request of the phone did not arrive"),
            (CallbackSource::Several, _) => Err("a request of the phone arrived from several addresses"),
            (CallbackSource::Unknown, _) => Err("the shared store did not answer, so the phone's request is unknown"),
        };
        match (ordinary.is_ok() || tool == Some(Tool::Missing), tool) {
            (true, Some(tool)) => self.tools.remember(id, tool),
            _ => self.tools.forget(id),
        }
        let ordinary = ordinary.map_err(|why| Unreachable(why.into()))?;
        let through = match (first, asker) {
            (CallbackSource::One(address), Some((by, _))) if first == second => Some(match by {
                Asker::Phone => Through::Phone(address),
                Asker::Server => Through::Server(address),
            }),
            _ => None,
        };
        Ok(Exits { ordinary, through, direct: None })
    }

    /// Returns the provability of this proxy on this phone: what [`Self::exits`] can show with
    /// the present knowledge of the phone.
    #[must_use]
    pub fn provability(&self, id: &DeviceId, proxy: &SetProxyArgs) -> Provability {
        match self.echo {
            Some(_) => provability::of(proxy, self.tools.get(id), self.by_server.is_some()),
            None => Provability::Nothing(NO_ECHO),
        }
    }

    /// Returns the program that made the phone's last request, if known.
    #[must_use]
    pub fn tool(&self, id: &DeviceId) -> Option<Tool> {
        self.tools.get(id)
    }

    /// Reads a value that changes when the phone starts: the boot id of its kernel, abbreviated,
    /// and the start of its first process, in ticks since the boot. Containers share the boot id of
    /// their host, so the boot id alone does not suffice.
    ///
    /// # Errors
    /// The phone cannot run commands, or one of the two could not be read.
    pub async fn start(&self, shell: &dyn Shell, id: &DeviceId) -> Result<String, Unreachable> {
        let ran = run_whole(shell, &self.random, id, script::START).await?;
        script::start_of(&ran.output).ok_or_else(|| Unreachable("the start of the phone is not readable".into()))
    }
}

/// The reason that no address is read if the operator has not set up a callback listener.
const NO_ECHO: &str = "this server has no echo for phones to ask";

#[cfg(test)]
mod tests;
