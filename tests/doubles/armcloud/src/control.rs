//! The control interface of the double, under `/double` on a port of its own: switches, state and
//! journal. It needs no signature, and is bound to loopback.

use crate::acts;
use crate::adb;
use crate::endpoints;
use crate::requests::Members;
use crate::switches::{self, Switch, TABLE};
use crate::traffic::{self, Journey};
use crate::truth::Seat;
use crate::world::{World, now};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode, header};
use axum::routing::{get, post};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) world: Arc<World>,
    pub(crate) closed: watch::Sender<bool>,
    pub(crate) is_open: watch::Receiver<bool>,
}

type Answered = Result<Value, Refused>;

struct Refused(StatusCode, String);

pub(crate) fn router(control: Control) -> Router {
    Router::new()
        .route("/double/switches", get(list_known).put(set_all))
        .route("/double/rest", get(rest))
        .route("/double/pads/{code}", get(one))
        .route("/double/pads/{code}/switches", get(of_pad).put(set_pad))
        .route("/double/pads/{code}/replace", post(replace))
        .route("/double/pads/{code}/act/{action}", post(act))
        .route("/double/pads/{code}/screen/{operation}", post(screen))
        .route("/double/state", get(state))
        .route("/double/journal", get(journal))
        .route("/double/route", post(route))
        .with_state(control)
}

async fn list_known(State(control): State<Control>) -> Response<String> {
    let rows = TABLE.iter().map(|row| {
        json!({"name": row.name, "when": format!("{:?}", row.when).to_lowercase(), "value": row.value.describe(), "doc": row.doc})
    });
    respond(Ok(json!({"set": control.world.switches().show(None), "known": rows.collect::<Vec<_>>()})))
}

async fn set_all(State(control): State<Control>, body: Bytes) -> Response<String> {
    respond(set(&control, None, &body).await)
}

async fn set_pad(State(control): State<Control>, Path(code): Path<String>, body: Bytes) -> Response<String> {
    let seat = match seat(&control, &code) {
        Ok(seat) => seat,
        Err(refused) => return respond(Err(refused)),
    };
    respond(set(&control, Some(seat), &body).await)
}

async fn of_pad(State(control): State<Control>, Path(code): Path<String>) -> Response<String> {
    respond(seat(&control, &code).map(|seat| control.world.switches().show(Some(seat))))
}

/// Answers once no script runs on a pad, or after a moment: a script may wait for its network.
async fn rest(State(control): State<Control>) -> Response<String> {
    const MOMENT: Duration = Duration::from_millis(200);
    let is_at_rest = timeout(MOMENT, control.world.rest()).await.is_ok();
    respond(Ok(json!({"is_at_rest": is_at_rest})))
}

async fn one(State(control): State<Control>, Path(code): Path<String>) -> Response<String> {
    respond(seat(&control, &code).map(|seat| control.world.truth().show(seat)))
}

async fn replace(State(control): State<Control>, Path(code): Path<String>) -> Response<String> {
    let replaced = seat(&control, &code).map(|seat| {
        let (old, new) = control.world.truth().replace(seat, now());
        control.world.did(json!({"operation": "replace", "pad": old, "new": new}));
        json!({"old": old, "new": new})
    });
    respond(replaced)
}

async fn act(
    State(control): State<Control>,
    Path((serial, action)): Path<(String, String)>,
    body: Bytes,
) -> Response<String> {
    let ended = async {
        let seat = seat(&control, adb::code(&serial))?;
        let input = Members::read(&body).map_err(|refused| wrong(&refused.msg))?;
        let ended = match action.as_str() {
            "reboot" => Some(acts::reboot(&control.world, seat).await),
            action => acts::carry_out(&control.world, seat, action, &input).await,
        };
        ended.map(|ended| json!(ended)).ok_or_else(|| wrong("there is no such act, or its input lacks something"))
    };
    respond(ended.await)
}

/// Serves only the tools of phones, with their arguments. Returns the count of such acts.
async fn screen(
    State(control): State<Control>,
    Path((code, operation)): Path<(String, String)>,
    body: Bytes,
) -> Response<String> {
    let Ok(arguments) = serde_json::from_slice::<Vec<String>>(&body) else {
        return respond(Err(wrong("this is for the tools of phones")));
    };
    respond(seat(&control, &code).map(|seat| {
        control.world.did(json!({"operation": operation, "pad": code, "arguments": arguments}));
        let mut truth = control.world.truth();
        let count = truth.pad_mut(seat).screen_acts.entry(operation).or_default();
        *count += 1;
        json!(*count)
    }))
}

async fn state(State(control): State<Control>) -> Response<String> {
    let truth = control.world.truth();
    let pads: Vec<Value> = truth.pads.iter().map(|pad| truth.show(pad.seat)).collect();
    let running = truth.tasks.values().filter(|task| matches!(task.status, 1 | 2 | 9)).count();
    respond(Ok(json!({"pads": pads, "tasks": truth.tasks.len(), "tasks_running": running})))
}

async fn journal(State(control): State<Control>, RawQuery(query): RawQuery) -> Response<String> {
    let query = query.unwrap_or_default();
    let after = match query.strip_prefix("after=").map(str::parse) {
        None if query.is_empty() => 0,
        Some(Ok(after)) => after,
        _ => {
            return respond(Err(wrong(
                "the query must be after=N, where N is the number of the last line that was read",
            )));
        }
    };
    respond(Ok(control.world.journal.after(after)))
}

/// Serves only the tools of phones.
async fn route(State(control): State<Control>, body: Bytes) -> Response<String> {
    let Ok(journey) = serde_json::from_slice::<Journey>(&body) else {
        return respond(Err(wrong("this is for the tools of phones")));
    };
    let way = traffic::way(&control.world, &journey).and_then(|way| serde_json::to_value(way).ok());
    respond(way.ok_or_else(|| unknown(&journey.pad)))
}

async fn set(control: &Control, seat: Option<Seat>, body: &[u8]) -> Answered {
    let written: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| wrong(&format!("the body must be a JSON object: {error}")))?;
    let set = switches::parse(&written, seat.is_none(), &endpoints::names()).map_err(|why| wrong(&why))?;
    control.world.switches().set(seat, set);
    let closed = control.world.switches().global(Switch::RefuseConnections).is_some();
    control.closed.send_replace(closed);
    let mut is_open = control.is_open.clone();
    // An error means that the program is ending.
    let _ = is_open.wait_for(|is_open| *is_open != closed).await;
    Ok(control.world.switches().show(seat))
}

fn seat(control: &Control, code: &str) -> Result<Seat, Refused> {
    control.world.truth().ever(code).ok_or_else(|| unknown(code))
}

fn unknown(code: &str) -> Refused {
    Refused(StatusCode::NOT_FOUND, format!("no pad has or had the code `{code}`; /double/state lists them"))
}

fn wrong(why: &str) -> Refused {
    Refused(StatusCode::BAD_REQUEST, why.to_owned())
}

fn respond(answered: Answered) -> Response<String> {
    let (status, body) = match answered {
        Ok(body) => (StatusCode::OK, body),
        Err(Refused(status, why)) => (status, json!({"error": why})),
    };
    let mut response = Response::new(format!("{body}\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
