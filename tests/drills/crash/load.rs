//! Clients that write without pause while the program ends again and again, and a record of the
//! answers.

use crate::harness::Key;
use crate::harness::program::{Program, key_of, operate, start};
use crate::harness::signed::{Signed, SignedAnswer};
use crate::harness::writes::phases;
use kit::{Process, outcome, rpc};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarrant_base::random::SplitMix;

const CLIENTS: usize = 64;

const PAUSE: Duration = Duration::from_millis(50);

/// Limits no other measurement.
const HANGS: Duration = Duration::from_secs(60);

/// Seconds since the last start; they limit no other measurement.
const ENDS: u64 = 150;

#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) tool: &'static str,
    pub(crate) device: String,
    pub(crate) key: Option<String>,
    pub(crate) arguments: Value,
}

pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) flags: Vec<String>,
    pub(crate) life: Range<u64>,
    pub(crate) patience: Duration,
    /// A client reads each task in an answer, and its device, wherever it asks next.
    pub(crate) reads: bool,
    pub(crate) wish: Box<dyn Fn(u64) -> Wish + Send + Sync>,
}

impl Plan {
    fn simulate(seed: u64) -> Self {
        let flags = ["--sim-devices", "1000000"].map(str::to_owned).to_vec();
        let wish = Box::new(move |number| Wish::new(seed, number));
        Self { seed, flags, life: 50..350, patience: Duration::MAX, reads: false, wish }
    }
}

impl Wish {
    /// Gives most wishes a device of their own. One in eight repeats the wish before it, which runs
    /// at the same time; another one in eight asks for something different on the same device.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let (device, repeated) = Self::share(number);
        let device = format!("phone-{:07}", device + 1);
        let mut random = SplitMix(seed ^ repeated << 32);
        let (tool, mut arguments) = match random.below(5) {
            0 => ("clear_proxy", json!({})),
            1 => ("set_power", json!({"action": "restart"})),
            2 => ("set_power", json!({"action": "shutdown"})),
            _ => (
                "set_proxy",
                json!({"scheme": "http", "host": "proxy.example.com", "port": 8080, "username": "user",
                       "password": super::PASSWORD}),
            ),
        };
        let key = (random.below(4) > 0).then(|| format!("wish-{repeated}"));
        arguments["device_id"] = json!(device);
        Self::with_key(tool, device, key, arguments)
    }

    /// Returns the device of a wish, and its identity: each is the number of the first wish that
    /// shares it.
    pub(crate) fn share(number: u64) -> (u64, u64) {
        match number % 8 {
            3 => (number - 1, number),
            7 => (number - 1, number - 1),
            _ => (number, number),
        }
    }

    pub(crate) fn with_key(tool: &'static str, device: String, key: Option<String>, mut arguments: Value) -> Self {
        if let Some(key) = &key {
            arguments["idempotency_key"] = json!(key);
        }
        Self { tool, device, key, arguments }
    }

    fn sign(&self, key: &Key) -> Signed {
        let (method, leaf) = match self.tool {
            "clear_proxy" => ("DELETE", "proxy"),
            "set_power" => ("POST", "power"),
            _ => ("PUT", "proxy"),
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
        let request = Signed::at(now, key, method, &format!("/v1/devices/{}/{leaf}", self.device));
        let mut arguments = self.arguments.clone();
        let members = arguments.as_object_mut().expect("an object");
        members.retain(|name, _| name != "device_id" && name != "idempotency_key");
        let request = request.with_key(self.key.as_deref().unwrap_or_default());
        if method == "DELETE" { request } else { request.body(arguments) }
    }
}

pub(crate) type TaskView = (Wish, Result<Value, Value>);

struct Shared {
    plan: Plan,
    key: Key,
    addresses: watch::Sender<Vec<SocketAddr>>,
    next: AtomicU64,
    acknowledged: AtomicU64,
    unanswered: AtomicU64,
    /// The server accepted these signed requests a second time.
    taken_twice: AtomicU64,
    /// A later read did not find these tasks.
    unknown: AtomicU64,
    /// Closed when there are to be no more wishes.
    more: Semaphore,
    told: Mutex<Vec<TaskView>>,
}

impl Shared {
    async fn client(self: Arc<Self>) {
        while let Ok(permit) = self.more.acquire().await {
            permit.forget();
            let number = self.next.fetch_add(1, Relaxed);
            let wish = (self.plan.wish)(number);
            let (signs, mut signed, mut signatures) = (number % 32 >= 16, None::<Signed>, 0);
            let mut turn = number;
            let answer = loop {
                let answer = if signs {
                    // A request without an answer is sent again unchanged. A 401 says that the
                    // server had accepted it.
                    let again = signed.is_some();
                    let request = signed.get_or_insert_with(|| {
                        signatures += 1;
                        wish.sign(&self.key)
                    });
                    match self.send(request, &mut turn).await {
                        Some(answer) if again && answer.status == 401 => {
                            signed = None;
                            continue;
                        }
                        Some(answer) => {
                            // A hit of a task that only this request can have made: so the server
                            // accepted the request twice.
                            let alone = signatures == 1 && matches!(number % 8, 0 | 1 | 4 | 5);
                            let twice = again && alone && answer.body["idempotent_hit"] == true;
                            self.taken_twice.fetch_add(u64::from(twice), Relaxed);
                            Some(if answer.status < 300 { Ok(answer.body) } else { Err(answer.body) })
                        }
                        None => None,
                    }
                } else {
                    self.call(wish.tool, &wish.arguments, &mut turn).await
                };
                match answer {
                    Some(answer) => break answer,
                    None => self.unanswered.fetch_add(1, Relaxed),
                };
                sleep(PAUSE).await;
            };
            // No later life of the program may accept an answered request again.
            while let Some(request) = &signed {
                if let Some(again) = self.send(request, &mut turn).await {
                    self.taken_twice.fetch_add(u64::from(again.status != 401), Relaxed);
                    signed = None;
                }
            }
            if self.plan.reads {
                self.read_back(&wish, &answer, &mut turn).await;
            }
            if answer.as_ref().is_ok_and(|task| task["idempotent_hit"] == false) {
                self.acknowledged.fetch_add(1, Relaxed);
            }
            self.told.lock().expect("no panic").push((wish, answer));
        }
    }

    async fn address(&self, turn: &mut u64) -> SocketAddr {
        let mut addresses = self.addresses.subscribe();
        let listening = addresses.wait_for(|listening| !listening.is_empty()).await.expect("the sender is ours");
        *turn += 1;
        listening[*turn as usize % listening.len()]
    }

    async fn send(&self, request: &Signed, turn: &mut u64) -> Option<SignedAnswer> {
        let answer = timeout(self.plan.patience, request.try_send(self.address(turn).await)).await.ok()?.ok()?;
        (!is_to_repeat(&answer.body)).then_some(answer)
    }

    /// Returns `None` if there was no answer, or one that asks to repeat the call.
    async fn call(&self, tool: &str, arguments: &Value, turn: &mut u64) -> Option<Result<Value, Value>> {
        call_at(self.address(turn).await, &self.key, (tool, arguments), self.plan.patience).await
    }

    async fn read_back(&self, wish: &Wish, answer: &Result<Value, Value>, turn: &mut u64) {
        let (Ok(told) | Err(told)) = answer;
        let poll = json!({"task_id": told["task_id"], "wait_seconds": 2});
        while told["task_id"].is_string() {
            if let Some(task) = self.call("get_task", &poll, turn).await {
                self.unknown.fetch_add(u64::from(task.is_err_and(|failure| failure["code"] == "not_found")), Relaxed);
                break;
            }
            sleep(PAUSE).await;
        }
        self.call("get_device", &json!({"device_id": wish.device}), turn).await;
    }
}

pub(super) async fn call_at(
    address: SocketAddr,
    key: &Key,
    (tool, arguments): (&str, &Value),
    patience: Duration,
) -> Option<Result<Value, Value>> {
    let call = json!({"name": tool, "arguments": arguments});
    let answer = timeout(patience, rpc(address, key, "tools/call", &call)).await.ok()?.ok()?;
    let answer = match answer.get("error") {
        Some(error) => Err(error["data"].clone()),
        None => outcome(&answer).expect("an answer of a tool"),
    };
    (!answer.as_ref().is_err_and(is_to_repeat)).then_some(answer)
}

fn is_to_repeat(failure: &Value) -> bool {
    failure["code"] == "overloaded" || failure["code"] == "handed_over"
}

pub(crate) struct Load {
    home: Arc<TempDir>,
    pub(crate) data: PathBuf,
    shared: Arc<Shared>,
    clients: JoinSet<()>,
    lives: SplitMix,
    pub(crate) starts: Vec<Duration>,
    /// Answers whose task the server does not show as ended, when all is over.
    pub(crate) unended: u64,
}

impl Load {
    pub(super) async fn begin(seed: u64) -> Self {
        let load = Self::of(Plan::simulate(seed)).await;
        load.shared.more.add_permits(Semaphore::MAX_PERMITS);
        load
    }

    pub(crate) async fn of(plan: Plan) -> Self {
        let home = Arc::new(TempDir::new().expect("a temporary folder"));
        let flags: Vec<&str> = plan.flags.iter().map(String::as_str).collect();
        let mut program = Program::start_at(home.clone(), &flags).await;
        let data = program.data.clone();
        operate(&data, "app create load --permission device --requests-per-minute 100000000").await;
        operate(&data, "device assign load --all").await;
        let key = key_of(&data, "load").await;
        program.stop().await;
        Self::with_key(home, data, key, plan)
    }

    pub(super) fn with_key(home: Arc<TempDir>, data: PathBuf, key: Key, plan: Plan) -> Self {
        let lives = SplitMix(plan.seed);
        let shared = Arc::new(Shared {
            plan,
            key,
            addresses: watch::Sender::default(),
            next: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            taken_twice: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            more: Semaphore::new(0),
            told: Mutex::default(),
        });
        let clients = (0..CLIENTS).map(|_| Arc::clone(&shared).client()).collect();
        Self { home, data, shared, clients, lives, starts: Vec::new(), unended: 0 }
    }

    pub(super) fn count_taken_twice(&self) -> u64 {
        self.shared.taken_twice.load(Relaxed)
    }

    pub(super) fn count_unknown(&self) -> u64 {
        self.shared.unknown.load(Relaxed)
    }

    pub(crate) fn count_acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Relaxed)
    }

    pub(super) fn views(&self) -> Vec<TaskView> {
        self.shared.told.lock().expect("no panic").clone()
    }

    pub(super) fn first_task(&self) -> Value {
        let told = self.shared.told.lock().expect("no panic");
        told.iter().find_map(|(_, answer)| Some(answer.as_ref().ok()?["task_id"].clone())).expect("a task")
    }

    pub(crate) fn allow_every(&mut self, time: Duration) {
        let shared = Arc::clone(&self.shared);
        self.clients.spawn(async move {
            while !shared.more.is_closed() {
                shared.more.add_permits(1);
                sleep(time).await;
            }
        });
    }

    pub(super) fn satisfy(&self) {
        self.shared.more.close();
    }

    pub(super) fn count_unanswered(&self) -> u64 {
        self.shared.unanswered.load(Relaxed)
    }

    pub(super) fn announcer(&self) -> impl Fn(Option<SocketAddr>, Option<SocketAddr>) + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move |new, old| {
            shared.addresses.send_modify(|listening| {
                listening.retain(|known| Some(*known) != old);
                listening.extend(new);
            });
        }
    }

    pub(super) fn addresses(&self) -> watch::Receiver<Vec<SocketAddr>> {
        self.shared.addresses.subscribe()
    }

    fn withdraw_all(&self) {
        self.shared.addresses.send_modify(Vec::clear);
    }

    fn spawn(&self) -> Process {
        let flags: Vec<&str> = self.shared.plan.flags.iter().map(String::as_str).collect();
        start(&self.home).flags(&flags).spawn().expect("it starts")
    }

    fn life(&mut self) -> Duration {
        let Range { start, end } = self.shared.plan.life.clone();
        Duration::from_millis(start + self.lives.below(end - start))
    }

    async fn ready(&mut self, program: &mut Process, begun: Instant) -> SocketAddr {
        let greeting = program.greeting().await.unwrap_or_else(|why| panic!("{why:#}: {}", self.log()));
        let address = greeting["listens"].as_str().and_then(|text| text.parse().ok()).expect("an address");
        self.starts.push(begun.elapsed());
        self.announcer()(Some(address), None);
        address
    }

    /// Kills the program a moment after its start; one time in four that may be before it has
    /// started.
    pub(crate) async fn kill(&mut self) {
        let (begun, life, early) = (Instant::now(), self.life(), self.lives.below(4) == 0);
        let mut program = self.spawn();
        let living = async {
            self.ready(&mut program, begun).await;
            sleep(life).await;
        };
        if early {
            let _ = timeout(life, living).await;
        } else {
            living.await;
        }
        self.withdraw_all();
        program.kill().await.expect("it ran");
    }

    /// Kills the program once it has acknowledged that many writes more.
    pub(crate) async fn kill_after_writes(&mut self, count: u64) {
        let until = self.count_acknowledged() + count;
        let (mut program, begun) = (self.spawn(), Instant::now());
        self.ready(&mut program, begun).await;
        let acknowledged = kit::wait_for(async || match self.count_acknowledged() {
            seen if seen < until => Err(format!("{seen} of {until} writes")),
            _ => Ok(()),
        });
        acknowledged.await.expect("writes");
        self.withdraw_all();
        program.kill().await.expect("it ran");
    }

    pub(super) async fn kill_after<T>(&mut self, meanwhile: impl AsyncFnOnce(&Path, Vec<Value>) -> T) -> T {
        let (mut program, begun) = (self.spawn(), Instant::now());
        self.ready(&mut program, begun).await;
        sleep(self.life()).await;
        let told = self.views().into_iter().filter_map(|(_, answer)| answer.ok()).collect();
        let done = meanwhile(&self.data, told).await;
        self.withdraw_all();
        program.kill().await.expect("it ran");
        done
    }

    pub(super) async fn stop(&mut self) -> Duration {
        let (mut program, begun) = (self.spawn(), Instant::now());
        self.ready(&mut program, begun).await;
        sleep(self.life()).await;
        self.withdraw_all();
        self.stop_program(&mut program).await
    }

    async fn stop_program(&self, program: &mut Process) -> Duration {
        let begun = Instant::now();
        let (status, _) = timeout(HANGS, program.stop()).await.expect("it ends by itself").expect("it ran");
        assert!(status.success(), "{status}: {}", self.log());
        begun.elapsed()
    }

    /// Waits until every task has ended, then reads each again. Returns [the answers](Self::views).
    pub(crate) async fn settle(mut self) -> (Vec<TaskView>, Self) {
        self.satisfy();
        let (mut program, begun) = (self.spawn(), Instant::now());
        self.ready(&mut program, begun).await;
        let data = self.data.clone();
        let told = self.finish(async || phases(&data).is_empty()).await;
        self.stop_program(&mut program).await;
        (told, self)
    }

    pub(super) async fn finish(&mut self, have_ended: impl AsyncFn() -> bool) -> Vec<TaskView> {
        self.satisfy();
        while let Some(client) = self.clients.join_next().await {
            client.expect("no client panics");
        }
        let told = self.views();
        for _ in 0..ENDS {
            if have_ended().await {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        let mut turn = 0;
        for (_, answer) in &told {
            if let Ok(task) = answer {
                let poll = json!({"task_id": task["task_id"], "wait_seconds": 0});
                let seen = self.shared.call("get_task", &poll, &mut turn).await;
                let ended = seen.expect("an answer").is_ok_and(|seen| seen["terminal"] == true);
                self.unended += u64::from(!ended);
            }
        }
        told
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.home.path().join("log")).expect("a log");
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}
