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
        let connects = self.connect.iter().any(|NetworkAddress(known)| known == address);
        if matches!(listed, AdbState::Absent | AdbState::Offline) && connects && is_due(true) {
            tries_at = Some(now);
            let told = self.server.tell(&format!("host:connect:{address}")).await.unwrap_or_default();
            if listed == AdbState::Offline && told.starts_with("already connected") {
                // The server keeps its dead connection.
                self.reconnect(address).await;
            } else if ["connected to", "already connected"].iter().any(|start| told.starts_with(start)) {
                listed = AdbState::Silent;
            }
        }
        let answer = self.ask(address, listed).await;
        match answer.state {
            AdbState::Running | AdbState::Booting | AdbState::Unbooted => tries_at = None,
            AdbState::Silent if is_due(false) && tries_at == tried_at => {
                tries_at = Some(now);
                self.reconnect(address).await;
            }
            AdbState::Silent => tries_at = tries_at.or(Some(now)),
            _ => {}
        }
        (answer, tries_at)
    }

    /// The next list shows whether it helps.
    async fn reconnect(&self, address: &PhoneAddress) {
        let _ = self.server.tell(&format!("host-serial:{address}:reconnect")).await;
    }

    /// Asks a phone. One that does not answer is too old if it lacks shells with an exit status,
    /// which Android has since version 7. The server knows that.
    async fn ask_listed(&self, address: &PhoneAddress, state: AdbState) -> Answer {
        if state != AdbState::Silent {
            return Answer { state, facts: None };
        }
        match self.server.read_facts(address).await {
            Ok(facts) => Answer { state: AdbState::of_answer(&facts), facts: Some(facts) },
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
}

#[cfg(test)]
mod tests {
    use super::super::address::AdbAddress;
    use super::*;
    use std::path::Path;
    use std::sync::Mutex;
    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;
    use toolwarrant::{Clock, Random};

    /// Serves `said` as the answer to each request, and returns the requests.
    fn serve(path: &Path, said: &'static str) -> Arc<Mutex<Vec<String>>> {
        let (listener, asked) = (UnixListener::bind(path).unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let list = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut service = vec![0; 4_096];
                let length = stream.read(&mut service).await.unwrap();
                list.lock().unwrap().push(String::from_utf8_lossy(&service[4..length]).into_owned());
                stream.write_all(format!("OKAY{:04x}{said}", said.len()).as_bytes()).await.unwrap();
            }
        });
        asked
    }

    #[tokio::test]
    async fn a_connection_that_the_server_keeps_although_it_is_lost_is_made_again() {
        let (folder, address) = (TempDir::new().unwrap(), PhoneAddress::parse("192.0.2.7:5555").unwrap());
        for (listed, said, is_reconnected) in [
            (AdbState::Offline, "already connected to 192.0.2.7:5555", true),
            (AdbState::Offline, "failed to connect", false),
            (AdbState::Absent, "connected to 192.0.2.7:5555", false),
        ] {
            let (path, clock) = (folder.path().join(said), Clock::manual(Timestamp(1)));
            let asked = serve(&path, said);
            let (named, names, running) = Default::default();
            let programs = Arc::new(PhonePrograms { named, names, running, clock: clock.clone() });
            let (server, connect) = (
                AdbServer { address: AdbAddress::Unix(path), clock, random: Random::System },
                NetworkAddress(address.clone()),
            );
            let asker = PhoneAsker { server, programs, connect: [connect].into() };
            asker.ask_or_revive(&address, listed, None).await;
            let reconnects = "host-serial:192.0.2.7:5555:reconnect".to_owned();
            assert_eq!(asked.lock().unwrap().contains(&reconnects), is_reconnected, "{said}: {asked:?}");
        }
    }
}
