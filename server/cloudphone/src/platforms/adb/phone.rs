//! One phone as it was read, and the only way to give it commands: each does nothing on another
//! phone that has its address meanwhile. Start at [`AdbPhones::find`].

use super::facts::{BOOTED, NOT_BOOTED, OTHER_PHONE, PhoneFacts, on_marked, start_script};
use super::row::AdbRow;
use super::server::{AdbServer, ReadyPhone};
use super::states::AdbState;
use super::wire::STREAM_MAX;
use crate::adapter_kit::phone_ledger::{KeptRow, PhoneLedger};
use crate::adapter_kit::readings::{Dial, DialedConnection};
use crate::adapter_kit::shell::{Shell, quote};
use crate::phones::contract::DeviceId;
use crate::phones::port::{PhoneStart, Unreachable};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;

/// Ends as soon as the phone's init has accepted it.
const RESTART: &str = "setprop sys.powerctl reboot,";

const REQUESTS_WITHIN: Duration = Duration::from_secs(20);

const CONNECTION_SECONDS: u8 = 8;

const NO_END: &str =
    "the phone answers, and its request does not end: a proxy in its way may accept connections and say nothing";

const OTHER: &str = "another phone has this address meanwhile";

pub(super) struct AdbPhones {
    pub(super) ledger: Arc<PhoneLedger<AdbRow>>,
    pub(super) server: AdbServer,
}

pub(super) struct Phone<'a> {
    pub(super) row: Arc<KeptRow<AdbRow>>,
    server: &'a AdbServer,
}

impl AdbPhones {
    pub(super) fn find(&self, id: &DeviceId) -> Result<Phone<'_>, Unreachable> {
        let row = self.ledger.get(id).ok_or_else(|| Unreachable(format!("{id} is in no list").into()))?.row;
        match row.state {
            AdbState::Unclear => Err(Unreachable(row.state.why().into())),
            _ => Ok(Phone { row, server: &self.server }),
        }
    }

    fn until(&self) -> Timestamp {
        self.server.clock.now().plus(REQUESTS_WITHIN)
    }
}

impl Phone<'_> {
    /// Fails only if another phone answers.
    pub(super) async fn check(&self, until: Timestamp) -> Result<(), Unreachable> {
        match self.run(":", until).await {
            Err(Unreachable(why)) if why.as_str() == OTHER => Err(Unreachable(why)),
            _ => Ok(()),
        }
    }

    /// Returns a script that does nothing on another phone.
    fn guard(&self, script: &str) -> String {
        on_marked(self.row.facts.mark.as_ref()) + script
    }

    /// Returns the output, whatever the exit status of the script is.
    pub(super) async fn run(&self, script: &str, until: Timestamp) -> Result<String, Unreachable> {
        let (output, _) = self.exchange((script, b""), (STREAM_MAX, until)).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    /// Returns the output of at most `bound` bytes, frames included, and the exit status.
    pub(super) async fn exchange(
        &self,
        (script, input): (&str, &[u8]),
        (bound, until): (usize, Timestamp),
    ) -> Result<(Vec<u8>, u8), Unreachable> {
        let stream = self.server.reach(&self.row.address, until).await?;
        match stream.exchange(&self.guard(script), input, bound).await? {
            (_, OTHER_PHONE) => Err(Unreachable(OTHER.into())),
            (_, NOT_BOOTED) => Err(Unreachable(AdbState::Booting.why().into())),
            ended => Ok(ended),
        }
    }

    pub(super) async fn start(&self, until: Timestamp) -> Result<PhoneStart, Unreachable> {
        let output = self.run(&(BOOTED.to_owned() + &start_script()), until).await?;
        let unreadable = || Unreachable("the start of the phone is not readable".into());
        let (facts, start) = PhoneFacts::parse(&output).ok_or_else(unreadable)?;
        // A phone that cannot be marked is known by its serial alone.
        match facts.name() == self.row.facts.name() {
            true => start.ok_or_else(unreadable),
            false => Err(Unreachable(OTHER.into())),
        }
    }

    /// Returns the phone as it waits for the word to restart.
    pub(super) async fn prepare_restart(&self, until: Timestamp) -> Result<ReadyPhone, Unreachable> {
        self.start(until).await?;
        let word = self.server.make_word()?;
        self.server.reach(&self.row.address, until).await?.prepare(&self.guard(""), RESTART, word).await
    }
}

#[async_trait]
impl Shell for AdbPhones {
    async fn run(&self, id: &DeviceId, script: &str) -> Result<String, Unreachable> {
        let (phone, until) = (self.find(id)?, self.until());
        let ran = phone.run(script, until).await;
        let is_late = ran.is_err() && self.server.clock.now() >= until;
        match is_late && phone.run(":", self.server.soon()).await.is_ok() {
            true => Err(Unreachable(NO_END.into())),
            false => ran,
        }
    }
}

#[async_trait]
impl Dial for AdbPhones {
    async fn dial(&self, id: &DeviceId, host: &str, port: u16) -> Result<DialedConnection, Unreachable> {
        let phone = self.find(id)?;
        let netcat = phone.row.facts.netcat.ok_or_else(|| Unreachable("the phone has no nc".into()))?;
        let netcat: &str = netcat.into();
        // A host that begins with `-` is no option.
        let command = phone.guard(&format!("{netcat} -w {CONNECTION_SECONDS} -- {} {port}", quote(host)));
        let stream = self.server.reach(&phone.row.address, self.until()).await?;
        Ok(Box::new(stream.connect(&command).await?) as DialedConnection)
    }
}
