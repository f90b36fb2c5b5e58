//! Wheels that can be painted, turned and rinsed, behind an upstream that fails in every possible way. They know the truth: what
//! really left, arrived and was done.
//!
//! They keep what the engine relies on. A request arrives within 10 s of leaving, or never. It acts within the settle time after
//! its arrival or its answer, even if the answer is lost. `NotSent` is never reported of a request that left. A reading never lies.

use super::{Mutant, Nature, short};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;
use toolwarrant_core::BoxFuture;
use toolwarrant_core::catalogue::PolicyDef;
use toolwarrant_core::clock::Timestamp;
use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
use toolwarrant_tasks::machine::{Facts, Sent};
use toolwarrant_tasks::task::{Reading, TaskId, Verdict};

const SETTLE_SECONDS: u32 = 6;
const DEADLINE_SECONDS: u32 = 40;

/// Longest time that an operation takes, if it ever ends.
const WORKS_FOR: Duration = Duration::from_secs(20);

/// After this time, nothing acts any more.
pub(super) const LATEST: Duration = Duration::from_secs(60);

const fn policy(probe: Option<&'static str>, baseline: bool, idempotent: bool) -> PolicyDef {
    PolicyDef { probe, baseline, idempotent, settle_seconds: SETTLE_SECONDS, deadline_seconds: DEADLINE_SECONDS }
}

static PAINT: PolicyDef = policy(Some("colour"), false, true);
static TURN: PolicyDef = policy(Some("turns"), true, false);
static RINSE: PolicyDef = policy(None, false, false);

/// What can be done to a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Gives it a colour.
    Paint(u64),
    /// Turns it once more, which rubs its colour off.
    Turn,
    /// Washes its colour off. Nobody can see whether it was done.
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

    pub(super) fn policy(self) -> &'static PolicyDef {
        match self {
            Self::Paint(_) => &PAINT,
            Self::Turn => &TURN,
            Self::Rinse => &RINSE,
        }
    }

    pub(super) fn written(self, wheel: usize) -> String {
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

/// The truth about one request id.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// How often it left or, if the upstream can be asked, how often it arrived.
    pub(super) left: u32,
    /// How often it was done.
    pub(super) done: u32,
    /// Whether the wheel was seen to have the colour without it.
    pub(super) was_so: bool,
    /// Whether the upstream ever claimed that it was done.
    pub(super) claimed: bool,
    answer: Option<Sent>,
    /// The result of an operation, and when it is known.
    operation: Option<(Timestamp, Option<Sent>)>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Wheel {
    colour: u64,
    turns: u64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    wheels: [Wheel; 2],
    pub(super) truths: HashMap<TaskId, Truth>,
}

/// The upstream; clones share the truth.
#[derive(Clone, Debug)]
pub(super) struct Wheels {
    nature: Arc<Nature>,
    facts: Facts,
    state: Arc<Mutex<State>>,
}

impl Wheels {
    pub(super) fn new(nature: &Arc<Nature>) -> Self {
        let facts = Facts { dedupes: nature.chance(30), looks_up: nature.chance(30), ..Facts::default() };
        nature.note(|| format!("{facts:?}"));
        Self { nature: Arc::clone(nature), facts, state: Arc::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    /// Carries a request, whatever becomes of its sender.
    async fn travel(self, id: TaskId, wheel: usize, act: Act, tell: oneshot::Sender<Sent>) {
        let Nature { clock, weather, .. } = &*self.nature;
        let slow = self.nature.chance(weather.slow_answers);
        self.nature.pause(Duration::from_millis(if slow { 9_000 } else { 300 })).await;
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
            // The connection stays open, and nothing comes.
            clock.sleep_until(clock.now().plus(LATEST)).await;
            drop(tell);
        }
    }

    fn arrive(&self, id: TaskId, wheel: usize, act: Act) -> Sent {
        let Nature { clock, weather, .. } = &*self.nature;
        self.state().truths.entry(id).or_default().left += u32::from(self.facts.looks_up);
        if let Some(Truth { answer: Some(answer), .. }) = self.state().truths.get(&id)
            && self.facts.dedupes
        {
            return answer.clone();
        }
        let now = clock.now();
        let claims = !self.nature.chance(weather.errors);
        let acts = if claims { !self.nature.chance(weather.swallowed) } else { self.nature.chance(20) };
        let says = if claims { Sent::Ok } else { Sent::Err("jam".into()) };
        let works = self.nature.chance(weather.pending);
        let ends = if works { now.plus(self.spread(WORKS_FOR)) } else { now };
        let settle = Duration::from_secs(SETTLE_SECONDS.into());
        let acts_at = if self.nature.chance(weather.late) { ends.plus(self.spread(settle)) } else { ends };
        if acts {
            tokio::spawn(self.clone().act(id, wheel, act, acts_at));
        }
        let never = works && self.nature.chance(20);
        self.nature.note(|| {
            let (acts_at, ends) = (acts_at.since(now), ends.since(now));
            format!("{} arrives; it says {says:?} after {ends:?}; it acts: {acts}, after {acts_at:?}", short(id))
        });
        let mut state = self.state();
        let truth = state.truths.entry(id).or_default();
        truth.claimed |= claims;
        truth.operation = works.then(|| (ends, (!never).then(|| says.clone())));
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
            Act::Turn => *painted = Wheel { colour: 0, turns: painted.turns + 1 },
            Act::Rinse => painted.colour = 0,
        }
        state.truths.entry(id).or_default().done += 1;
    }

    fn spread(&self, over: Duration) -> Duration {
        Duration::from_millis(self.nature.below(over.as_millis() as u64 + 1))
    }

    /// Returns what the upstream knows of a request.
    fn known(&self, write: &Write) -> Option<Sent> {
        let state = self.state();
        let truth = state.truths.get(&write.id)?;
        match &truth.operation {
            Some((ends, Some(says))) if *ends <= self.nature.clock.now() => Some(says.clone()),
            Some(_) => Some(Sent::Pending("7".to_owned())),
            None => truth.answer.clone(),
        }
    }

    /// Returns whether the wheel is in the wanted state, and its state.
    fn seen(&self, write: &Write, wheel: usize, act: Act) -> (bool, String) {
        let mut state = self.state();
        let Wheel { colour, turns } = state.wheels[wheel];
        let painted = act == Act::Paint(colour);
        let turned = act == Act::Turn && write.baseline != Some(turns.to_string());
        let truth = state.truths.entry(write.id).or_default();
        truth.was_so |= painted && truth.done == 0;
        (painted || turned, format!("{colour} {turns}"))
    }

    /// Takes a while, sometimes for ever. Returns whether the wheel can be read.
    async fn look(&self) -> bool {
        let dark = self.nature.weather.dark;
        if dark > 0 && self.nature.chance(dark / 8) {
            std::future::pending::<()>().await;
        }
        if self.nature.chance(30) {
            self.nature.pause(Duration::from_millis(1_500)).await;
        }
        !self.nature.chance(dark)
    }
}

impl Executor for Wheels {
    fn facts(&self, _: &Write) -> Facts {
        self.facts
    }

    fn baseline<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async move {
            let (wheel, _) = Act::of(write);
            let turns = self.state().wheels[wheel].turns;
            if self.look().await { Ok(turns.to_string()) } else { Err(Unreadable("dark".into())) }
        })
    }

    fn send<'a>(&'a self, write: &'a Write, not_after: Timestamp) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let Nature { clock, weather, .. } = &*self.nature;
            if clock.now() > not_after && !self.nature.is(Mutant::NoSendNotAfter) {
                return Sent::NotSent("the moment has passed".into());
            }
            if self.nature.chance(weather.refused) {
                return Sent::NotSent("refused".into());
            }
            let (wheel, act) = Act::of(write);
            self.state().truths.entry(write.id).or_default().left += u32::from(!self.facts.looks_up);
            self.nature.note(|| format!("{} leaves", short(write.id)));
            let (tell, told) = oneshot::channel();
            tokio::spawn(self.clone().travel(write.id, wheel, act, tell));
            told.await.unwrap_or_else(|_| Sent::NoAnswer("reset".into()))
        })
    }

    fn look_up<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(async move { if self.look().await { Ok(self.known(write)) } else { Err(Unreadable("dark".into())) } })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            let (wheel, act) = Act::of(write);
            let (present, observed) = self.seen(write, wheel, act);
            let verdict = match self.look().await {
                false => Verdict::Unreadable,
                true if present => Verdict::Present,
                true => Verdict::Absent,
            };
            Reading { verdict, expected: format!("{act:?}").into(), observed: observed.into() }
        })
    }
}
