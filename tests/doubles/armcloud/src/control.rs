//! The control interface of the double, under `/double` on a port of its own: switches, state and
//! journal. It needs no signature, and is bound to loopback.

use crate::acts;
use crate::adb;
use crate::display::ScreenTold;
use crate::requests::Members;
use crate::shell;
use crate::switches::Set;
use crate::truth::Seat;
use crate::world::{World, now};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) world: Arc<World>,
    pub(crate) closed: watch::Sender<bool>,
    pub(crate) is_open: watch::Receiver<bool>,
}

type Answered = Result<String, Refused>;

struct Refused(StatusCode, String);

pub(crate) fn router(control: Control) -> Router {
    Router::new()
        .route("/double/switches", put(set_all))
        .route("/double/rest", get(rest))
        .route("/double/pads/{code}/switches", put(set_pad))
        .route("/double/pads/{code}/replace", post(replace))
        .route("/double/pads/{code}/act/{action}", post(act))
        .route("/double/pads/{code}/screen/{operation}", post(screen))
        .route("/double/state", get(state))
        .route("/double/journal", get(journal))
        .with_state(control)
}

async fn set_all(State(control): State<Control>, body: Bytes) -> Answered {
    set(&control, None, &body).await
}

async fn set_pad(State(control): State<Control>, Path(code): Path<String>, body: Bytes) -> Answered {
    set(&control, Some(seat(&control, &code)?), &body).await
}

/// Answers once no script runs on a pad.
async fn rest(State(control): State<Control>) -> Answered {
    control.world.rest().await;
    Ok(Value::Null.to_string())
}

async fn replace(State(control): State<Control>, Path(code): Path<String>) -> Answered {
    let seat = seat(&control, &code)?;
    let (old, new) = control.world.truth().replace(seat, now());
    control.world.did(json!({"operation": "replace", "pad": old, "new": new}));
    Ok(json!({"old": old, "new": new}).to_string())
}

async fn act(State(control): State<Control>, Path((serial, action)): Path<(String, String)>, body: Bytes) -> Answered {
    let seat = seat(&control, adb::code(&serial))?;
    let input = Members::read(&body).map_err(|refused| wrong(&refused.msg))?;
    let ended = match action.as_str() {
        "reboot" => Some(acts::reboot(&control.world, seat).await),
        action => acts::carry_out(&control.world, seat, action, &input).await,
    };
    let ended = ended.ok_or_else(|| wrong("there is no such act, or its input lacks something"))?;
    Ok(json!(ended).to_string())
}

/// Serves only the tools of phones, with their arguments.
async fn screen(
    State(control): State<Control>,
    Path((code, operation)): Path<(String, String)>,
    body: Bytes,
) -> Answered {
    let arguments: Vec<String> = serde_json::from_slice(&body).map_err(|error| wrong(&error.to_string()))?;
    let (seat, now) = (seat(&control, &code)?, now());
    let (moves, late, list, sides) = {
        let switches = control.world.switches();
        let moves = switches.look(seat, |set| &set.screen_moves_ms);
        let late = switches.look(seat, |set| &set.screen_late_ms).unwrap_or_default();
        (moves, late, switches.look(seat, |set| &set.screen_list), shell::sides(&switches, seat))
    };
    let mut told = {
        let mut truth = control.world.truth();
        let pad = truth.pad_mut(seat);
        let words: Vec<_> = [operation.as_str()].into_iter().chain(arguments.iter().map(String::as_str)).collect();
        let is_done = pad.scene.take(&words, sides, (now, late));
        let count = pad.screen_acts.entry(operation.clone()).or_default();
        *count += 1;
        let shown = pad.scene.show(now, moves);
        let list = list.unwrap_or_else(|| shown.list(sides));
        ScreenTold { count: *count, is_done, is_moving: moves.is_some(), shown, list }
    };
    let shows = serde_json::to_value(&told.shown).unwrap_or_default();
    control.world.did(json!({"operation": operation, "pad": code, "arguments": arguments, "shows": shows}));
    if operation != "uiautomator" {
        told.list.clear();
    }
    serde_json::to_string(&told).map_err(|error| wrong(&error.to_string()))
}

async fn state(State(control): State<Control>) -> Answered {
    let truth = control.world.truth();
    let pads: Vec<Value> = truth.pads.iter().map(|pad| truth.show(pad.seat)).collect();
    Ok(json!({"pads": pads}).to_string())
}

async fn journal(State(control): State<Control>) -> Answered {
    Ok(control.world.journal.show().to_string())
}

async fn set(control: &Control, seat: Option<Seat>, body: &[u8]) -> Answered {
    let set: Set = serde_json::from_slice(body).map_err(|error| wrong(&error.to_string()))?;
    control.world.switches().set(seat, set);
    let closed = control.world.switches().all.refuse_connections.value == Some(true);
    control.closed.send_replace(closed);
    let mut is_open = control.is_open.clone();
    // An error means that the program is ending.
    let _ = is_open.wait_for(|is_open| *is_open != closed).await;
    Ok(String::new())
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

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(status, why) = self;
        (status, why).into_response()
    }
}
