//! The way from a machine to the store, which is late, cut, and loses requests and answers. It also
//! has the claim to lead that the store keeps.

use super::Nature;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::store::StoreError;
use toolwarrant_memory::Memory;

const PATIENCE: Duration = Duration::from_secs(3);

/// The same for a beat. Until then, the process goes on unknowingly.
const BEAT_PATIENCE: Duration = Duration::from_secs(20);

/// Longest delay of a beat in each direction, in milliseconds, on a way without trouble. A process
/// whose beats are slower cannot lead.
const BEAT_SLOW: u64 = 600;

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Late,
    Cut,
    Mute,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) fault: Fault,
    pub(super) hits_beats_alone: bool,
    pub(super) until: Timestamp,
}

#[derive(Debug)]
pub(super) struct Way {
    nature: Arc<Nature>,
    /// In each direction, in milliseconds.
    slow: u64,
    /// In percent, of requests and of answers.
    lossy: u64,
    pub(super) trouble: Mutex<Option<Trouble>>,
}

impl Way {
    pub(super) fn new(nature: &Arc<Nature>, random: &mut SplitMix) -> Self {
        let slow = [0, 2, 200, 2_000][random.below(4) as usize];
        let lossy = [0, 0, 2, 8][random.below(4) as usize];
        nature.note(|| format!("a way: {slow} ms slow, {lossy} percent lost"));
        Self { nature: Arc::clone(nature), slow, lossy, trouble: Mutex::default() }
    }

    async fn pass(&self, is_beat: bool, is_answer: bool) -> Result<(), StoreError> {
        let Nature { clock, .. } = &*self.nature;
        self.nature.pause(Duration::from_millis(if is_beat { self.slow.min(BEAT_SLOW) } else { self.slow })).await;
        let trouble = *self.trouble.lock().expect("no panic");
        let hits = |trouble: &Trouble| trouble.until > clock.now() && (is_beat || !trouble.hits_beats_alone);
        let is_lost = match trouble.filter(hits).map(|trouble| (trouble.fault, trouble.until)) {
            Some((Fault::Late, until)) => {
                clock.sleep_until(until).await;
                false
            }
            Some((Fault::Cut, _)) => true,
            Some((Fault::Mute, _)) => is_answer,
            None => !is_beat && self.nature.chance(self.lossy),
        };
        if !is_lost {
            return Ok(());
        }
        self.nature.pause(if is_beat { BEAT_PATIENCE } else { PATIENCE }).await;
        Err(refuse())
    }

    /// Lets the store do `work`, unless the request is lost. The answer can be lost, too. The
    /// request goes its way whatever happens to the sender.
    pub(super) async fn carry<T: Send + 'static>(
        self: &Arc<Self>,
        is_beat: bool,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ((tell, told), way) = (oneshot::channel(), Arc::clone(self));
        tokio::spawn(async move {
            let request = async {
                way.pass(is_beat, false).await?;
                let done = work.await;
                way.pass(is_beat, true).await?;
                done
            };
            drop(tell.send(request.await));
        });
        told.await.unwrap_or_else(|_| Err(refuse()))
    }
}

pub(super) fn refuse() -> StoreError {
    StoreError::Unanswered("the connection to the store broke".to_owned())
}

#[derive(Debug, Default)]
pub(super) struct Claim(Mutex<ClaimState>);

#[derive(Debug, Default)]
struct ClaimState {
    sessions: u64,
    holder: Option<u64>,
    /// The epoch and the latest beat, unless the run has left or is dead.
    run: Option<(u64, u64)>,
    epoch: u64,
}

pub(super) struct Asked {
    /// Unless it is the own session.
    pub(super) other: Option<u64>,
    pub(super) run: Option<(u64, u64)>,
}

impl Claim {
    fn lock(&self) -> MutexGuard<'_, ClaimState> {
        self.0.lock().expect("no panic")
    }

    pub(super) fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    pub(super) fn connect(&self) -> u64 {
        let mut held = self.lock();
        held.sessions += 1;
        held.sessions
    }

    /// Ends a session; `None` stands for the one that has the lock.
    pub(super) fn disconnect(&self, session: Option<u64>) {
        let mut held = self.lock();
        held.holder = held.holder.filter(|holder| session.is_some_and(|session| session != *holder));
    }

    /// Ends the former run of the folder, whose process is dead, and asks for the lock.
    pub(super) fn ask(&self, session: u64, former: u64) -> Asked {
        let mut held = self.lock();
        held.run = held.run.filter(|(epoch, _)| *epoch != former);
        let holder = *held.holder.get_or_insert(session);
        Asked { other: (holder != session).then_some(holder), run: held.run }
    }

    pub(super) fn begin(&self, session: u64, memory: &Memory) -> Result<(u64, Memory), StoreError> {
        let mut held = self.lock();
        if held.holder != Some(session) {
            return Err(refuse());
        }
        held.epoch += 1;
        held.run = Some((held.epoch, 0));
        Ok((held.epoch, memory.lead()))
    }

    pub(super) fn beat(&self, session: u64, own: u64) -> Result<(), StoreError> {
        let mut held = self.lock();
        let is_holder = held.holder == Some(session);
        match &mut held.run {
            Some((epoch, beat)) if is_holder && *epoch == own => {
                *beat += 1;
                Ok(())
            }
            _ => Err(refuse()),
        }
    }

    pub(super) fn leave(&self, own: u64) -> Result<(), StoreError> {
        let mut held = self.lock();
        held.run = held.run.filter(|(epoch, _)| *epoch != own);
        Ok(())
    }
}
