//! The screens of phones behind an adb server, against the double. The adapter's clock moves only
//! where a test moves it.

use super::{Rack, rack};
use cloudphone::phones::contract::{Command, DeviceId, PowerAction, SetPowerArgs};
use cloudphone::phones::port::{CheckPort, Direction, ReadPort, ScreenError, ScreenInput, Still, StillSize, WritePort};
use cloudphone::platforms::adb::{Adb, AdbPrograms};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::tasks::{Leave, TaskId};
use toolwarrant::{Clock, Timestamp};

/// The double's record of a shell that has ended.
const END: &str = "the end of a shell";

struct Watched {
    rack: Arc<Rack>,
    adapter: Arc<Adb>,
    clock: Clock,
    phone: DeviceId,
}

impl Watched {
    async fn new() -> Arc<Self> {
        let (rack, clock) = (rack(1, false).await, Clock::manual(Timestamp(1)));
        let adapter = rack.adapter.get_or_init(|| rack.make(&clock, AdbPrograms::default())).clone();
        rack.wait_until_listed().await;
        Arc::new(Self { phone: rack.id(&rack.codes[0]), rack, adapter, clock })
    }

    async fn set(&self, switches: Value) {
        self.rack.platform.switch(Some(&self.rack.codes[0]), &switches).await;
    }

    async fn still(&self) -> Result<Still, ScreenError> {
        self.adapter.screen(&self.phone).expect("each phone has a screen").still(&self.phone).await
    }

    async fn input(&self, input: Value) -> Result<(), ScreenError> {
        let input: ScreenInput = serde_json::from_value(input).expect("an input");
        self.adapter.screen(&self.phone).expect("each phone has a screen").input(&self.phone, &input).await
    }

    /// Returns what `input` was given since the last call.
    async fn inputs(&self, seen: &mut usize) -> Vec<Value> {
        let done = self.rack.platform.journal("did", &self.rack.codes[0]).await.into_iter();
        let given: Vec<_> = done.filter(|line| line["operation"] == "input").skip(*seen).collect();
        *seen += given.len();
        given.iter().map(|line| line["arguments"].clone()).collect()
    }

    /// Counts the commands for the phone that contain `what`.
    async fn count_commands(&self, what: &str) -> usize {
        let lines = self.rack.platform.journal("adb", &self.rack.codes[0]).await;
        lines.iter().filter(|line| line["service"].as_str().is_some_and(|service| service.contains(what))).count()
    }

    /// A reason is for people, or for the log if the phone does not answer.
    fn check_reason(ended: Result<Still, ScreenError>, why: Result<&str, &str>) {
        let error = ended.expect_err("no picture");
        let (Ok(expected) | Err(expected)) = why;
        assert_eq!(error.reason().is_some(), why.is_ok(), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }

    async fn until_asked(&self, what: &str, count: usize) {
        let is_asked = kit::wait_for(async || match self.count_commands(what).await {
            fewer if fewer < count => Err(format!("{fewer} of {count} {what}")),
            _ => Ok(()),
        });
        is_asked.await.expect("the phone is asked");
    }

    async fn until_no_command_runs(&self) {
        let platform = &self.rack.platform;
        let rests = kit::wait_for(async || Ok::<_, String>(platform.get("rest").await));
        rests.await.expect("no command runs");
    }

    async fn work(&self, kind: usize) {
        let (adapter, phone) = (&self.adapter, &self.phone);
        match kind {
            0 => drop(adapter.boot_id(phone).await),
            1 => drop(adapter.read_anew(phone).await),
            2 => drop(adapter.exits(phone, None).await),
            3 => drop(adapter.record(Direction::Start, phone).await),
            4 => drop(adapter.renew_address(phone).await),
            _ => {
                let (device_id, action) = (phone.clone(), PowerAction::Restart);
                let restart = Command::SetPower(SetPowerArgs { device_id, action, idempotency_key: None });
                let leave = Leave::until(self.clock.now().plus(Duration::from_secs(60)), &self.clock);
                drop(adapter.send(TaskId::new(self.clock.now(), [0; 10]), &restart, leave).await);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_arrives_whole_or_is_an_error_within_its_bounds() {
    let watched = Watched::new().await;
    watched.set(json!({"screen": "1080x2400", "screen_bytes": 6_000_000, "screen_fault": "turns"})).await;
    for (width, height) in [(1_080, 2_400), (2_400, 1_080)] {
        let still = watched.still().await.expect("a picture");
        let size = StillSize { width, height };
        assert_eq!((still.size(), still.bytes().len()), (size, 6_000_000));
    }
    watched.set(json!({"screen_fault": "preceded"})).await;
    assert_eq!(watched.still().await.expect("a picture behind a warning").size(), StillSize { width: 90, height: 160 });
    let wrong = [
        (json!({"screen_fault": "no_picture"}), Ok("something other than a PNG")),
        (json!({"screen_fault": "half"}), Ok("only a part")),
        (json!({"screen_fault": "asleep"}), Ok("sleeps")),
        (json!({"screen_fault": "missing"}), Ok("no `screencap`")),
        (json!({"screen": "9000x1"}), Ok("more than 8,192")),
        (json!({"screen_fault": "endless"}), Err("prints too much")),
        (json!({"screen_bytes": 60_000_000}), Err("prints too much")),
        (json!({"shell": "fails"}), Ok("`screencap` of the phone fails")),
        (json!({"half_body": true}), Err("ended before its command did")),
        (json!({"code": 1}), Err("the adb server refuses")),
    ];
    for (switches, why) in wrong {
        watched.set(switches).await;
        Watched::check_reason(watched.still().await, why);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_has_8_seconds_and_then_the_phone_says_why_there_is_none() {
    let watched = Watched::new().await;
    for (fault, why) in [
        (json!({"screen_fault": "slow"}), None),
        (json!({"screen_fault": "silent"}), Some(Ok("takes more than 8 s"))),
        (json!({"shell": "hangs"}), Some(Err("did not answer in time"))),
    ] {
        let answers = fault["shell"].is_null();
        watched.set(fault).await;
        let before = watched.count_commands("screencap").await;
        let advance = async {
            watched.until_asked("screencap", before + 1).await;
            let (questions, ends) = (watched.count_commands("dumpsys").await, watched.count_commands(END).await);
            watched.clock.advance(Duration::from_secs(7));
            if why.is_some() {
                watched.until_asked("dumpsys", questions + 1).await;
                watched.until_asked(END, ends + usize::from(answers)).await;
                watched.clock.advance(Duration::from_secs(1));
            }
        };
        let still = tokio::join!(biased; watched.still(), advance).0;
        match why {
            None => drop(still.expect("a picture after 7 s")),
            Some(why) => Watched::check_reason(still, why),
        }
        watched.until_no_command_runs().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_phone_behind_adb_keeps_the_promises_of_a_screen() {
    let watched = Watched::new().await;
    assert!(adapter_suite::watch(&*watched.adapter, &watched.phone).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_arrive_as_they_are_and_no_text_is_in_a_command_or_an_error() {
    let (watched, mut seen) = (Watched::new().await, 0);
    for text in ["it's \"$(reboot)\";", "%s", " 100% sure %%s\\n", "-d", "* ? ~ `id` && |", "!"] {
        watched.input(json!({"text": text})).await.expect("typed");
        let given = watched.inputs(&mut seen).await;
        assert!(given.iter().all(|words| words[0] == "text"), "{given:?}");
        // As Android's `input` does.
        let typed = given.iter().filter_map(|words| words[1].as_str()).map(|text| text.replace("%s", " "));
        assert_eq!(typed.collect::<String>(), text);
    }
    let swipe = json!({"from": {"x": 1, "y": 2}, "to": {"x": 3, "y": 4}, "milliseconds": 500});
    for input in [json!({"touch": {"x": 10, "y": 20}}), json!({"swipe": swipe})] {
        watched.input(input).await.expect("done");
    }
    let keys = [("recents", 187), ("wake", 224), ("power", 26), ("volume_up", 24), ("volume_down", 25)];
    for (key, _) in keys.into_iter().chain([("select_all", 0)]) {
        watched.input(json!({"key": key})).await.expect("done");
    }
    let keys = keys.map(|(_, code)| json!(["keyevent", code.to_string()]));
    let touches = [json!(["tap", "10", "20"]), json!(["swipe", "1", "2", "3", "4", "500"])];
    let given = touches.into_iter().chain(keys).chain([json!(["keycombination", "113", "29"])]);
    assert_eq!(watched.inputs(&mut seen).await, given.collect::<Vec<_>>());
    watched.set(json!({"shell": "fails"})).await;
    for text in ["open-sesame", "öpen-sesame"] {
        let error = watched.input(json!({"text": text})).await.expect_err("not typed").to_string();
        assert!(!error.contains("sesame"), "{error}");
    }
    assert_eq!(watched.count_commands("sesame").await + watched.count_commands("reboot").await, 0);
    // A command that the phone takes late finds no line and does nothing.
    assert_eq!((watched.count_commands("read go&&input ").await, watched.count_commands("read go&&").await), (7, 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_phone_that_has_the_connection_is_neither_shown_nor_operated() {
    let (watched, mut seen) = (Watched::new().await, 0);
    watched.rack.run_on_phone("echo 00112233445566778899aabbccddeeff >/data/local/tmp/.cloudphone").await;
    let shown = watched.still().await.map(drop).map_err(|error| error.to_string());
    let taken = watched.input(json!({"key": "home"})).await.map_err(|error| error.to_string());
    for error in [shown, taken].map(|ended| ended.expect_err("refused")) {
        assert!(error.contains("another phone has this address"), "{error}");
    }
    assert!(watched.inputs(&mut seen).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_work_on_a_phone_goes_first_and_the_picture_is_taken_after_it() {
    let watched = Watched::new().await;
    for kind in 0..6 {
        let (pictures, all) = (watched.count_commands("screencap").await, watched.count_commands("shell,").await);
        watched.set(json!({"screen_fault": "silent"})).await;
        let watching = Arc::clone(&watched);
        let still = tokio::spawn(async move { watching.still().await });
        watched.until_asked("screencap", pictures + 1).await;
        // The work hangs until it is dropped.
        watched.set(json!({"shell": {"value": "hangs", "calls": 1}})).await;
        let worker = Arc::clone(&watched);
        let working = tokio::spawn(async move { worker.work(kind).await });
        watched.until_asked("shell,", all + 2).await;
        watched.until_no_command_runs().await;
        assert_eq!((watched.count_commands("screencap").await, still.is_finished()), (pictures + 1, false), "{kind}");
        working.abort();
        still.await.expect("no panic").expect("a picture, though the first never ended");
        assert_eq!(watched.count_commands("screencap").await, pictures + 2, "{kind}");
    }
    watched.set(json!({"shell": "hangs"})).await;
    let still = async {
        let late = async { watched.clock.advance(Still::WITHIN) };
        tokio::join!(biased; watched.still(), late).0
    };
    let error = tokio::select! {
        biased;
        () = watched.work(2) => panic!("the work hangs"),
        late = still => late.expect_err("no time is left").to_string(),
    };
    assert!(error.contains("reads or operates the phone"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_does_not_end_is_told_from_a_phone_that_does_not_answer() {
    let watched = Watched::new().await;
    for (calls, expected) in [(1, "a proxy in its way may accept connections"), (9, "did not answer in time")] {
        let before = watched.count_commands("shell,").await;
        watched.set(json!({"shell": {"value": "hangs", "calls": calls}})).await;
        let advance = async {
            watched.until_asked("shell,", before + 1).await;
            watched.clock.advance(Duration::from_secs(20));
            watched.until_asked("shell,", before + 2).await;
            if calls > 1 {
                watched.clock.advance(Duration::from_secs(20));
            }
        };
        let read = tokio::join!(biased; watched.adapter.exits(&watched.phone, None), advance).0;
        let error = read.expect_err("no request has arrived").to_string();
        assert!(error.contains(expected), "{error}");
    }
}
