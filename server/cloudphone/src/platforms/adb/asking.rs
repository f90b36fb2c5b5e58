//! Asks one phone if it runs, and the operator's program if it is switched off. A list also brings
//! lost and stuck phones back; a client does not wait for that. Start at [`PhoneAsker::ask`].

use super::address::NetworkAddress;
use super::facts::{PhoneFacts, mark_script, script};
use super::programs::PhonePrograms;
use super::server::AdbServer;
use super::states::AdbState;
use super::wire::PhoneAddress;
use crate::phones::port::{PhoneStart, Unreachable};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolwarrant::base::{hex, ignore_poison};
use toolwarrant::{Random, Timestamp};

pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// Between two tries to bring a phone back.
const REVIVED_EVERY: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct PhoneAsker {
    pub(super) server: AdbServer,
    pub(super) programs: Arc<PhonePrograms>,
    pub(super) connect: Arc<[NetworkAddress]>,
    /// Phones that did not answer, and the last try to bring each back.
    pub(super) revived: Arc<Mutex<BTreeMap<PhoneAddress, Timestamp>>>,
    /// Phones that cannot be marked, each with its start.
    pub(super) unmarked: Arc<Mutex<BTreeMap<PhoneAddress, Option<String>>>>,
    pub(super) random: Random,
}

impl PhoneAsker {
    pub(super) async fn ask(&self, address: &PhoneAddress, state: AdbState) -> (AdbState, Option<PhoneFacts>) {
        let asked = self.ask_listed(address, state).await;
        let may_be_off = matches!(asked.0, AdbState::Silent | AdbState::Absent | AdbState::Offline);
        let is_off = may_be_off && self.programs.is_stopped(address).await;
        if is_off { (AdbState::Stopped, None) } else { asked }
    }

    /// Connects a lost phone again, too, and asks a stuck one to reconnect.
    pub(super) async fn ask_or_revive(
        &self,
        address: &PhoneAddress,
        state: AdbState,
    ) -> (AdbState, Option<PhoneFacts>) {
        let is_lost = matches!(state, AdbState::Absent | AdbState::Offline);
        let state = if is_lost && self.connects(address) && self.must_revive(address, true) {
            let told = self.tell_server(&format!("host:connect:{address}")).await.unwrap_or_default();
            let is_there = ["connected to", "already connected"].iter().any(|start| told.starts_with(start));
            if is_there { AdbState::Silent } else { state }
        } else {
            state
        };
        let asked = self.ask(address, state).await;
        match asked.0 {
            AdbState::Running | AdbState::Booting => drop(ignore_poison(self.revived.lock()).remove(address)),
            AdbState::Silent if self.must_revive(address, false) => {
                // The next list shows whether it helps.
                let _ = self.tell_server(&format!("host-serial:{address}:reconnect")).await;
            }
            _ => {}
        }
        asked
    }

    /// Asks a phone. One that does not answer is too old if it lacks shells with an exit status,
    /// which Android has since version 7. The server knows that.
    async fn ask_listed(&self, address: &PhoneAddress, state: AdbState) -> (AdbState, Option<PhoneFacts>) {
        if state != AdbState::Silent {
            return (state, None);
        }
        match self.server.read_facts(address, self.server.clock.now().plus(ANSWER_WITHIN)).await {
            Ok(facts) => (if facts.has_booted { AdbState::Running } else { AdbState::Booting }, Some(facts)),
            Err(error) => {
                tracing::debug!(%address, %error, "a phone did not answer");
                let is_too_old = |features: String| !features.split(',').any(|feature| feature == "shell_v2");
                let features = self.tell_server(&format!("host-serial:{address}:features")).await;
                (if features.is_ok_and(is_too_old) { AdbState::TooOld } else { AdbState::Silent }, None)
            }
        }
    }

    /// Writes `mark`, or a new one. Returns the mark that can be read there.
    pub(super) async fn mark(
        &self,
        address: &PhoneAddress,
        mark: Option<String>,
        start: Option<String>,
    ) -> Option<String> {
        if ignore_poison(self.unmarked.lock()).get(address) == Some(&start) {
            return None;
        }
        let mark = mark.or_else(|| self.make_word())?;
        self.run(address, &mark_script(&mark)).await.ok()?;
        // It may have been marked over another connection meanwhile.
        let read = self.server.read_facts(address, self.server.clock.now().plus(ANSWER_WITHIN)).await.ok()?.mark;
        if read.is_none() {
            tracing::info!(%address, "a phone cannot be marked, so each connection of it has an id of its own");
            ignore_poison(self.unmarked.lock()).insert(address.clone(), start);
        }
        read
    }

    pub(super) async fn run(&self, address: &PhoneAddress, script: &str) -> Result<String, Unreachable> {
        self.server.reach(address, self.server.clock.now().plus(ANSWER_WITHIN)).await?.run(script).await
    }

    pub(super) fn make_word(&self) -> Option<String> {
        self.random.bytes::<16>().ok().map(|bytes| hex::encode(&bytes))
    }

    async fn tell_server(&self, service: &str) -> Result<String, Unreachable> {
        self.server.ask(service, self.server.clock.now().plus(ANSWER_WITHIN)).await?.text().await
    }

    fn connects(&self, address: &PhoneAddress) -> bool {
        self.connect.iter().any(|NetworkAddress(known)| known == address)
    }

    /// Returns true if it is time to bring a phone back. If not `at_once`, a phone that has only
    /// begun to be silent is left alone, because it may be restarting.
    fn must_revive(&self, address: &PhoneAddress, at_once: bool) -> bool {
        let (mut revived, now) = (ignore_poison(self.revived.lock()), self.server.clock.now());
        let is_due = revived.get(address).map_or(at_once, |last| now.since(*last) >= REVIVED_EVERY);
        if is_due || !revived.contains_key(address) {
            revived.insert(address.clone(), now);
        }
        is_due
    }
}

impl AdbServer {
    pub(super) async fn read_facts(&self, address: &PhoneAddress, until: Timestamp) -> Result<PhoneFacts, Unreachable> {
        Ok(self.read_facts_and_start(address, until).await?.0)
    }

    pub(super) async fn read_facts_and_start(
        &self,
        address: &PhoneAddress,
        until: Timestamp,
    ) -> Result<(PhoneFacts, Option<PhoneStart>), Unreachable> {
        let output = self.reach(address, until).await?.run(&script()).await?;
        let facts = PhoneFacts::parse(&output);
        let facts = facts.ok_or_else(|| Unreachable("the readings of the phone are not whole".into()))?;
        Ok((facts, PhoneFacts::parse_start(&output)))
    }
}
