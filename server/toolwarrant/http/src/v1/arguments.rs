//! Reads the arguments of a call from path, query and body. GET and DELETE take theirs from the
//! query, the other methods from a JSON object. As on `/mcp`, the tool checks which arguments it
//! takes and how often.

use super::routes::Route;
use crate::context::{reason, without_mark};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use toolwarrant_base::wording::{Echo, Words};
use toolwarrant_base::{json, words};
use toolwarrant_core::args;

/// Its twin is the header `Idempotency-Key`.
const IDEMPOTENCY_KEY: &str = "idempotency_key";

type Member<'a> = (Cow<'a, str>, Cow<'a, str>);

pub(super) fn read(
    route: &Route,
    path: &[(&'static str, &str)],
    query: Option<&str>,
    body: &[u8],
    idempotency_key: &str,
) -> Result<Box<RawValue>, Words> {
    let mut members: Vec<Member<'_>> = Vec::with_capacity(8);
    for (name, value) in path {
        let value =
            percent_decode(value).ok_or_else(|| words!["`", *name, "` in the path is not percent-encoded UTF-8"])?;
        members.push(((*name).into(), route.json(name, value).into()));
    }
    let query = query.unwrap_or_default();
    if route.takes_body() {
        if !query.is_empty() {
            return Err("arguments stand in the body here, and none in the query".into());
        }
        members.extend(of_body(body)?);
    } else {
        if !body.is_empty() {
            return Err("arguments stand in the query here, and there is no body".into());
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (percent_decode(name), percent_decode(value)) else {
                return Err(words!["`", Echo::of(pair), "` in the query is not percent-encoded UTF-8"]);
            };
            let json = route.json(&name, value);
            members.push((name, json.into()));
        }
    }
    if !idempotency_key.is_empty() {
        add_key(route, &mut members, idempotency_key)?;
    }
    let mut object = String::with_capacity(128);
    for (name, json) in &members {
        let name = Value::from(&**name).to_string();
        object.extend([if object.is_empty() { "{" } else { "," }, &name, ":", json]);
    }
    object.push_str(if object.is_empty() { "{}" } else { "}" });
    RawValue::from_string(object).map_err(|_| "the arguments are not JSON".into())
}

/// Adds the key of the header, unless the arguments contain the same key.
fn add_key(route: &Route, members: &mut Vec<Member<'_>>, key: &str) -> Result<(), Words> {
    if !route.takes(IDEMPOTENCY_KEY) {
        return Err(words!["`", route.tool.name, "` takes no Idempotency-Key"]);
    }
    let json = Value::from(key).to_string();
    members.retain(|(name, value)| name != IDEMPOTENCY_KEY || (**value != *"null" && **value != *"\"\""));
    let mut given = members.iter().filter(|(name, _)| name == IDEMPOTENCY_KEY);
    match given.next() {
        None => {
            members.push((IDEMPOTENCY_KEY.into(), json.into()));
            Ok(())
        }
        Some((_, value)) if args::read_text(value).as_deref() == Some(key) => Ok(()),
        Some(_) => Err("`idempotency_key` differs from the header Idempotency-Key: send one of them".into()),
    }
}

fn of_body(body: &[u8]) -> Result<Vec<Member<'_>>, Words> {
    let text = str::from_utf8(body).map_err(|error| words!["the body is not UTF-8 at byte ", error.valid_up_to()])?;
    let text = without_mark(text).trim_matches([' ', '\t', '\r', '\n']);
    if matches!(text, "" | "null") {
        return Ok(Vec::new());
    }
    let not_json = |error: serde_json::Error| {
        words!["the body is not JSON: ", reason(&error), " at line ", error.line(), " column ", error.column()]
    };
    let raw: &RawValue = json::read(text).map_err(not_json)?;
    let Some(members) = json::members(raw.get()) else {
        return Err(words!["the body is ", Echo::of(raw.get()), ", not an object"]);
    };
    Ok(members.into_iter().map(|(name, value)| (name, value.get().into())).collect())
}

/// Decodes `%XX`. A plus sign stays a plus sign.
fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    let sound = |rest: &str| rest.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    text.split('%').skip(1).all(sound).then(|| percent_decode_str(text).decode_utf8().ok()).flatten()
}
