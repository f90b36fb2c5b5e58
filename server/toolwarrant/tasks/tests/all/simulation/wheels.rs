//! Wheels behind an upstream that fails in every possible way. They know the truth: which requests
//! really left, arrived and were carried out.
//!
//! They respect the assumptions of the engine. A request arrives within 10 s of leaving, or never.
//! It acts within the settle time after its arrival or its answer, even if the answer is lost.
//! `NotSent` is never reported for a request that left. A reading is wrong only in a direction that
//! the wheel's [`Sight`] does not claim to prove, and these claims are true.

use super::contender::Body;
use super::sight::Sight;
use super::{Mutant, Nature, short};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::catalogue::PolicyDef;
use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
use toolwarrant_tasks::leave::Leave;
use toolwarrant_tasks::machine::{Facts, Provability, Sent};
use toolwarrant_tasks::task::{Reading, TaskId, UpstreamAnswer, Verdict};

/// A turn that is younger seems to be the effect of a request, to a mutant.
const YOUNG: Duration = Duration::from_secs(60);

/// Then no request acts any more.
pub(super) const LATEST: Duration = Duration::from_secs(240);

const fn policy(probe: Option<&'static str>, baseline: bool, idempotent: bool) -> PolicyDef {
    PolicyDef { probe, baseline, idempotent, settle_seconds: 0, deadline_seconds: 0 }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Paint(u64),
    /// Rubs its colour off.
    Turn,
    /// No reading can show whether this was done.
    Rinse,
}

impl Act {
    pub(super) fn tool(self) -> &'static str {
        match self {
            Self::Paint(_) => "paint",
            Self::Turn => "turn",
            Self::Rinse => "rinse",
        }
    }

    fn policy(self) -> PolicyDef {
        match self {
            Self::Paint(_) => policy(Some("colour"), false, true),
            Self::Turn => policy(Some("turns"), true, false),
            Self::Rinse => policy(None, false, false),
        }
    }

    pub(super) fn to_text(self, wheel: usize) -> String {
        let Self::Paint(colour) = self else { return format!("{wheel} 0") };
        format!("{wheel} {colour}")
    }

    fn of(write: &Write) -> (usize, Self) {
        let number = |text: &str| text.parse().expect("a number");
        let (wheel, colour) = write.arguments.expose().split_once(' ').expect("two numbers");
        let act = match &*write.tool {
            "paint" => Self::Paint(number(colour)),
            "turn" => Self::Turn,
            _ => Self::Rinse,
        };
        (number(wheel) as usize, act)
    }
}

#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Number of times it left or, if the upstream can be asked, arrived.
    pub(super) left: u32,
    pub(super) done: u32,
    /// True if the wheel had the wanted colour without this request.
    pub(super) was_so: bool,
    pub(super) claimed: bool,
    pub(super) read_in_vain: bool,
    pub(super) done_at: Option<Timestamp>,
    pub(super) lost_at: Option<Timestamp>,
    /// If its sender learned it.
    pub(super) told: Option<UpstreamAnswer>,
    answer: Option<Sent>,
    /// With the time at which the result is known.
    operation: Option<(Timestamp, Option<Sent>)>,
    /// A mutant repeats it.
    facts: Option<Facts>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Wheel {
    colour: u64,
    turns: u64,
    turned_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(super) struct WheelState {
    wheels: [Wheel; 2],
    asked_at: [Option<Timestamp>; 2],
    pub(super) truths: HashMap<TaskId, Truth>,
}

#[derive(Clone, Debug)]
pub(super) struct Wheels {
    nature: Arc<Nature>,
    sights: [Sight; 2],
    state: Arc<Mutex<WheelState>>,
    body: Option<Arc<Body>>,
}

impl Wheels {
    /// Makes wheels whose readings prove everything, without `sights`.
    pub(super) fn new(nature: &Arc<Nature>, sights: Option<SplitMix>) -> Self {
        let clear = Sight::clear(nature.chance(30), nature.chance(30));
        let sights = sights.map_or([clear; 2], |mut random| [Sight::new(&mut random), Sight::new(&mut random)]);
        nature.note(|| format!("{sights:#?}"));
        Self { nature: Arc::clone(nature), sights, state: Arc::default(), body: None }
    }

    pub(super) fn look_up_more(mut self, percent: u64) -> Self {
        for sight in &mut self.sights {
            sight.looks_up |= self.nature.chance(percent);
        }
        self
    }

    pub(super) fn reach(&self, body: &Arc<Body>) -> Self {
        Self { body: Some(Arc::clone(body)), ..self.clone() }
    }

    fn now(&self) -> Timestamp {
        self.body.as_ref().map_or_else(|| self.nature.clock.now(), |body| body.clock.now())
    }

    async fn thaw(&self) {
        if let Some(body) = &self.body {
            body.thaw().await;
        }
    }

    /// Returns true if a request may leave. Mutants ask too early, too little, or never.
    async fn may_leave(&self, leave: Leave) -> bool {
        let Some(body) = &self.body else {
            return leave.confirm().is_ok() || self.nature.is(Mutant::NoSendNotAfter);
        };
        let in_time = |leave: &Leave| body.clock.now() <= leave.not_after();
        if self.nature.is(Mutant::ConfirmBeforeConnecting) {
            let may = leave.clone().confirm().is_ok();
            body.connect().await;
            return may && in_time(&leave);
        }
        body.connect().await;
        match self.nature.mutant {
            Some(Mutant::NoGate) => true,
            Some(Mutant::SendWithoutLease) => in_time(&leave),
            _ => leave.confirm().is_ok(),
        }
    }

    pub(super) fn sight(&self, wheel: &str) -> Sight {
        let wheel: usize = wheel.parse().expect("a number");
        self.sights[wheel].with_first_ask(self.state().asked_at[wheel])
    }

    pub(super) fn policy(&self, wheel: usize, act: Act) -> PolicyDef {
        self.sights[wheel].pace(act.policy())
    }

    pub(super) fn state(&self) -> MutexGuard<'_, WheelState> {
        self.state.lock().expect("no panic")
    }

    async fn request(self, write: Write, leave: Leave) -> Sent {
        let Nature { clock, weather, .. } = &*self.nature;
        self.state().truths.entry(write.id).or_default().told = None;
        self.thaw().await;
        if !self.may_leave(leave).await {
            return Sent::NotSent("the moment has passed".into());
        }
        let (wheel, act) = Act::of(&write);
        let sight = self.sights[wheel];
        if self.nature.chance(weather.refused) || sight.is_gone(clock.now()) {
            return Sent::NotSent("refused".into());
        }
        if let Some(body) = &self.body {
            body.stall().await;
        }
        self.state().truths.entry(write.id).or_default().left += u32::from(!sight.looks_up);
        self.nature.note(|| format!("{} leaves", short(write.id)));
        let (tell, told) = oneshot::channel();
        tokio::spawn(self.clone().travel(write.id, wheel, act, tell));
        let answer = told.await.unwrap_or_else(|_| Sent::NoAnswer("reset".into()));
        self.thaw().await;
        self.state().truths.entry(write.id).or_default().told = match &answer {
            Sent::Ok => Some(UpstreamAnswer::Ok),
            Sent::Err(_) => Some(UpstreamAnswer::Err),
            _ => None,
        };
        answer
    }

    /// Carries a request, even if its sender disconnects or dies.
    async fn travel(self, id: TaskId, wheel: usize, act: Act, tell: oneshot::Sender<Sent>) {
        let Nature { clock, weather, .. } = &*self.nature;
        let slow = self.nature.chance(weather.slow_answers);
        match &self.body {
            Some(body) if slow => {
                let travel = Duration::from_millis(body.pace.draw(&self.nature, body.pace.travel));
                clock.sleep_until(clock.now().plus(travel)).await;
            }
            _ => self.nature.pause(Duration::from_millis(if slow { 9_000 } else { 300 })).await,
        }
        if self.nature.chance(weather.lost_requests) {
            return self.nature.note(|| format!("{} is lost on its way", short(id)));
        }
        let answer = self.arrive(id, wheel, act);
        if slow {
            self.nature.pause(Duration::from_secs(12)).await;
        }
        if !self.nature.chance(weather.lost_answers) {
            drop(tell.send(answer));
        } else if self.nature.chance(50) {
            clock.sleep_until(clock.now().plus(LATEST)).await;
            drop(tell);
        }
    }

    fn arrive(&self, id: TaskId, wheel: usize, act: Act) -> Sent {
        let Nature { clock, weather, .. } = &*self.nature;
        let sight = self.sights[wheel];
        self.state().truths.entry(id).or_default().left += u32::from(sight.looks_up);
        if let Some(Truth { answer: Some(answer), .. }) = self.state().truths.get(&id)
            && sight.dedupes
        {
            return answer.clone();
        }
        let now = clock.now();
        let claims = !self.nature.chance(weather.errors);
        let acts = if claims { !self.nature.chance(weather.swallowed) } else { self.nature.chance(20) };
        let says = if claims { Sent::Ok } else { Sent::Err("jam".into()) };
        let works = self.nature.chance(weather.pending);
        let lost = works && self.nature.chance(sight.lost_operations);
        let ends = if works { now.plus(self.spread(sight.works_for())) } else { now };
        let late_by = if lost { sight.works_for() * 3 / 4 } else { sight.settle() };
        let acts_at = if self.nature.chance(weather.late) { ends.plus(self.spread(late_by)) } else { ends };
        if acts {
            tokio::spawn(self.clone().act(id, wheel, act, acts_at));
        }
        let never = works && self.nature.chance(20);
        let becomes = if lost { Sent::NoAnswer("it took too long".into()) } else { says.clone() };
        self.nature.note(|| {
            let (acts_at, ends) = (acts_at.since(now), ends.since(now));
            format!("{} arrives; it says {becomes:?} after {ends:?}; it acts: {acts}, after {acts_at:?}", short(id))
        });
        let mut state = self.state();
        let truth = state.truths.entry(id).or_default();
        truth.claimed |= claims;
        truth.lost_at = truth.lost_at.or((lost && !never).then_some(ends));
        truth.operation = works.then_some((ends, (!never).then_some(becomes)));
        let answer = if works { Sent::Pending("7".to_owned()) } else { says };
        truth.answer.insert(answer).clone()
    }

    async fn act(self, id: TaskId, wheel: usize, act: Act, at: Timestamp) {
        self.nature.clock.sleep_until(at).await;
        self.nature.note(|| format!("{} is done: {act:?} of {wheel}", short(id)));
        let mut state = self.state();
        let painted = &mut state.wheels[wheel];
        match act {
            Act::Paint(colour) => painted.colour = colour,
            Act::Turn => *painted = Wheel { colour: 0, turns: painted.turns + 1, turned_at: Some(at) },
            Act::Rinse => painted.colour = 0,
        }
        let truth = state.truths.entry(id).or_default();
        truth.done += 1;
        truth.done_at = truth.done_at.or(Some(at));
    }

    fn spread(&self, over: Duration) -> Duration {
        Duration::from_millis(self.nature.below(over.as_millis() as u64 + 1))
    }

    fn find_sent(&self, write: &Write) -> Option<Sent> {
        let state = self.state();
        let truth = state.truths.get(&write.id)?;
        match &truth.operation {
            Some((_, Some(Sent::NoAnswer(_)))) if self.nature.is(Mutant::WaitForTheLost) => {
                Some(Sent::Pending("7".to_owned()))
            }
            Some((ends, Some(says))) if *ends <= self.nature.clock.now() => Some(says.clone()),
            Some(_) => Some(Sent::Pending("7".to_owned())),
            None => truth.answer.clone(),
        }
    }

    /// Returns true if the wheel is in the wanted state, `None` if a reading cannot show that; and
    /// the state.
    fn observe(&self, write: &Write, wheel: usize, act: Act) -> (Option<bool>, String) {
        let mut state = self.state();
        let Wheel { colour, turns, turned_at } = state.wheels[wheel];
        let age = turned_at.map(|at| self.nature.clock.now().since(at));
        let is_later = |sent_by| match age {
            Some(age) if self.nature.is(Mutant::BelieveEachYouth) => age < YOUNG,
            Some(age) => self.now().minus(age) > sent_by,
            None => false,
        };
        let painted = act == Act::Paint(colour);
        let before = write.baseline.as_ref().and_then(|before| before.parse::<u64>().ok());
        let truth = state.truths.entry(write.id).or_default();
        truth.was_so |= painted && truth.done == 0;
        truth.read_in_vain |= self.sights[wheel].is_blind();
        let present = match (act, before) {
            (Act::Turn, Some(before)) => Some(before != turns),
            (Act::Turn, None) => write.sent_by.map(is_later),
            _ => Some(painted),
        };
        (present, format!("{colour} {turns}"))
    }

    async fn look(&self, wheel: usize) -> bool {
        let sight = self.sights[wheel];
        let dark = self.nature.weather.dark;
        if dark > 0 && self.nature.chance(dark / 8) {
            std::future::pending::<()>().await;
        }
        if self.nature.chance(30) {
            self.nature.pause(sight.reads_for()).await;
        }
        !self.nature.chance(dark) && !sight.is_gone(self.nature.clock.now())
    }

    fn claim(&self, write: &Write, honest: Facts) -> Facts {
        let mut state = self.state();
        let told = state.truths.entry(write.id).or_default().facts.get_or_insert(honest);
        let provability = match (self.nature.mutant, honest.provability) {
            (Some(Mutant::BelieveEachAbsence), Provability::Presence) => Provability::Both,
            (Some(Mutant::BelieveEachPresence), Provability::Absence) => Provability::Both,
            (Some(Mutant::HopeToSee), Provability::Nothing(_)) => Provability::Both,
            (Some(Mutant::AskOnce), _) => told.provability,
            (_, honest) => honest,
        };
        let gone = honest.gone.filter(|_| !self.nature.is(Mutant::HopeForReturn));
        Facts { provability, gone, ..honest }
    }
}

impl Executor for Wheels {
    fn facts(&self, write: &Write) -> Facts {
        let (wheel, _) = Act::of(write);
        let now = self.now();
        self.state().asked_at[wheel].get_or_insert(now);
        self.claim(write, self.sight(&write.target).facts(now))
    }

    fn baseline<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async move {
            self.thaw().await;
            let (wheel, _) = Act::of(write);
            self.state().truths.entry(write.id).or_default().read_in_vain |= self.sights[wheel].is_blind();
            let turns = self.state().wheels[wheel].turns;
            let sees = self.look(wheel).await && !self.sights[wheel].is_dark(self.nature.clock.now());
            self.thaw().await;
            if sees { Ok(turns.to_string()) } else { Err(Unreadable("dark".into())) }
        })
    }

    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        let work = self.clone().request(write.clone(), leave);
        match &self.body {
            Some(body) => Box::pin(body.send(work)),
            None => Box::pin(work),
        }
    }

    fn look_up<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(async move {
            self.thaw().await;
            let (wheel, _) = Act::of(write);
            let known = if self.look(wheel).await { Ok(self.find_sent(write)) } else { Err(Unreadable("dark".into())) };
            self.thaw().await;
            known
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            self.thaw().await;
            let (wheel, act) = Act::of(write);
            let (present, observed) = self.observe(write, wheel, act);
            let sight = self.sights[wheel];
            let sees = self.look(wheel).await && !sight.is_dark(self.nature.clock.now());
            let verdict = match present {
                _ if !sees => Verdict::Unreadable,
                Some(present) => sight.verdict(present, || self.nature.chance(50)),
                // An absence without a baseline is not evidence, and the engine must not trust it.
                None => Verdict::Absent,
            };
            self.thaw().await;
            Reading { verdict, expected: format!("{act:?}").into(), observed: observed.into() }
        })
    }
}
