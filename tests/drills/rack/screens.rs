//! Readings of two phones that nobody, one and ten people watch, in turns. A reading is a call of
//! `get_device` after the age of its cache: the adb server's list, and the script that a reading of
//! a write runs. Pictures give way to both alike.

use super::{RackOptions, RackSite, options};
use crate::harness::program::Program;
use reqwest::{Client, Method, Response};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// More than half the age of the cache, because the phones are read in turns.
const PAUSE: Duration = Duration::from_millis(1_050);

struct Viewer(Client, String, String);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and Debian: cargo xtask drill rack"]
async fn viewers_make_no_reading_fail_get_pictures_and_send_inputs() {
    let options = options::<RackOptions>();
    let picture = |name| fs::read(options.roots.join("trixie/usr/share").join(name)).expect("a picture");
    let pictures = Arc::new(["odd.png", "even.png"].map(picture));
    let site = RackSite::start(&options, 2, 15).await;
    let (mut program, mut inputs) = (site.serve().await, String::new());
    let mut figures = [0, 1, 10].map(|viewers| (viewers, Vec::new(), Arc::new(AtomicU64::new(0)), [0; 2]));
    for round in 1..=options.screens.unwrap_or(10) {
        for (viewers, readings, shown, [took, cpu]) in &mut figures {
            let (mut watching, begun, before) = (JoinSet::new(), Instant::now(), read_cpu(program.id()));
            for id in site.phones.keys().cycle().take(2 * *viewers) {
                watching.spawn(Viewer::open(&program, id).await.watch(Arc::clone(&pictures), Arc::clone(shown)));
            }
            for id in site.phones.keys().cycle().take(10) {
                sleep(PAUSE).await;
                let begun = Instant::now();
                let device = program.call("get_device", json!({"device_id": id})).await.expect("it is known");
                readings.push(begun.elapsed().as_millis() as u64);
                assert_eq!(device["state"], "running", "with {viewers} viewers\n{}", program.log());
            }
            assert!(watching.try_join_next().is_none(), "a viewer has failed\n{}", program.log());
            (*took, *cpu) = (*took + begun.elapsed().as_millis() as u64, *cpu + read_cpu(program.id()) - before);
        }
        // Points lie within the picture that was shown last.
        for id in site.phones.keys() {
            let viewer = Viewer::open(&program, id).await;
            for body in [json!({"touch": {"x": round, "y": 2}}), json!({"text": format!("round {round}")})] {
                let answer = viewer.ask(Method::POST, "input", body.to_string()).await;
                assert_eq!(answer.status(), 204, "{}", program.log());
            }
        }
        inputs += &format!("tap {round} 2\ntext round%s{round}\n");
    }
    for phone in ["phone-1", "phone-2"] {
        assert_eq!(fs::read_to_string(site.home.path().join(phone).join("inputs")).expect("inputs"), inputs);
    }
    let unwatched = figures[0].3[1];
    let line = figures.map(|(viewers, mut readings, shown, [took, cpu])| {
        // Only a list that was read a moment ago answers faster.
        readings.retain(|milliseconds| *milliseconds >= 5);
        readings.sort_unstable();
        let (count, shown) = (readings.len(), shown.load(Relaxed) as f64);
        let [p50, p99] = [50, 99].map(|share| readings[(count * share).div_ceil(100) - 1]);
        let (rate, each) = (shown * 1e3 / took as f64, (cpu as f64 - unwatched as f64) / shown.max(1.0));
        format!("{viewers}: {count} of {p50} ms, p99 {p99} ms; {rate:.1} pictures a second of {each:.1} ms of CPU")
    });
    println!("readings by viewers of each phone: {}", line.join(" | "));
    program.stop().await;
}

impl Viewer {
    async fn open(program: &Program, id: &str) -> Self {
        let session = program.call("create_session", json!({"device_id": id, "mode": "control"})).await;
        let token = session.expect("a session")["token"].as_str().expect("a token").to_owned();
        Self(Client::new(), format!("http://{}/screen", program.address), token)
    }

    async fn ask(&self, method: Method, path: &str, body: String) -> Response {
        let request = self.0.request(method, format!("{}/{path}", self.1)).bearer_auth(&self.2);
        request.header("content-type", "application/json").body(body).send().await.expect("an answer")
    }

    async fn watch(self, pictures: Arc<[Vec<u8>; 2]>, shown: Arc<AtomicU64>) {
        let mut after = "0".to_owned();
        loop {
            let answer = self.ask(Method::GET, &format!("still?after={after}"), String::new()).await;
            assert_eq!(answer.status(), 200);
            answer.headers()["x-still"].to_str().expect("a number").clone_into(&mut after);
            let picture = answer.bytes().await.expect("a picture");
            assert!(pictures.iter().any(|known| *known == picture), "a picture that the phone did not draw");
            shown.fetch_add(1, Relaxed);
        }
    }
}

/// Returns milliseconds. A tick of Linux has 10.
fn read_cpu(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields = stat.rsplit_once(") ").expect("fields").1.split(' ');
    fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number") * 10).sum()
}
