//! The ways to make one request: each revision of the protocol, and signed under `/v1`, compared
//! with the first revision.

use crate::folder::Key;
use crate::load::{Pace, Stream, load};
use crate::server::Server;
use crate::wire::{DEVICE, PAGE, REVISIONS, ask, device, in_revision, sign_get};
use crate::{Missed, folder, median};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// The highest ratio of CPU time per request in any way to that of the same request in the first.
const GATE: f64 = 1.3;

const CONNECTIONS: usize = 32;
const ROUNDS: usize = 7;
const SPAN: Duration = Duration::from_millis(300);

/// Makes the bytes of a request.
pub(crate) type Requests<'a> = Box<dyn Fn() -> Vec<u8> + 'a>;

/// A question to a tool: its name, its arguments, and its target under `/v1`.
pub(crate) type Question = (&'static str, Value, String);

/// The questions, each of which is asked in every way.
pub(crate) fn questions() -> [Question; 2] {
    [
        ("get_device", json!({"device_id": device(DEVICE)}), format!("/v1/devices/{}", device(DEVICE))),
        ("list_devices", json!({"limit": PAGE}), format!("/v1/devices?limit={PAGE}")),
    ]
}

/// Returns all ways to ask a question, the first revision first.
pub(crate) fn ways<'a>(key: &'a Key, (tool, arguments, target): &'a Question) -> Vec<(&'static str, Requests<'a>)> {
    let mcp = REVISIONS.into_iter().map(|revision| {
        let request = in_revision(key, revision, tool, arguments);
        (revision, Box::new(move || request.clone()) as Requests<'a>)
    });
    mcp.chain([("signed", Box::new(|| sign_get(key, target)) as Requests<'a>)]).collect()
}

pub(crate) fn run() -> Result<Missed> {
    let home = folder::home()?;
    let (data, key) = folder::one(&home)?;
    let program = Server::program(&data, PAGE)?;
    let mut missed = Missed::new();
    println!("question      way         CPU µs/req  ratio  at most");
    for question in &questions() {
        let name = question.0;
        let ways = ways(&key, question);
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let cost = |(way, requests): &(&str, Requests<'_>)| -> Result<f64> {
                let form = ask(&program, &requests()).with_context(|| format!("{name}, {way}"))?.form()?;
                let stream = Stream { requests, form, connections: CONNECTIONS, pace: Pace::Closed };
                Ok(load(&program, &[stream], SPAN)?.cpu_micros())
            };
            rounds.push(ways.iter().map(cost).collect::<Result<Vec<_>>>()?);
        }
        for (n, (way, _)) in ways.iter().enumerate() {
            let cost = median(rounds.iter().map(|round| round[n]).collect());
            let ratio = median(rounds.iter().map(|round| round[n] / round[0]).collect());
            println!("{name:12}  {way:10}  {cost:10.2}  {ratio:5.2}  {GATE:7}");
            if ratio > GATE {
                missed
                    .push(format!("{name} {way}: {ratio:.2} times the CPU time of the first revision, at most {GATE}"));
            }
        }
    }
    Ok(missed)
}
