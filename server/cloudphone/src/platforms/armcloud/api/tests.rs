//! The calls against a platform that fails at each moment.

pub(in crate::platforms::armcloud) mod platform;

use super::*;
use crate::adapter_kit::guard::GuardLimits;
use platform::{Platform, PlatformAct};
use serde_json::json;
use std::sync::Arc;
use std::task::Poll;
use toolwarrant::text::Secret;

const PAD: &str = "AC1";
/// Long enough for a request to arrive on a busy machine.
const SHORT: Duration = Duration::from_secs(5);

pub(in crate::platforms::armcloud) const LONG: Duration = Duration::from_mins(10);

fn api(platform: &Platform, scheme: Scheme) -> (Api, Clock) {
    api_within(platform, scheme, LONG)
}

pub(in crate::platforms::armcloud) fn api_within(
    platform: &Platform,
    scheme: Scheme,
    write_within: Duration,
) -> (Api, Clock) {
    let clock = Clock::manual(Timestamp(1_767_323_045_000));
    let (base_url, prefix) = (platform.url.clone(), "/vcpcloud/api/padApi".to_owned());
    let settings = ApiSettings { base_url, prefix, family: Family::PadApi, scheme, read_within: LONG, write_within };
    let limits = GuardLimits { concurrent: 4, per_second: 1_000, per_minute: 60_000 };
    (Api::new(settings, keys(), Guard::new(limits, clock.clone()), clock.clone()).expect("an account"), clock)
}

fn keys() -> AccountKeys {
    AccountKeys { access_key: "AK".to_owned(), secret_key: Secret::new("SECRETKEY".to_owned()) }
}

fn leave(clock: &Clock) -> Leave {
    Leave::until(clock.now().plus(LONG), clock)
}

async fn restart(api: &Api, clock: &Clock) -> Result<Accepted, ApiError> {
    api.start(ApiCall::Restart, &json!({"padCodes": [PAD]}), PAD, leave(clock)).await
}

async fn infos(api: &Api, clock: &Clock) -> Result<Rows<Value>, ApiError> {
    let body = json!({"page": 1, "rows": 10});
    let mut read = std::pin::pin!(api.read(ApiCall::Infos, &body));
    loop {
        tokio::select! {
            biased;
            done = &mut read => return done,
            () = tokio::task::yield_now() => clock.advance(Duration::from_millis(1)),
        }
    }
}

fn accept(row: Value) -> PlatformAct {
    PlatformAct::json(200, json!({"code": 200, "msg": "success", "ts": 1, "data": row}))
}

fn describe<T: std::fmt::Debug>(outcome: Result<T, ApiError>) -> String {
    match outcome {
        Ok(result) => format!("{result:?}"),
        Err(error) => {
            let kinds = [(error.is_missing_pad(), " (no pad)"), (error.is_unsupported(), " (no call)")];
            error.to_string() + &kinds.iter().filter(|kind| kind.0).map(|kind| kind.1).collect::<String>()
        }
    }
}

fn answers() -> Vec<(PlatformAct, String)> {
    let code = |code: Value| PlatformAct::json(200, json!({"code": code, "msg": "m\u{1b}[31m", "data": null}));
    let row = json!({"taskId": 7, "padCode": PAD, "vmStatus": 1, "taskStatus": 1});
    let done = "Accepted { task_id: 7 }";
    let unknown = [500, 503, 0, 100_010, 100_011, 110_012, 987_654];
    let unknown = unknown.map(|number| (code(json!(number)), format!("unknown: code {number}: m")));
    let told = [
        (accept(json!([row])), done),
        (accept(row.clone()), done),
        (accept(json!({"successList": [row], "failList": []})), done),
        (PlatformAct::json(200, json!({"code": "200", "data": [{"taskId": "7", "padCode": PAD}], "new": 1})), done),
        // Accepted, but it is unknown what was accepted.
        (accept(Value::Null), "unknown: the answer says nothing of this pad"),
        (accept(json!([])), "unknown: the answer says nothing of this pad"),
        (accept(json!([{"taskId": 7, "padCode": "ac1"}])), "unknown: the answer says nothing of this pad"),
        (accept(json!([{"taskId": null, "padCode": PAD}])), "unknown: the answer has no task for this pad"),
        (accept(json!([{"taskId": 0, "padCode": PAD}])), "unknown: the answer has no task for this pad"),
        (
            accept(json!([{"taskId": 7, "padCode": PAD, "taskStatus": -1}])),
            "unknown: the platform says that such a task is queued already",
        ),
        (accept(json!("TASK-1")), "unknown: the data of the answer has another shape (Data)"),
        (
            accept(json!({"successList": [], "failList": [{"padCode": PAD, "errCode": 111070, "errMsg": "m"}]})),
            "refused: code 111070: m",
        ),
        (
            accept(json!({"failList": [{"padCode": PAD, "errorCode": "PAD_NOT_RUNNING", "errorMsg": "m"}]})),
            "unknown: m",
        ),
        (code(json!(110028)), "refused: code 110028: m (no pad)"),
        (code(json!("2020")), "refused: code 2020: m (no pad)"),
        (code(json!(1104)), "refused: code 1104: m"),
        (code(json!(110014)), "refused: code 110014: m"),
        (code(json!(2019)), "refused: code 2019: m"),
        (PlatformAct::json(401, json!({"code": 2031, "msg": "m"})), "refused: code 2031: m"),
        (PlatformAct::json(429, json!({"code": 429, "msg": "m"})), "refused: code 429: m"),
        (code(json!(429)), "refused: code 429: m"),
        (PlatformAct::html(401), "refused: status 401 and no answer in the platform's form"),
        (PlatformAct::html(429), "refused: status 429 and no answer in the platform's form"),
        (PlatformAct::html(404), "refused: status 404 and no answer in the platform's form (no call)"),
        (
            PlatformAct::json(404, json!({"status": 404, "error": "Not Found"})),
            "refused: status 404 and no answer in the platform's form (no call)",
        ),
        (PlatformAct::json(404, json!({"code": 110028, "msg": "m"})), "refused: code 110028: m (no pad)"),
        (PlatformAct::json(404, json!({"code": 9, "msg": "m"})), "refused: code 9: m (no call)"),
        (code(json!(10001)), "failed with code 10001: code 10001: m"),
        (code(json!(110003)), "failed with code 110003: code 110003: m"),
        (PlatformAct::json(500, json!({"code": 200, "data": [row]})), "unknown: code 200"),
        (PlatformAct::html(200), "unknown: status 200 and no answer in the platform's form"),
        (PlatformAct::html(302), "unknown: status 302 and no answer in the platform's form"),
        (PlatformAct::html(403), "refused: status 403 and no answer in the platform's form"),
        (PlatformAct::html(502), "unknown: status 502 and no answer in the platform's form"),
        (PlatformAct::json(200, json!({"code": "yes"})), "unknown: status 200 and no answer in the platform's form"),
        (
            PlatformAct::json(200, json!({"code": 200, "data": "x".repeat(5 << 20)})),
            "unknown: the answer is larger than 4194304 bytes",
        ),
        (PlatformAct::Cut(String::new()), "unknown: the connection ended"),
        (PlatformAct::Cut("HTTP/1.1 200 O".to_owned()), "unknown: the connection ended"),
        (
            PlatformAct::Cut("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"code\":200,".to_owned()),
            "unknown: the connection ended",
        ),
        (PlatformAct::Hold, "unknown: there was no whole answer"),
        (PlatformAct::json(200, json!({"code": 1104, "msg": "m".repeat(70_000)})), "refused: code 1104"),
    ];
    told.map(|(act, end)| (act, end.to_owned())).into_iter().chain(unknown).collect()
}

#[tokio::test]
async fn each_answer_to_a_call_that_changes_something_is_judged_and_nothing_is_sent_twice() {
    for (act, expected) in answers() {
        let shown = format!("{act:?}").chars().take(200).collect::<String>();
        let within = if matches!(act, PlatformAct::Hold) { SHORT } else { LONG };
        let platform = Platform::start(vec![act]).await;
        let (api, clock) = api_within(&platform, Scheme::V4, within);
        let told = describe(restart(&api, &clock).await);
        let starts = expected.ends_with("ended") || expected.ends_with("whole answer");
        assert!(told == expected || (starts && told.starts_with(&expected)), "{shown}\n{told}");
        assert_eq!(platform.requests().len(), 1, "{shown}");
    }
}

#[test]
fn only_a_refusal_of_the_credentials_or_of_the_call_is_known_to_come_before_the_act() {
    for code in [401, 403, 1116, 2019, 2031, 2032, 2033, 100_003, 100_004, 100_005] {
        assert!(codes::precedes_act(code), "{code}");
    }
    for code in [404, 429, 500, 1104, 1218, 1219, 2020, 100_000, 100_010, 110_014, 110_028, 111_070, 987_654] {
        assert!(!codes::precedes_act(code), "{code}");
    }
}

#[tokio::test]
async fn what_never_left_is_not_done() {
    let platform = Platform::start(vec![PlatformAct::Hold]).await;
    let (api, clock) = api(&platform, Scheme::V4);
    // Its deadline has passed.
    let late = api.start(ApiCall::Restart, &json!({}), PAD, Leave::until(clock.now(), &clock)).await;
    assert!(matches!(late, Err(ApiError::NotSent(_))), "{late:?}");
    // The deadline passes while the connection is made.
    let mut late = std::pin::pin!(restart(&api, &clock));
    let waits = std::future::poll_fn(|context| Poll::Ready(late.as_mut().poll(context).is_pending())).await;
    clock.advance(2 * LONG);
    assert!(waits, "it connects");
    assert_eq!(describe(late.await), "not sent: its time had passed when the connection stood");
    let details = api.start(ApiCall::NetStorageOn, &json!({}), PAD, leave(&clock)).await;
    assert!(details.expect_err("no such call").is_unsupported());
    assert_eq!((platform.requests().len(), api.guard.observe().calls.failed), (0, 0));
    let gone = platform.close().await;
    let (api, clock) = self::api(&gone, Scheme::V4);
    let refused = restart(&api, &clock).await;
    assert_eq!(describe(refused), "not sent: nothing listens there");
    assert_eq!(api.guard.observe().calls.failed, 1);
}

#[tokio::test]
async fn a_read_is_tried_again_within_the_budget_and_a_platform_that_fails_is_left_alone() {
    let platform = Platform::start(vec![
        PlatformAct::Cut(String::new()),
        PlatformAct::html(502),
        PlatformAct::json(429, json!({"code": 429})),
        PlatformAct::json(200, json!({"code": 503})),
        accept(json!({"pageData": [{"padCode": PAD}], "total": 1})),
        PlatformAct::html(502),
    ])
    .await;
    let (api, clock) = api(&platform, Scheme::V2);
    let rows = infos(&api, &clock).await.expect("the fifth answer");
    assert_eq!(rows, Rows { rows: vec![json!({"padCode": PAD})], count: 1, paged: true, ..Rows::default() });
    assert_eq!((platform.requests().len(), api.guard.observe().calls.retried), (5, 4));
    // One of five retries is left; then each call costs one request, until the circuit opens.
    for seen in [7, 8, 9, 10, 10] {
        assert!(infos(&api, &clock).await.is_err());
        assert_eq!(platform.requests().len(), seen);
    }
    assert_eq!(
        describe(restart(&api, &clock).await),
        "not sent: the platform could not be reached several times in a row, and is left alone for now"
    );
    assert_eq!(platform.requests().len(), 10);
}

#[tokio::test]
async fn a_refused_call_is_not_repeated() {
    let platform =
        Platform::start(vec![PlatformAct::json(401, json!({"code": 2033, "msg": "m", "ts": 1_767_323_445_000_u64}))])
            .await;
    let (api, clock) = api(&platform, Scheme::V4);
    assert_eq!(api.skew(), None);
    assert_eq!(describe(infos(&api, &clock).await), "refused: code 2033: m");
    assert!(api.skew().expect("a time").abs_diff(400_000) < 20_000);
    for _ in 0..2 {
        assert_eq!(
            describe(infos(&api, &clock).await),
            "not sent: the platform refused the credentials, and is left alone for now"
        );
    }
    assert_eq!(platform.requests().len(), 1);
    let platform = Platform::start(vec![PlatformAct::html(404), accept(json!([{"taskId": 7, "padCode": PAD}]))]).await;
    let (api, clock) = self::api(&platform, Scheme::V4);
    let records = async || api.read::<Value>(ApiCall::TaskDetail, &json!({})).await;
    for _ in 0..2 {
        assert!(records().await.expect_err("no such call").is_unsupported());
    }
    assert_eq!(restart(&api, &clock).await, Ok(Accepted { task_id: 7 }));
    assert_eq!(platform.requests().len(), 2);
    clock.advance(Duration::from_mins(1));
    assert!(records().await.is_ok());
    let reset = format!("X-RateLimit-Reset: {}\r\n", 1_767_323_045 + 60);
    let platform = Platform::start(vec![PlatformAct::Answer(429, reset, "{}".to_owned())]).await;
    let (api, clock) = self::api(&platform, Scheme::V4);
    assert!(restart(&api, &clock).await.is_err());
    let until = Timestamp(1_767_323_105_000);
    assert_eq!(api.guard.would_refuse(), Some(crate::adapter_kit::guard::Withheld::Paused(until)));
}

#[tokio::test]
async fn a_call_that_never_worked_and_is_answered_with_404_is_tried_again_after_1_5_15_and_60_minutes_and_on_demand() {
    let missing = || PlatformAct::html(404);
    let found = || accept(json!([{"taskId": 7, "padCode": PAD}]));
    let acts = [missing(), missing(), missing(), missing(), missing(), missing(), found(), missing(), found()];
    let platform = Platform::start(acts.into()).await;
    let (api, clock) = api(&platform, Scheme::V4);
    let mut sent = 0;
    let mut set_proxy = async |expected: usize| {
        let told = api.start(ApiCall::SetProxy, &json!({}), PAD, leave(&clock)).await;
        sent += expected;
        assert_eq!(platform.requests().len(), sent, "{told:?}");
        told.is_err_and(|error| error.is_unsupported())
    };
    for minutes in [1, 5, 15, 60, 60] {
        assert!(set_proxy(1).await, "it answers 404 again");
        let until = clock.now().plus(Duration::from_mins(minutes));
        assert_eq!(api.list_unserved(), [(ApiCall::SetProxy, until)]);
        clock.advance(Duration::from_mins(minutes) - Duration::from_millis(1));
        assert!(set_proxy(0).await, "it is not tried before {minutes} minutes");
        clock.advance(Duration::from_millis(1));
    }
    assert!(set_proxy(1).await && set_proxy(0).await);
    api.retry_unserved();
    assert!(!set_proxy(1).await && api.list_unserved().is_empty());
}

#[tokio::test]
async fn a_call_that_has_worked_is_missing_after_three_404s_a_minute_apart_and_the_list_never() {
    let missing = || PlatformAct::html(404);
    let worked = accept(json!([]));
    let calls = [ApiCall::TaskDetail, ApiCall::UserPadList, ApiCall::Infos];
    for (call, is_list) in calls.into_iter().zip([false, true, true]) {
        let platform = Platform::start(vec![worked.clone(), missing()]).await;
        let (api, clock) = api(&platform, Scheme::V4);
        let mut sent = 0;
        let mut ask = async |expected: usize| {
            let told = api.read::<Value>(call, &json!({})).await;
            sent += expected;
            assert_eq!(platform.requests().len(), sent, "{told:?}");
            told.map_err(|error| error.is_unsupported())
        };
        assert_eq!(ask(1).await, Ok(json!([])));
        for n in 0..6 {
            let is_missing = !is_list && n >= 4;
            assert_eq!(ask(1).await, Err(is_missing), "{call:?} {n}");
            assert_eq!(api.list_unserved()[0].0, call);
            // Of two within a minute, one counts.
            clock.advance(Duration::from_secs(if n % 2 == 0 { 59 } else { 1 }));
            if is_missing && n == 4 {
                assert_eq!(ask(0).await, Err(true), "in the pause");
                clock.advance(Duration::from_secs(1));
            }
        }
    }
}

#[tokio::test]
async fn v2_signs_or_leaves_out_the_body_of_a_command_as_the_account_requires() {
    let command = json!({"padCodes": [PAD], "scriptContent": "echo hunter2"});
    let body = command.to_string();
    let path = "/vcpcloud/api/padApi/asyncCmd";
    let wrong = || PlatformAct::json(401, json!({"code": 2019, "msg": "m"}));
    let right = || accept(json!([{"taskId": 7, "padCode": PAD}]));
    let platform = Platform::start(vec![wrong(), right(), right(), wrong(), wrong()]).await;
    let (api, clock) = api(&platform, Scheme::V2);
    let send = async || api.start(ApiCall::AsyncCmd, &command, PAD, leave(&clock)).await;
    let sign = |body: &str| {
        let signed = Signable { host: "127.0.0.1", path, body, at: clock.wall() };
        keys()
            .headers(Scheme::V2, signed)
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect::<Vec<_>>()
    };
    let signed_body = |at: usize| {
        let requests = platform.requests();
        let has = |text: &str| sign(text).iter().all(|line| requests[at].contains(line));
        assert!(requests[at].starts_with(&format!("POST {path} HTTP/1.1\r\n")) && requests[at].ends_with(&body));
        assert!(has("") != has(&body), "{}", requests[at]);
        has(&body)
    };
    assert_eq!(send().await, Ok(Accepted { task_id: 7 }));
    assert_eq!(send().await, Ok(Accepted { task_id: 7 }));
    assert_eq!([0, 1, 2].map(signed_body), [false, true, true]);
    assert_eq!(api.guard.would_refuse(), None);
    // If neither fits, the credentials are wrong.
    assert_eq!(describe(send().await), "refused: code 2019: m");
    assert_eq!([3, 4].map(signed_body), [true, false]);
    assert!(api.guard.would_refuse().is_some());
    assert!(send().await.is_err());
    assert_eq!(platform.requests().len(), 5);
}

#[tokio::test]
async fn the_log_names_the_call_its_code_and_trace_and_quotes_nothing() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let writer = Arc::new(log.reopen().expect("the file"));
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(writer);
    // Tracing asks only the thread that first meets an event, if there is one subscriber. If that
    // thread has none, the event stays off.
    let _beside = tracing::Dispatch::new(tracing_subscriber::registry());
    let _log = tracing::subscriber::set_default(subscriber.finish());
    for (scheme, call) in [(Scheme::V4, ApiCall::SetProxy), (Scheme::V2, ApiCall::ScreenToken)] {
        let answer = json!({"code": 200, "traceId": "ewab9x88\u{1b}[31m", "data": {"token": "hunter2-token"}});
        let platform = Platform::start(vec![PlatformAct::json(200, answer), PlatformAct::Cut(String::new())]).await;
        let (api, clock) = api(&platform, scheme);
        assert!(!format!("{api:?}").contains("SECRETKEY"));
        for _ in 0..2 {
            let _ = api.write::<Value>(call, &json!({"password": "hunter2"}), leave(&clock)).await;
        }
    }
    let platform = Platform::start(vec![PlatformAct::json(401, json!({"code": 2031, "msg": "hunter2"}))]).await;
    let (api, clock) = api(&platform, Scheme::V4);
    for trials in 1..=3 {
        let _ = infos(&api, &clock).await;
        assert_eq!(platform.requests().len(), trials);
        api.guard.urge_trial();
    }
    let log = std::fs::read_to_string(log.path()).expect("UTF-8");
    assert_eq!(log.matches("the platform refused the credentials, and calls to it are paused").count(), 1, "{log}");
    for expected in ["SetProxy", "ScreenToken", "code=200", "ewab9x88", "did not answer"] {
        assert!(log.contains(expected), "{expected}: {log}");
    }
    for secret in ["hunter2", "SECRETKEY", "Signature=", "x-sign", "[31m"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
