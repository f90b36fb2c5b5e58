//! One request to the platform: its signature, the faults from the switches, its effect, and its
//! answer.

use crate::answers::{self, Answer, dress, refusal};
use crate::endpoints::{self, Call};
use crate::faults::{Cut, CutAnswer, Faults, Instead};
use crate::operations::{self, Operation};
use crate::reads;
use crate::requests::{Members, Refusal, missing};
use crate::sign::{Signed, Verifier};
use crate::switches::Asked;
use crate::tasks::wait;
use crate::truth::Seat;
use crate::world::{World, now};
use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const BODY_MAX: usize = 4 << 20;

/// A request that passed authentication, or does not need it.
struct Told {
    call: Call,
    body: Members,
    codes: Vec<String>,
    seats: Vec<Seat>,
}

/// Continues a call that has begun even if its client disconnects.
pub(crate) async fn answer(world: Arc<World>, request: Request<Incoming>) -> Result<Response<String>, CutAnswer> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(Body::new(body), BODY_MAX).await else { return Ok(answers::html(413)) };
    let handled = tokio::spawn(async move { handle(&world, &head, &body).await });
    handled.await.unwrap_or_else(|_| Ok(answers::html(500)))
}

async fn handle(world: &Arc<World>, head: &Parts, body: &[u8]) -> Result<Response<String>, CutAnswer> {
    let path = head.uri.path();
    let Some(call) = endpoints::find(path) else {
        log(world, json!({"path": path, "accepted": false, "http": 404, "answer": "sent"}));
        return Ok(answers::html(404));
    };
    let told = parse_call(world, call, body);
    if let Err(refused) = verify(world, &Signed { headers: &head.headers, path, body }) {
        return Ok(to_response(world, &told, refused.into(), None));
    }
    let asked = Asked { endpoint: call.into(), seats: &told.seats };
    let faults = Faults::take(&mut world.switches(), asked);
    let Faults { stall, instead, code_after, answer_stall, cut } = faults;
    wait(stall).await;
    let answer = match instead {
        Some(Instead::Drop) => {
            log_failure(world, &told, "dropped before acting", 500);
            return Err(CutAnswer::default());
        }
        Some(Instead::Html(status)) => {
            log_failure(world, &told, "sent", status);
            return Ok(answers::html(status));
        }
        Some(Instead::Code(code)) => refusal(code).into(),
        None => {
            let done = act(world, &told);
            match code_after.filter(|_| done.code == 200) {
                Some(code) => Answer { tasks: done.tasks, ..refusal(code).into() },
                None => done,
            }
        }
    };
    let response = to_response(world, &told, answer, cut);
    wait(answer_stall).await;
    match cut {
        Some(cut) => Err(cut.cut(&response)),
        None => Ok(response),
    }
}

fn parse_call(world: &World, call: Call, bytes: &[u8]) -> Told {
    // A body that is not an object is refused after the check of the signature.
    let body = Members::read(bytes).unwrap_or_default();
    let codes: Vec<String> = body.codes().into_iter().map(str::to_owned).collect();
    let truth = world.truth();
    let tasks = body.numbers("taskIds").unwrap_or_default().into_iter().filter_map(|id| u64::try_from(id).ok());
    let of_tasks: Vec<Seat> = tasks.filter_map(|id| truth.tasks.get(&id).map(|task| task.seat)).collect();
    let seats = codes.iter().filter_map(|code| truth.find(code)).chain(of_tasks).collect();
    drop(truth);
    Told { call, body, codes, seats }
}

fn verify(world: &World, signed: &Signed<'_>) -> Result<(), Refusal> {
    let now = i64::try_from(world.platform_time() / 1_000).unwrap_or_default();
    let (access_key, secret_key) = (world.access_key, world.secret_key);
    Verifier { access_key, secret_key, now }.verify(signed)?;
    Members::read(signed.body).map(drop)
}

fn act(world: &Arc<World>, told: &Told) -> Answer {
    let Told { call, body, codes: _, seats: _ } = told;
    match call {
        Call::Infos => return reads::pages(world, body),
        Call::UserPadList => return reads::seat_list(world, body),
        Call::PadTaskDetail => return reads::task_detail(world, body),
        _ => {}
    }
    let seats = match find_pads(world, told) {
        Ok(seats) => seats,
        Err(refused) => return refused.into(),
    };
    let operation = Operation { call: *call, body, seats: &seats };
    match (call, seats.as_slice()) {
        (Call::StsTokenByPadCode, [seat]) => operations::token(world, *seat),
        (Call::StsTokenByPadCode, _) => missing("padCode").into(),
        (Call::TimingPadOn | Call::TimingPadOff, _) => operations::timing(world, operation),
        _ => operations::flat(world, operation),
    }
}

fn find_pads(world: &World, told: &Told) -> Result<Vec<Seat>, Refusal> {
    let Told { call, body, codes, seats } = told;
    if codes.is_empty() {
        return Err(missing(if *call == Call::StsTokenByPadCode { "padCode" } else { "padCodes" }));
    }
    if codes.iter().collect::<BTreeSet<_>>().len() < codes.len() {
        return Err(Refusal::new(110_027, "the list has a pad twice"));
    }
    let switches = world.switches();
    let known: Vec<Seat> = seats.iter().copied().filter(|seat| reads::is_known(&switches, *seat)).collect();
    if known.len() == codes.len() {
        return Ok(known);
    }
    Err(refusal(if body.text("padCode").is_some() { 2020 } else { 110_028 }))
}

fn to_response(world: &World, told: &Told, answer: Answer, cut: Option<Cut>) -> Response<String> {
    let fate = cut.map_or_else(|| "sent".to_owned(), |cut| format!("{cut:?}"));
    let Answer { code, msg, data: _, tasks } = &answer;
    log(
        world,
        json!({
            "endpoint": <&str>::from(told.call), "pads": told.codes, "accepted": *code == 200 || !tasks.is_empty(),
            "code": code, "why": msg, "tasks": tasks, "answer": fate,
        }),
    );
    let trace = world.fresh("trace").chars().take(12).collect::<String>();
    dress(answer, world.platform_time(), trace)
}

/// Records an answer that is not an envelope: the call had no effect.
fn log_failure(world: &World, told: &Told, fate: &str, http: u16) {
    let (endpoint, pads) = (<&str>::from(told.call), &told.codes);
    log(world, json!({"endpoint": endpoint, "pads": pads, "accepted": false, "http": http, "answer": fate}));
}

fn log(world: &World, entry: Value) {
    world.journal.write(now(), "request", entry);
}
