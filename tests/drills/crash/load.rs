//! Clients that write without pause while the program ends again and again, and a record of the
//! answers.

use crate::harness::Key;
use crate::harness::program::{Program, key_of, operate, start};
use crate::harness::signed::{Signed, SignedAnswer};
use crate::harness::writes::phases;
use driver::{Process, outcome, rpc};
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

/// The number of clients, each with a connection of its own.
pub(super) const CLIENTS: usize = 64;

/// The pause before a client asks again.
const PAUSE: Duration = Duration::from_millis(50);

/// The time after which the program counts as hanging; it limits no other measurement.
const HANGS: Duration = Duration::from_secs(60);

/// The seconds since the last start after which a task counts as never ending; they limit no other
/// measurement.
const ENDS: u64 = 150;

/// A write that a client wants. The client repeats the request until it gets an answer.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) tool: &'static str,
    pub(crate) device: String,
    pub(crate) key: Option<String>,
    pub(crate) arguments: Value,
}

/// The server's flags, and the wishes of the clients.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// The flags of the program.
    pub(crate) flags: Vec<String>,
    /// The range for the duration of one life of the program, in milliseconds.
    pub(crate) life: Range<u64>,
    /// Time for which a client waits for an answer before it asks elsewhere.
    pub(crate) patience: Duration,
    /// True if a client reads each task that it was told of, and its device, wherever it asks next.
    pub(crate) reads: bool,
    /// Returns the wish with a number.
    pub(crate) wish: Box<dyn Fn(u64) -> Wish + Send + Sync>,
}

impl Plan {
    /// Makes a plan with simulated phones only.
    fn simulate(seed: u64) -> Self {
        let flags = ["--sim-devices", "1000000"].map(str::to_owned).to_vec();
        let wish = Box::new(move |number| Wish::new(seed, number));
        Self { seed, flags, life: 50..350, patience: Duration::MAX, reads: false, wish }
    }
}

impl Wish {
    /// Makes the wish with this number. Most wishes are on a device of their own. One in eight
    /// repeats the wish before it, which runs at the same time; another one in eight asks for
    /// something different on the same device.
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

    /// Makes a wish, with or without an idempotency key.
    pub(crate) fn with_key(tool: &'static str, device: String, key: Option<String>, mut arguments: Value) -> Self {
        if let Some(key) = &key {
            arguments["idempotency_key"] = json!(key);
        }
        Self { tool, device, key, arguments }
    }

    /// Signs the same wish for `/v1`, with the present time.
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

/// A wish and the final answer to it.
pub(crate) type TaskView = (Wish, Result<Value, Value>);

/// State that all clients share.
struct Shared {
    plan: Plan,
    key: Key,
    /// The addresses at which programs listen; empty while all are down.
    addresses: watch::Sender<Vec<SocketAddr>>,
    /// The number of the next wish.
    next: AtomicU64,
    /// Writes that were answered with a new task.
    acknowledged: AtomicU64,
    /// The number of lost answers.
    unanswered: AtomicU64,
    /// Signed requests that the server accepted a second time.
    taken_twice: AtomicU64,
    /// Tasks that a client was told of, and that a later read did not find.
    unknown: AtomicU64,
    /// The number of wishes that clients may still make; closed when there are to be no more.
    more: Semaphore,
    told: Mutex<Vec<TaskView>>,
}

impl Shared {
    /// Makes wishes one after the other, until there are to be no more.
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

    /// Returns the address to ask next, once a program listens.
    async fn address(&self, turn: &mut u64) -> SocketAddr {
        let mut addresses = self.addresses.subscribe();
        let listening = addresses.wait_for(|listening| !listening.is_empty()).await.expect("the sender is ours");
        *turn += 1;
        listening[*turn as usize % listening.len()]
    }

    /// Sends a signed request. Returns `None` if there was no answer, or one that asks to repeat
    /// the request.
    async fn send(&self, request: &Signed, turn: &mut u64) -> Option<SignedAnswer> {
        let answer = timeout(self.plan.patience, request.try_send(self.address(turn).await)).await.ok()?.ok()?;
        (answer.body["code"] != "overloaded").then_some(answer)
    }

    /// Calls a tool. Returns `None` if there was no answer, or one that asks to repeat the call.
    async fn call(&self, tool: &str, arguments: &Value, turn: &mut u64) -> Option<Result<Value, Value>> {
        call_at(self.address(turn).await, &self.key, (tool, arguments), self.plan.patience).await
    }

    /// Reads the task that an answer names, and the device.
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

/// Calls a tool. Returns `None` if there was no answer in this time, or one that asks to repeat the
/// call.
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
    let is_overloaded = answer.as_ref().is_err_and(|failure| failure["code"] == "overloaded");
    (!is_overloaded).then_some(answer)
}

/// A program under load, with its clients.
pub(crate) struct Load {
    home: Arc<TempDir>,
    pub(crate) data: PathBuf,
    shared: Arc<Shared>,
    clients: JoinSet<()>,
    lives: SplitMix,
    /// The duration of each start that completed.
    pub(crate) starts: Vec<Duration>,
    /// Answers whose task the server does not show as ended, when all is over.
    pub(crate) unended: u64,
}

impl Load {
    /// Makes an application with a budget that does not limit it, and starts clients that wish
    /// without pause.
    pub(super) async fn begin(seed: u64) -> Self {
        let load = Self::of(Plan::simulate(seed)).await;
        load.shared.more.add_permits(Semaphore::MAX_PERMITS);
        load
    }

    /// Prepares the load of a plan; the clients do not wish yet.
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

    /// Prepares the load of a plan for a store that has the key of an application.
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

    /// Returns the number of signed requests that the server accepted a second time.
    pub(super) fn count_taken_twice(&self) -> u64 {
        self.shared.taken_twice.load(Relaxed)
    }

    /// Returns the number of tasks that a client was told of, and that a later read did not find.
    pub(super) fn count_unknown(&self) -> u64 {
        self.shared.unknown.load(Relaxed)
    }

    pub(crate) fn count_acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Relaxed)
    }

    /// Returns the answers so far, in no particular order.
    pub(super) fn views(&self) -> Vec<TaskView> {
        self.shared.told.lock().expect("no panic").clone()
    }

    /// Returns the first task that a client was told of.
    pub(super) fn first_task(&self) -> Value {
        let told = self.shared.told.lock().expect("no panic");
        told.iter().find_map(|(_, answer)| Some(answer.as_ref().ok()?["task_id"].clone())).expect("a task")
    }

    /// Lets clients make one wish per `time`, until there are to be no more.
    pub(crate) fn allow_every(&mut self, time: Duration) {
        let shared = Arc::clone(&self.shared);
        self.clients.spawn(async move {
            while !shared.more.is_closed() {
                shared.more.add_permits(1);
                sleep(time).await;
            }
        });
    }

    /// Lets clients make that many wishes at once.
    pub(super) fn allow(&self, wishes: usize) {
        self.shared.more.add_permits(wishes);
    }

    /// Stops new wishes; clients go on asking for those without an answer.
    pub(super) fn satisfy(&self) {
        self.shared.more.close();
    }

    pub(super) fn count_unanswered(&self) -> u64 {
        self.shared.unanswered.load(Relaxed)
    }

    /// Returns a function that announces the address of a program to the clients, and withdraws
    /// another one.
    pub(super) fn announcer(&self) -> impl Fn(Option<SocketAddr>, Option<SocketAddr>) + Send + 'static {
        let shared = Arc::clone(&self.shared);
        move |new, old| {
            shared.addresses.send_modify(|listening| {
                listening.retain(|known| Some(*known) != old);
                listening.extend(new);
            });
        }
    }

    /// Returns the addresses at which programs listen, the latest last.
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

    /// Starts the program and kills it a moment later, whatever it is doing by then. One time in
    /// four that may be before it has started.
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

    /// Starts the program, runs `meanwhile` with its data folder and the answers so far, and kills
    /// it.
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

    /// Starts the program, and asks it to stop a moment later. Returns the time that the stop took.
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

    /// Waits until every wish has its answer and every task has ended, then reads each task again.
    /// Returns [the answers](Self::told).
    pub(crate) async fn settle(mut self) -> (Vec<TaskView>, Self) {
        self.satisfy();
        let (mut program, begun) = (self.spawn(), Instant::now());
        self.ready(&mut program, begun).await;
        let data = self.data.clone();
        let told = self.finish(async || phases(&data).is_empty()).await;
        self.stop_program(&mut program).await;
        (told, self)
    }

    /// Does the same with programs that run.
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

    /// Returns the last lines of the program's log.
    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.home.path().join("log")).expect("a log");
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}
