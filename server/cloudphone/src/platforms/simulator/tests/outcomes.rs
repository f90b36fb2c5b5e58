//! The ends of writes on each part of the cast: the simulator, the probes and the state machine of
//! tasks together, on a manual clock.

use super::*;
use crate::phones::contract::CATALOGUE;
use crate::phones::views::Views;
use crate::phones::writes::Writes;
use toolwarrant::tasks::{Executor, Leave, Write};
use toolwarrant_core::catalogue;
use toolwarrant_tasks::machine::{Effect, Entry, Event, step};
use toolwarrant_tasks::task::{Status, Task};

/// Every write, in the order of the columns in the table of the cast.
const WRITES: [&str; 5] = ["set_proxy", "clear_proxy", "boot", "shutdown", "restart"];

/// The end of a write, and what the engine did to reach it.
#[derive(Debug)]
struct End {
    status: Status,
    sends: u32,
    entries: Vec<Entry>,
    deeds: Vec<Deed>,
    phone: Arc<DeviceReading>,
}

impl End {
    fn has(&self, entry: Entry) -> bool {
        self.entries.contains(&entry)
    }
}

/// The moments, while a write is carried out, at which the process ends and another takes over.
#[derive(Clone, Copy)]
enum Kill {
    /// Before every effect: only the simulator has something to remember.
    Between,
    /// Once, during the n-th effect, whose result is lost.
    During(u32),
}

/// Returns the contract's policy for a write.
fn policy(what: &str) -> &'static catalogue::PolicyDef {
    let cases = |tool: &str| CATALOGUE.tool(tool).unwrap().task.as_ref().unwrap().cases;
    let found = if what.ends_with("proxy") { cases(what) } else { cases("set_power") };
    &found.iter().find(|(case, _)| ["", what].contains(case)).unwrap().1
}

/// Returns the result of `work`; the clock advances while it waits.
async fn finish<T>(clock: &Clock, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::task::yield_now() => clock.advance(Duration::from_millis(100)),
        }
    }
}

/// Starts `work` and drops it.
async fn lose<T>(work: impl Future<Output = T>) {
    tokio::select! { biased; _ = work => {}, () = std::future::ready(()) => {} }
}

/// Carries out a write to its end, as the engine does.
async fn carry_out(index: u32, what: &str, facts: Facts, kill: Kill) -> End {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated.jsonl");
    let clock = Clock::manual(NOW);
    let open = || Sim::new(3, 23, clock.clone(), &[9; 32]).with_facts(facts).with_journal(&path).unwrap();
    let command = command(index, what);
    let arguments = toolwarrant::runtime::tasks::WriteCommand::arguments(&command).unwrap();
    let mut write = Write {
        id: request(1),
        tool: toolwarrant::runtime::tasks::WriteCommand::tool(&command).to_owned(),
        target: device_id(index).as_str().to_owned(),
        arguments,
        probe: policy(what).probe.map(str::to_owned),
        baseline: None,
        operation: None,
        sent_by: None,
    };
    let (mut task, mut event) = (Task::new(policy(what).into(), NOW), Event::Due);
    let (mut entries, mut sends, mut effects) = (Vec::new(), 0, 0);
    let mut sim = Arc::new(open());
    loop {
        let next = step(task, event, clock.now(), &|| facts);
        task = next.task;
        entries.extend(next.entries);
        if let Some(status) = task.status() {
            let phone = sim.phone(index, clock.now());
            let phone = Arc::new(sim.snapshot(&PhoneAt { readable: true, ..phone }));
            return End { status, sends, entries, deeds: sim.deeds(request(1)), phone };
        }
        write.baseline.clone_from(&task.baseline);
        write.operation.clone_from(&task.operation);
        write.sent_by = task.send_not_after;
        let writes = writes_on(sim.clone());
        effects += u32::from(next.effect.is_some());
        sends += u32::from(matches!(next.effect, Some(Effect::Send(_))));
        event = match (next.effect, kill) {
            (Some(effect), Kill::During(last)) if effects == last => {
                lose(perform(&writes, &write, effect, &clock)).await;
                sim = Arc::new(open());
                Event::Found
            }
            (Some(effect), Kill::During(_)) => finish(&clock, perform(&writes, &write, effect, &clock)).await,
            (Some(effect), Kill::Between) => {
                sim = Arc::new(open());
                finish(&clock, perform(&writes_on(sim.clone()), &write, effect, &clock)).await
            }
            (None, _) => {
                clock.advance(task.wake_at.unwrap().since(clock.now()));
                Event::Due
            }
        };
    }
}

async fn perform(writes: &Writes, write: &Write, effect: Effect, clock: &Clock) -> Event {
    let begun = clock.now();
    match effect {
        Effect::Baseline => Event::Baseline(writes.baseline(write).await.ok()),
        Effect::Send(not_after) => Event::Sent(writes.send(write, Leave::until(not_after, clock)).await),
        Effect::LookUp => Event::LookedUp(writes.look_up(write).await.ok()),
        Effect::Probe => Event::Probed(writes.probe(write).await, begun),
    }
}

/// Returns the reason for which the tool refuses the write at once if the phone does not offer it.
fn refusal(phone: &DeviceReading, what: &str) -> Option<&'static str> {
    let power = |action| (phone.offers(DeviceCapability::Power), phone.power_actions.contains(&action));
    match match what {
        "set_proxy" | "clear_proxy" => (phone.offers(DeviceCapability::Proxy), true),
        "boot" => power(PowerAction::Boot),
        "shutdown" => power(PowerAction::Shutdown),
        _ => power(PowerAction::Restart),
    } {
        (false, _) => Some("not_supported"),
        (true, false) => Some("not_offered"),
        (true, true) => None,
    }
}

#[tokio::test]
async fn writes_end_as_the_table_of_the_cast_says() {
    let fleet = sim(3, 23).list_page(None, 23).unwrap();
    let mut rows = Vec::new();
    for ((index, part), phone) in (1..).zip(CAST).zip(&fleet) {
        let mut row = format!("//! | {index} | {part:?} |");
        for what in WRITES {
            let end = match refusal(&DeviceReading { state: None, ..DeviceReading::clone(phone) }, what) {
                Some(code) => code,
                None => carry_out(index, what, Facts::default(), Kill::Between).await.status.as_str(),
            };
            row.push_str(&format!(" {end} |"));
        }
        rows.push(row);
    }
    let table = rows.join("\n");
    assert!(include_str!("../cast.rs").contains(&table), "the table is to be\n{table}");
}

#[tokio::test]
async fn difficult_phones_show_which_writes_are_resent_charged_and_refunded() {
    for (part, what, sends, charged, reversed, refunded) in [
        (Part::Plain, "set_proxy", 1, true, false, false),
        (Part::Unreadable, "set_proxy", 1, true, false, false),
        (Part::Swallowing, "set_proxy", 1, true, false, true),
        (Part::Leaking, "set_proxy", 1, true, false, true),
        (Part::Rotating, "set_proxy", 1, true, false, false),
        (Part::Failing, "shutdown", 1, true, false, false),
        (Part::LosingCommands, "set_proxy", 2, true, false, false),
        (Part::LosingCommands, "restart", 1, true, false, false),
        (Part::LosingAnswers, "restart", 1, true, false, false),
        (Part::Refusing, "set_proxy", 3, true, true, false),
    ] {
        let index = (1..).zip(CAST).find(|(_, played)| *played == part).unwrap().0;
        let end = carry_out(index, what, Facts::default(), Kill::Between).await;
        let money = [Entry::Charge, Entry::ReverseCharge, Entry::Refund].map(|entry| end.has(entry));
        assert_eq!((end.sends, money), (sends, [charged, reversed, refunded]), "{part:?} {what}: {end:?}");
    }
}

#[tokio::test]
async fn no_end_of_the_process_refunds_an_effect_or_repeats_a_restart() {
    let fleet = sim(3, 23).list_page(None, 23).unwrap();
    // The parts between these carry out commands as they should.
    let honest = Part::WithoutProxy as u8..Part::Proxied as u8;
    for (dedupes, looks_up) in [(false, false), (false, true), (true, false)] {
        let facts = Facts { dedupes, looks_up, ..Facts::default() };
        for ((index, part), phone) in
            (1..).zip(CAST).zip(&fleet).filter(|((_, part), _)| !honest.contains(&(*part as u8)))
        {
            for what in WRITES.into_iter().filter(|what| refusal(phone, what).is_none()) {
                for effect in 1..=4 {
                    let end = carry_out(index, what, facts, Kill::During(effect)).await;
                    let story = || format!("{part:?} {what} {facts:?}, ended during effect {effect}: {end:?}");
                    let there = match what {
                        "set_proxy" => end.phone.proxy.as_ref().is_some_and(|p| p.host.as_str() == "proxy.example.com"),
                        "clear_proxy" => end.phone.proxy.is_none(),
                        "boot" => end.phone.state() == DeviceState::Running,
                        "shutdown" => end.phone.state() == DeviceState::Stopped,
                        _ => !end.deeds.is_empty(),
                    };
                    let refunded = end.has(Entry::Refund);
                    assert_eq!(refunded, end.status == Status::FailedSilent, "{}", story());
                    assert!(!(refunded && there) || part == Part::Leaking, "{}", story());
                    assert!(end.status != Status::Success || there, "{}", story());
                    assert!(!end.has(Entry::ReverseCharge) || end.deeds.is_empty(), "{}", story());
                    assert!(what != "restart" || end.deeds.len() <= 1, "{}", story());
                }
            }
        }
    }
}

fn writes_on(control: Arc<Sim>) -> Writes {
    Writes::new(control, Arc::new(Views::new(Clock::manual(Timestamp(0)))))
}
