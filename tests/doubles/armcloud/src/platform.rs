//! One request to the platform: its signature, the faults from the switches, its effect, and its
//! answer.

use crate::answers::{self, Answer, Dress, dress, refusal};
use crate::endpoints::{self, Call, Endpoint, HasProxyInfo};
use crate::faults::{Faults, Instead, Spoiling};
use crate::operations::{self, Operation};
use crate::reads::{self, Details};
use crate::requests::{Members, Refusal, missing};
use crate::sign::{CommandBody, Scheme, Signed, Verifier};
use crate::switches::{Asked, Switch};
use crate::truth::Seat;
use crate::wire::{Connection, Cut};
use crate::world::{World, now};
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Response};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum size of a request; the requests of adapters are smaller.
const BODY_MAX: usize = 4 << 20;

/// The platform, and the times of the calls in the last second.
#[derive(Debug)]
pub(crate) struct Platform {
    pub(crate) world: Arc<World>,
    pub(crate) called: Mutex<VecDeque<Instant>>,
}

/// A request that passed authentication, or does not need it.
struct Told<'a> {
    endpoint: &'static Endpoint,
    path: &'a str,
    body: Members,
    /// The pad codes in the request.
    codes: Vec<String>,
    /// The pads of those codes, and of the tasks in the request.
    seats: Vec<Seat>,
}

/// Answers every request to the platform's port. A call that has begun continues if its client
/// disconnects.
pub(crate) async fn answer(
    State(platform): State<Arc<Platform>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_MAX).await else { return answers::html(413) };
    let handled = tokio::spawn(async move { handle(&platform, &connection, &head, &body).await });
    handled.await.unwrap_or_else(|_| answers::html(500))
}

async fn handle(platform: &Platform, connection: &Connection, head: &Parts, body: &[u8]) -> Response<Body> {
    let world = &platform.world;
    let path = head.uri.path();
    let has_proxy_info = HasProxyInfo(world.switches().global(Switch::ProxyInfo).is_some());
    let Some(endpoint) = endpoints::find(path, has_proxy_info) else {
        log(world, json!({"path": path, "accepted": false, "http": 404, "answer": "sent"}));
        return answers::html(404);
    };
    let told = parse_call(world, endpoint, path, body);
    let (query, is_get) = (head.uri.query().unwrap_or_default(), head.method == Method::GET);
    if let Err(refused) = verify(world, &told, &Signed { headers: &head.headers, path, query, body, is_get }) {
        return to_response(world, &told, refused.into(), &mut Spoiling::default()).0;
    }
    let asked = Asked { endpoint: endpoint.name, seats: &told.seats };
    let faults = Faults::take(&mut world.switches(), asked);
    let Faults { stall, instead, rate, code_after, status_after, code_text, spoiling } = faults;
    wait(stall).await;
    let coded = |code: i64| {
        let Refusal { code, msg } = refusal(code);
        Answer::refusal(code, code_text.clone().unwrap_or(msg))
    };
    let limited = rate.is_some_and(|rate| platform.exceeds(rate)).then_some(Instead::Code(429));
    let answer = match limited.or(instead) {
        Some(Instead::Drop) => {
            connection.cut(Cut::Close);
            return without(world, &told, "dropped before acting", answers::html(500));
        }
        Some(Instead::Html(status)) => return without(world, &told, "sent", answers::html(status)),
        Some(Instead::Redirect(to)) => return without(world, &told, "sent", answers::redirect(&to)),
        Some(Instead::Code(code)) => coded(code),
        None => {
            let done = act(world, &told).await;
            if let Some(status) = status_after {
                let (endpoint, pads) = (told.endpoint.name, &told.codes);
                let entry =
                    json!({"endpoint": endpoint, "pads": pads, "accepted": true, "http": status, "answer": "sent"});
                log(world, entry);
                return answers::html(status);
            }
            match code_after.filter(|_| done.code == 200) {
                Some(code) => Answer { tasks: done.tasks, ..coded(code) },
                None => done,
            }
        }
    };
    finish(world, &told, answer, spoiling, connection).await
}

impl Platform {
    /// Counts a call. Returns true if the last second already had `limit` calls.
    fn exceeds(&self, limit: i64) -> bool {
        let mut called = self.called.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while called.front().is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(1)) {
            called.pop_front();
        }
        let exceeds = i64::try_from(called.len()).is_ok_and(|calls| calls >= limit);
        if !exceeds {
            called.push_back(now);
        }
        exceeds
    }
}

fn parse_call<'a>(world: &World, endpoint: &'static Endpoint, path: &'a str, bytes: &[u8]) -> Told<'a> {
    // A body that is not an object is refused later, after the check of the signature.
    let body = Members::read(bytes).unwrap_or_default();
    let codes: Vec<String> = body.codes().into_iter().map(str::to_owned).collect();
    let truth = world.truth();
    let tasks = body.numbers("taskIds").unwrap_or_default().into_iter().filter_map(|id| u64::try_from(id).ok());
    let of_tasks: Vec<Seat> = tasks.filter_map(|id| truth.tasks.get(&id).map(|task| task.seat)).collect();
    let seats = codes.iter().filter_map(|code| truth.find(code)).chain(of_tasks).collect();
    drop(truth);
    Told { endpoint, path, body, codes, seats }
}

fn verify(world: &World, told: &Told<'_>, signed: &Signed<'_>) -> Result<(), Refusal> {
    let seconds = i64::try_from(world.platform_time() / 1_000).unwrap_or_default();
    let asked = Asked { endpoint: told.endpoint.name, seats: &told.seats };
    let mut switches = world.switches();
    let command_body = match switches.take_text(Switch::CommandSignature, asked).as_deref() {
        Some("empty") => CommandBody::Empty,
        Some(_) => CommandBody::Body,
        None => CommandBody::Either,
    };
    // ARMCloud does not support V2.
    let armcloud = !is_vmos(told.path);
    let only = match switches.take_text(Switch::OnlyScheme, asked).as_deref() {
        Some("v2") => Some(Scheme::V2),
        Some(_) => Some(Scheme::V4),
        None if armcloud && signed.headers.contains_key("x-access-key") => Some(Scheme::V4),
        None => None,
    };
    let bad_signature = switches.take_number(Switch::BadSignature, asked).unwrap_or(2019);
    drop(switches);
    let (access_key, secret_key) = (world.access_key.as_str(), world.secret_key.as_str());
    let verifier = Verifier { access_key, secret_key, now: seconds, command_body, only, bad_signature };
    let scheme = verifier.verify(signed)?;
    if scheme == Scheme::Authver && !armcloud {
        return Err(refusal(2032));
    }
    if signed.is_get {
        return Err(Refusal::new(100_012, "the request method is not supported"));
    }
    Members::read(signed.body).map(drop)
}

fn is_vmos(path: &str) -> bool {
    path.starts_with("/vcpcloud/") || path.starts_with("/vsphone/")
}

/// Carries out the request.
async fn act(world: &Arc<World>, told: &Told<'_>) -> Answer {
    let Told { endpoint, path, body, codes, seats: named } = told;
    let is_list = matches!(endpoint.call, Call::Infos | Call::PadDetails | Call::UserPadList);
    let shown = if is_list { world.switches().holders(Switch::MissingRow) } else { named.clone() };
    let is_left_out = |seat: &Seat| {
        let asked = Asked { endpoint: endpoint.name, seats: &[*seat] };
        world.switches().take_flag(Switch::MissingRow, asked)
    };
    let left_out: BTreeSet<Seat> = shown.into_iter().filter(is_left_out).collect();
    let details = match endpoint.call {
        Call::PadDetails => Details::All,
        _ if is_vmos(path) => Details::Few,
        _ => Details::More,
    };
    match endpoint.call {
        Call::Infos | Call::PadDetails => return reads::pages(world, body, details, &left_out),
        Call::UserPadList => return reads::seat_list(world, body, &left_out),
        Call::CodeChanges => return reads::code_changes(world, body),
        Call::TaskDetail => return reads::task_detail(world, body, &left_out),
        Call::ClearToken => return operations::clear_token(world, body),
        _ => {}
    }
    let seats = match find_pads(world, told) {
        Ok(seats) => seats,
        Err(refused) => return refused.into(),
    };
    let operation = Operation { endpoint, body, seats: &seats, left_out: &left_out };
    match (endpoint.call, seats.as_slice()) {
        (Call::PadInfo, [seat]) => reads::pad_info(world, *seat),
        (Call::Token, [seat]) => operations::token(world, *seat),
        (Call::PadInfo | Call::Token, _) => missing("padCode").into(),
        (Call::SyncCommand, seats) if seats.len() > 1 || codes.len() > 1 => missing("padCode").into(),
        (Call::SyncCommand, _) => operations::sync_command(world, operation).await,
        (Call::ModelInfo, seats) => reads::model_info(world, seats),
        (Call::DissolveRoom, seats) => operations::dissolve(world, seats),
        (Call::TimingOn | Call::TimingOff, _) => operations::timing(world, operation),
        (Call::StorageOn | Call::StorageOff, _) => operations::storage(world, operation),
        _ => operations::flat(world, operation),
    }
}

/// Returns the pads that a call names, or its refusal.
fn find_pads(world: &World, told: &Told<'_>) -> Result<Vec<Seat>, Refusal> {
    let Told { endpoint, path: _, body, codes, seats } = told;
    if codes.is_empty() {
        return Err(missing(if matches!(endpoint.call, Call::PadInfo | Call::Token | Call::SyncCommand) {
            "padCode"
        } else {
            "padCodes"
        }));
    }
    if codes.iter().collect::<BTreeSet<_>>().len() < codes.len() {
        return Err(Refusal::new(110_027, "the list has a pad twice"));
    }
    let asked = Asked { endpoint: endpoint.name, seats };
    let mut switches = world.switches();
    let known: Vec<Seat> = seats.iter().copied().filter(|seat| reads::is_known(&switches, *seat)).collect();
    if known.len() == codes.len() {
        return Ok(known);
    }
    let usual = if body.text("padCode").is_some() { 2020 } else { 110_028 };
    match switches.take_text(Switch::UnknownAnswer, asked).as_deref() {
        Some("missing_row") => Ok(known),
        Some(code) => Err(refusal(code.parse().unwrap_or(usual))),
        None => Err(refusal(usual)),
    }
}

/// Records an answer in the journal, and sends it with its faults.
async fn finish(
    world: &World,
    told: &Told<'_>,
    mut answer: Answer,
    mut spoiling: Spoiling,
    connection: &Connection,
) -> Response<Body> {
    if let Some(echo) = &spoiling.echo {
        echo_code(&mut answer.data, echo);
    }
    let (response, length) = to_response(world, told, answer, &mut spoiling);
    wait(spoiling.stall).await;
    if let Some(cut) = spoiling.cut.or(spoiling.half.then_some(Cut::HalfBody(length))) {
        connection.cut(cut);
    }
    response
}

/// Records an answer in the journal, and turns it into HTTP. Returns it with the length of its
/// body.
fn to_response(world: &World, told: &Told<'_>, answer: Answer, spoiling: &mut Spoiling) -> (Response<Body>, usize) {
    let Spoiling { stall: _, cut, half, shape, body_bytes, echo: _, rate_reset } = spoiling;
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
    let trace = world.fresh("trace").chars().take(12).collect();
    let (shape, body_bytes, rate_reset) = (shape.take(), *body_bytes, *rate_reset);
    dress(answer, Dress { ts: world.platform_time(), trace, shape, body_bytes, rate_reset })
}

/// Records an answer that is not an envelope: the call had no effect.
fn without(world: &World, told: &Told<'_>, fate: &str, response: Response<Body>) -> Response<Body> {
    let (endpoint, pads, http) = (told.endpoint.name, &told.codes, response.status().as_u16());
    log(world, json!({"endpoint": endpoint, "pads": pads, "accepted": false, "http": http, "answer": fate}));
    response
}

fn log(world: &World, entry: Value) {
    world.journal.write(now(), "request", entry);
}

/// Replaces the code of the pad everywhere in an answer.
fn echo_code(value: &mut Value, code: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| echo_code(item, code)),
        Value::Object(members) => {
            for (name, member) in members {
                if name == "padCode" {
                    *member = code.into();
                } else {
                    echo_code(member, code);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn wait(milliseconds: u64) {
    if milliseconds > 0 {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}
