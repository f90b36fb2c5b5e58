//! One request to the platform: its signature, the faults from the switches, its effect, and its
//! answer.

use crate::answers::{self, Answer, dress, refusal};
use crate::endpoints::{self, Call, Endpoint};
use crate::faults::{Faults, Instead, Spoiling};
use crate::operations::{self, Operation};
use crate::reads;
use crate::requests::{Members, Refusal, missing};
use crate::sign::{Signed, Verifier};
use crate::switches::Asked;
use crate::truth::Seat;
use crate::wire::{Connection, Cut};
use crate::world::{World, now};
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::Response;
use axum::http::request::Parts;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const BODY_MAX: usize = 4 << 20;

/// A request that passed authentication, or does not need it.
struct Told {
    endpoint: &'static Endpoint,
    body: Members,
    codes: Vec<String>,
    seats: Vec<Seat>,
}

/// Continues a call that has begun even if its client disconnects.
pub(crate) async fn answer(
    State(world): State<Arc<World>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_MAX).await else { return answers::html(413) };
    let handled = tokio::spawn(async move { handle(&world, &connection, &head, &body).await });
    handled.await.unwrap_or_else(|_| answers::html(500))
}

async fn handle(world: &Arc<World>, connection: &Connection, head: &Parts, body: &[u8]) -> Response<Body> {
    let path = head.uri.path();
    let Some(endpoint) = endpoints::find(path) else {
        log(world, json!({"path": path, "accepted": false, "http": 404, "answer": "sent"}));
        return answers::html(404);
    };
    let told = parse_call(world, endpoint, body);
    if let Err(refused) = verify(world, &Signed { headers: &head.headers, path, body }) {
        return to_response(world, &told, refused.into(), &Spoiling::default()).0;
    }
    let asked = Asked { endpoint: endpoint.name, seats: &told.seats };
    let faults = Faults::take(&mut world.switches(), asked);
    let Faults { stall, instead, code_after, spoiling } = faults;
    wait(stall).await;
    let answer = match instead {
        Some(Instead::Drop) => {
            connection.cut(Cut::Close);
            return without(world, &told, "dropped before acting", answers::html(500));
        }
        Some(Instead::Html(status)) => return without(world, &told, "sent", answers::html(status)),
        Some(Instead::Code(code)) => refusal(code).into(),
        None => {
            let done = act(world, &told);
            match code_after.filter(|_| done.code == 200) {
                Some(code) => Answer { tasks: done.tasks, ..refusal(code).into() },
                None => done,
            }
        }
    };
    finish(world, &told, answer, spoiling, connection).await
}

fn parse_call(world: &World, endpoint: &'static Endpoint, bytes: &[u8]) -> Told {
    // A body that is not an object is refused after the check of the signature.
    let body = Members::read(bytes).unwrap_or_default();
    let codes: Vec<String> = body.codes().into_iter().map(str::to_owned).collect();
    let truth = world.truth();
    let tasks = body.numbers("taskIds").unwrap_or_default().into_iter().filter_map(|id| u64::try_from(id).ok());
    let of_tasks: Vec<Seat> = tasks.filter_map(|id| truth.tasks.get(&id).map(|task| task.seat)).collect();
    let seats = codes.iter().filter_map(|code| truth.find(code)).chain(of_tasks).collect();
    drop(truth);
    Told { endpoint, body, codes, seats }
}

fn verify(world: &World, signed: &Signed<'_>) -> Result<(), Refusal> {
    let now = i64::try_from(world.platform_time() / 1_000).unwrap_or_default();
    let (access_key, secret_key) = (world.access_key, world.secret_key);
    Verifier { access_key, secret_key, now }.verify(signed)?;
    Members::read(signed.body).map(drop)
}

fn act(world: &Arc<World>, told: &Told) -> Answer {
    let Told { endpoint, body, codes: _, seats: _ } = told;
    match endpoint.call {
        Call::Infos => return reads::pages(world, body),
        Call::UserPadList => return reads::seat_list(world, body),
        Call::TaskDetail => return reads::task_detail(world, body),
        _ => {}
    }
    let seats = match find_pads(world, told) {
        Ok(seats) => seats,
        Err(refused) => return refused.into(),
    };
    let operation = Operation { endpoint, body, seats: &seats };
    match (endpoint.call, seats.as_slice()) {
        (Call::Token, [seat]) => operations::token(world, *seat),
        (Call::Token, _) => missing("padCode").into(),
        (Call::TimingOn | Call::TimingOff, _) => operations::timing(world, operation),
        _ => operations::flat(world, operation),
    }
}

fn find_pads(world: &World, told: &Told) -> Result<Vec<Seat>, Refusal> {
    let Told { endpoint, body, codes, seats } = told;
    if codes.is_empty() {
        return Err(missing(if endpoint.call == Call::Token { "padCode" } else { "padCodes" }));
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

async fn finish(
    world: &World,
    told: &Told,
    answer: Answer,
    spoiling: Spoiling,
    connection: &Connection,
) -> Response<Body> {
    let (response, length) = to_response(world, told, answer, &spoiling);
    wait(spoiling.stall).await;
    if let Some(cut) = spoiling.cut.or(spoiling.half.then_some(Cut::HalfBody(length))) {
        connection.cut(cut);
    }
    response
}

fn to_response(world: &World, told: &Told, answer: Answer, spoiling: &Spoiling) -> (Response<Body>, usize) {
    let Spoiling { stall: _, cut, half } = spoiling;
    let fate = match cut {
        Some(Cut::Close) => "dropped",
        Some(Cut::Reset) => "reset before its first byte",
        Some(Cut::ResetAfterFirstByte) => "reset after its first byte",
        _ if *half => "cut off in its body",
        _ => "sent",
    };
    let Answer { code, msg, data: _, tasks } = &answer;
    log(
        world,
        json!({
            "endpoint": told.endpoint.name, "pads": told.codes, "accepted": *code == 200 || !tasks.is_empty(),
            "code": code, "why": msg, "tasks": tasks, "answer": fate,
        }),
    );
    let trace = world.fresh("trace").chars().take(12).collect::<String>();
    dress(answer, world.platform_time(), trace)
}

/// Records an answer that is not an envelope: the call had no effect.
fn without(world: &World, told: &Told, fate: &str, response: Response<Body>) -> Response<Body> {
    let (endpoint, pads, http) = (told.endpoint.name, &told.codes, response.status().as_u16());
    log(world, json!({"endpoint": endpoint, "pads": pads, "accepted": false, "http": http, "answer": fate}));
    response
}

fn log(world: &World, entry: Value) {
    world.journal.write(now(), "request", entry);
}

async fn wait(milliseconds: u64) {
    if milliseconds > 0 {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}
