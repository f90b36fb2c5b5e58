//! Asks one phone if it runs, and the operator's program if it is switched off. A list also brings
//! lost and stuck phones back; a client does not wait for that. Start at [`PhoneAsker::ask`].

use super::address::NetworkAddress;
use super::connections::MarkOrder;
use super::facts::{Mark, PhoneFacts, mark_script, word_script};
use super::programs::PhonePrograms;
use super::server::AdbServer;
use super::states::AdbState;
use super::wire::PhoneAddress;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Timestamp;

/// Between two tries to bring a phone back.
const REVIVED_EVERY: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct PhoneAsker {
    pub(super) server: AdbServer,
    pub(super) programs: Arc<PhonePrograms>,
    pub(super) connect: Arc<[NetworkAddress]>,
}

pub(super) struct Answer {
    pub(super) state: AdbState,
    pub(super) facts: Option<PhoneFacts>,
}

impl PhoneAsker {
    pub(super) async fn ask(&self, address: &PhoneAddress, listed: AdbState) -> Answer {
        let answer = self.ask_listed(address, listed).await;
        let may_be_off = matches!(answer.state, AdbState::Silent | AdbState::Absent | AdbState::Offline);
        let is_off = may_be_off && self.programs.is_stopped(address).await;
        if is_off { Answer { state: AdbState::Stopped, facts: None } } else { answer }
    }

    /// Connects a lost phone again, too, and asks a stuck one to reconnect. Takes and returns the
    /// time of the last try. A phone that has only begun to be silent is left alone, because it may
    /// be restarting.
    pub(super) async fn ask_or_revive(
        &self,
        address: &PhoneAddress,
        listed: AdbState,
        tried_at: Option<Timestamp>,
    ) -> (Answer, Option<Timestamp>) {
        let now = self.server.clock.now();
        let is_due = |first: bool| tried_at.map_or(first, |last| now.since(last) >= REVIVED_EVERY);
        let (mut listed, mut tries_at) = (listed, tried_at);
        if matches!(listed, AdbState::Absent | AdbState::Offline) && self.connects(address) && is_due(true) {
            tries_at = Some(now);
            let told = self.server.tell(&format!("host:connect:{address}")).await.unwrap_or_default();
            if ["connected to", "already connected"].iter().any(|start| told.starts_with(start)) {
                listed = AdbState::Silent;
            }
        }
        let answer = self.ask(address, listed).await;
        match answer.state {
            AdbState::Running | AdbState::Booting => tries_at = None,
            AdbState::Silent if is_due(false) && tries_at == tried_at => {
                tries_at = Some(now);
                // The next list shows whether it helps.
                let _ = self.server.tell(&format!("host-serial:{address}:reconnect")).await;
            }
            AdbState::Silent => tries_at = tries_at.or(Some(now)),
            _ => {}
        }
        (answer, tries_at)
    }

    /// Asks a phone. One that does not answer is too old if it lacks shells with an exit status,
    /// which Android has since version 7. The server knows that.
    async fn ask_listed(&self, address: &PhoneAddress, state: AdbState) -> Answer {
        if state != AdbState::Silent {
            return Answer { state, facts: None };
        }
        match self.server.read_facts(address).await {
            Ok(facts) => {
                let state = if facts.has_booted { AdbState::Running } else { AdbState::Booting };
                Answer { state, facts: Some(facts) }
            }
            Err(error) => {
                tracing::debug!(%address, %error, "a phone did not answer");
                let is_too_old = |features: String| !features.split(',').any(|feature| feature == "shell_v2");
                let features = self.server.tell(&format!("host-serial:{address}:features")).await;
                let state = if features.is_ok_and(is_too_old) { AdbState::TooOld } else { AdbState::Silent };
                Answer { state, facts: None }
            }
        }
    }

    /// Returns the mark that can be read afterwards. It may have been written over another
    /// connection meanwhile.
    pub(super) async fn mark(&self, MarkOrder { address, is_first, mark }: &MarkOrder) -> Option<Mark> {
        let mark = mark.clone().or_else(|| Mark::parse(&self.server.make_word().ok()?))?;
        let script = if *is_first { mark_script(&mark) } else { word_script(&mark, "-") };
        self.server.run(address, &script).await.ok()?;
        self.server.read_facts(address).await.ok()?.mark
    }

    fn connects(&self, address: &PhoneAddress) -> bool {
        self.connect.iter().any(|NetworkAddress(known)| known == address)
    }
}
