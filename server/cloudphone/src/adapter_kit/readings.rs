//! Measurements on a phone that its output cannot forge: the address from which it makes requests,
//! and the time of its start.
//!
//! An address is never taken from the output of a phone or the answer of a proxy. It is the address
//! from which this server saw a request to a one-time path ([`CallbackPaths`]). A phone makes an
//! ordinary request, which takes the route of all its traffic, and requests explicitly through the
//! proxy if that needs no password. [`Exits::verdict`] interprets them. An absence leads to a
//! refund, so it needs more evidence. Start at [`LedgerReadings::exits`].

mod ever;
mod of_ledger;
mod provability;
mod script;
mod through;

pub use ever::EverRead;
pub use of_ledger::LedgerReadings;
pub use script::{CallbackUrl, CallbackUrls, START, start_of};
pub use through::{Dial, DialedConnection, Duplex, ProxyReader};

use super::shell::{Shell, Tool, run_whole};
use crate::phones::contract::{DeviceId, SetProxyArgs};
use crate::phones::port::{Exits, NOTHING_ARRIVED, OtherExits, Through, Unreachable};
use provability::Asker;
use std::net::IpAddr;
use std::time::Duration;
use toolwarrant::Random;
use toolwarrant::http::{CallbackPaths, CallbackSource};

#[derive(Debug)]
pub struct PhoneReadings {
    pub echo: Option<(CallbackPaths, CallbackUrls)>,
    pub random: Random,
    pub by_server: Option<ProxyReader>,
}

impl PhoneReadings {
    /// Reads the address of ordinary requests and, with a proxy, the address that it shows, in each
    /// family of the callback listener. `dial` opens connections from the phone. Notes the program
    /// of the phone in `tool`. It is an error if the ordinary request does not arrive, or from
    /// several addresses.
    async fn exits(
        &self,
        (shell, dial, id): (&dyn Shell, Option<&dyn Dial>, &DeviceId),
        proxy: Option<&SetProxyArgs>,
        tool: &mut Option<Tool>,
    ) -> Result<Exits, Unreachable> {
        *tool = None;
        let (echo, CallbackUrls { first, other }) = self.echo.as_ref().ok_or_else(|| Unreachable(NO_ECHO.into()))?;
        let phone = (shell, dial, id);
        let read = self.read_family(phone, (echo, first), proxy).await?;
        *tool = read.tool.filter(|tool| read.ordinary.is_ok() || *tool == Tool::Missing);
        let ordinary = read.ordinary.map_err(|why| Unreachable(why.into()))?;
        let other = match other {
            Some(url) => {
                let FamilyReading { ordinary, through, .. } = self.read_family(phone, (echo, url), proxy).await?;
                let through = through.map(Through::address);
                match ordinary {
                    Ok(ordinary) => Some(OtherExits { ordinary, through }),
                    Err(NOTHING_ARRIVED) => None,
                    Err(why) => return Err(Unreachable(why.into())),
                }
            }
            None => None,
        };
        Ok(Exits { other, ..Exits::of(ordinary, read.through) })
    }

    async fn read_family(
        &self,
        (shell, dial, id): (&dyn Shell, Option<&dyn Dial>, &DeviceId),
        (echo, url): (&CallbackPaths, &CallbackUrl),
        proxy: Option<&SetProxyArgs>,
    ) -> Result<FamilyReading, Unreachable> {
        let expect = || echo.expect().map_err(|error| Unreachable(error.to_string().into()));
        let ordinary = expect()?;
        let pair = [expect()?, expect()?];
        let asker = |tool| {
            let by = provability::asker(proxy?, tool, dial.is_some(), self.by_server.is_some())?;
            Some((by, proxy?))
        };
        let explicit = proxy.filter(|_| dial.is_none()).and_then(provability::explicit);
        let script = script::requests(url, &ordinary, explicit.as_deref().map(|proxy| (proxy, &pair)));
        let from_phone = async {
            match (dial, asker(None)) {
                (Some(dial), Some((Asker::PhoneConnection, proxy))) => {
                    through::ask_from_phone(dial, id, proxy, url, &pair).await
                }
                _ => Ok(()),
            }
        };
        let (ran, asked) = tokio::join!(run_whole(shell, &self.random, id, &script), from_phone);
        let tool = ran?.parse().ok();
        let asked = match (asked, asker(tool), &self.by_server) {
            (Ok(()), Some((Asker::Server, proxy)), Some(reader)) => reader.ask(proxy, url, &pair).await,
            (asked, ..) => asked,
        };
        if let Err(Unreachable(why)) = asked {
            tracing::debug!(device = id.as_str(), why = why.as_str(), "nothing was read through a proxy");
        }
        // Last, so that a repeat of the request from another address has time to arrive.
        let now = Duration::ZERO;
        let (ordinary, first, second) = tokio::join!(ordinary.observe(now), pair[0].observe(now), pair[1].observe(now));
        let ordinary = match (ordinary, tool) {
            (CallbackSource::One(address), _) => Ok(address),
            (_, Some(Tool::Missing)) => Err("the phone has no program that makes a request"),
            (CallbackSource::Nobody, _) => Err(NOTHING_ARRIVED),
            (CallbackSource::Several, _) => Err("a request of the phone arrived from several addresses"),
        };
        let through = match (first, asker(tool)) {
            (CallbackSource::One(address), Some((by, _))) if first == second => Some(match by {
                Asker::Phone | Asker::PhoneConnection => Through::Phone(address),
                Asker::Server => Through::Server(address),
            }),
            _ => None,
        };
        Ok(FamilyReading { ordinary, through, tool })
    }
}

struct FamilyReading {
    ordinary: Result<IpAddr, &'static str>,
    through: Option<Through>,
    tool: Option<Tool>,
}

const NO_ECHO: &str = "this server has no callback listener";

#[cfg(test)]
mod tests;
