//! Restarts of phones that stand still, are cut off or die at a random moment. They come back 1 to
//! 20 s later, and one in eight of them after the end of the task. A command that asks for no word
//! is the control.

use super::{RackSite, options, restart, show};
use crate::drills::crash::audit::AuditBooks;
use crate::drills::crash::load::{TaskView, Wish};
use crate::harness::program::Program;
use kit::{PhoneFault, RackPhone};
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use toolwarrant_base::random::SplitMix;

const PHONES: u8 = 24;
const CONTROLS: u8 = 4;

const TRIALS: usize = 4;

const FAULTS: [PhoneFault; 3] = [PhoneFault::Freeze, PhoneFault::Cut, PhoneFault::Kill];

/// A phone waits 5 s for a word, so a late effect shows after this time.
const LATE: Duration = Duration::from_secs(7);

struct Torment {
    program: Program,
    left: AtomicU64,
    told: Mutex<Vec<TaskView>>,
    /// The fault had begun before the call.
    silent: Mutex<HashSet<String>>,
    counts: Mutex<BTreeMap<String, u64>>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and Debian: cargo xtask drill rack"]
async fn no_fault_of_a_phone_makes_an_effect_late_or_a_refund_false() {
    let options = options();
    let site = RackSite::start(&options, PHONES, 35).await;
    let torment = Arc::new(Torment {
        program: site.serve().await,
        left: AtomicU64::new(options.restarts.unwrap_or(500)),
        told: Mutex::default(),
        silent: Mutex::default(),
        counts: Mutex::default(),
    });
    let mut workers = JoinSet::new();
    for (at, (id, phone)) in site.phones.iter().enumerate() {
        let random = SplitMix(options.seed ^ (at as u64 + 1) << 32);
        workers.spawn(Arc::clone(&torment).run(id.clone(), Arc::clone(phone), random));
    }
    let (late, _) = tokio::join!(count_late_effects(&site), workers.join_all());
    let Torment { mut program, told, silent, counts, .. } = Arc::into_inner(torment).expect("the workers have ended");
    program.stop().await;
    let (told, silent) = (told.into_inner().expect("no panic"), silent.into_inner().expect("no panic"));
    let (books, figures) = AuditBooks::compare_on_rack(&program.data, &told, &site.read_journals(), &silent);
    show(counts.into_inner().expect("no panic"));
    show([("tasks that ended while their phone could hear nothing", silent.len() as u64)]);
    show(figures);
    show([("late effects of the control, of 16 commands that were given up", late)]);
    assert!(books.violations.is_empty(), "{:#?}", books.violations);
    assert!(late > 0, "the faults are too weak to show anything");
}

impl Torment {
    async fn run(self: Arc<Self>, id: String, phone: Arc<RackPhone>, mut random: SplitMix) {
        while self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            wait_until_it_runs(&self.program, &id).await;
            let (fault, is_first) = (FAULTS[random.below(3) as usize], random.below(3) == 0);
            phone.swallow(random.below(8) == 0).expect("a switch");
            let pause = Duration::from_millis(random.below(400));
            // The engine tries again until the deadline, so few tasks would fail otherwise.
            let lasts = random.below(8) == 0;
            let outage = Duration::from_millis(1_000 + random.below(19_000));
            if is_first {
                phone.begin(fault).expect("a fault");
            }
            let wish = Wish::with_key("set_power", id.clone(), None, restart(&id));
            let failing = async {
                if !is_first {
                    sleep(pause).await;
                    phone.begin(fault).expect("a fault");
                }
                sleep(outage).await;
            };
            let (answer, ()) = tokio::join!(self.program.call(wish.tool, wish.arguments.clone()), failing);
            let task_id = answer.as_ref().map(|task| task["task_id"].clone()).unwrap_or_default();
            if let (true, Some(id)) = (lasts, task_id.as_str()) {
                self.program.task(&task_id).await;
                self.silent.lock().expect("no panic").extend(is_first.then(|| id.to_owned()));
            }
            phone.end(fault).expect("its end");
            if task_id.is_string() {
                self.program.task(&task_id).await;
            }
            let what = format!("{fault:?} {} the call", if is_first { "before" } else { "after" });
            *self.counts.lock().expect("no panic").entry(what).or_default() += 1;
            self.told.lock().expect("no panic").push((wish, answer));
            sleep(LATE).await;
        }
    }
}

async fn wait_until_it_runs(program: &Program, id: &str) {
    let begun = Instant::now();
    while program.call("get_device", json!({"device_id": id})).await.expect("it is known")["state"] != "running" {
        assert!(begun.elapsed() < Duration::from_secs(90), "{id} does not run again");
        sleep(Duration::from_millis(300)).await;
    }
}

/// Gives each command up after 2 s. Returns the number of effects.
async fn count_late_effects(site: &RackSite) -> u64 {
    let (mut phones, mut late) = (Vec::new(), 0);
    for number in 0..CONTROLS {
        phones.push(site.rack.start_phone(PHONES + 1 + number).await.expect("a phone"));
    }
    let server = site.rack.start_server("trixie", 5_035, &phones.iter().collect::<Vec<_>>()).await.expect("a server");
    for trial in 0..TRIALS {
        sleep(Duration::from_secs(8)).await;
        let before: usize = phones.iter().map(|phone| phone.count_commands().expect("a journal")).sum();
        let fault = [PhoneFault::Freeze, PhoneFault::Cut][trial % 2];
        for phone in &phones {
            phone.begin(fault).expect("a fault");
            let _ = timeout(Duration::from_secs(2), server.run(phone, "setprop sys.powerctl reboot,")).await;
        }
        for phone in &phones {
            phone.end(fault).expect("its end");
        }
        sleep(LATE).await;
        late += phones.iter().map(|phone| phone.count_commands().expect("a journal")).sum::<usize>() - before;
    }
    late as u64
}
