//! `/v1`: the same tools over signed HTTP, at the routes that the contract gives them.
//!
//! A request is authenticated before it is routed, so that a client without a valid signature
//! cannot find out which paths exist. It then takes the path of a call on `/mcp`; only its status
//! and headers are specific to HTTP. Start at [`serve`].

mod arguments;
mod routes;

use super::context::{Context, check_type, empty, explain_body, hold_call, refuse, respond, say_what_is_taken};
use super::edge::{self, BodyError, BodyRoom, Peer};
use axum::body::{Body, HttpBody};
use axum::http::header::{ALLOW, AUTHORIZATION, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, LOCATION, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use bytes::Bytes;
pub(super) use routes::Routes;
use routes::{DOCUMENT, Matched};
use toolwarrant_base::wording::{Echo, Words};
use toolwarrant_base::words;
use toolwarrant_core::access::Caller;
use toolwarrant_core::catalogue::ContractDef;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::ToolCall;
use toolwarrant_core::pipeline::{Charge, Handlers, SignedRequest};
use toolwarrant_core::reply::Frame;
use toolwarrant_signing::{self as signing, IDEMPOTENCY_KEY, KEY, NONCE, SCHEME, SIGNATURE, Signature, TIMESTAMP};

/// A secret that signs is never sent, so this header is refused.
const SECRET: &str = "x-api-secret";

pub(super) fn owns(path: &str) -> bool {
    path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) async fn serve<H: Handlers>(
    context: &Context<H>,
    routes: &Routes,
    (head, body): (Parts, impl HttpBody<Data = Bytes> + Unpin),
    peer: Option<&Peer>,
) -> Response<Body> {
    let request_id = context.ids.of(&head.headers);
    let is_public = head.method == Method::GET && !head.headers.contains_key(AUTHORIZATION);
    match head.uri.path() {
        DOCUMENT if is_public => return respond(StatusCode::OK, routes.document.clone(), &request_id),
        path if is_public && path == routes.contract.path => {
            return show_contract(routes.contract, &head.headers, &request_id);
        }
        _ => {}
    }
    let received = Received { head: &head, peer, request_id: request_id.to_str().unwrap_or_default() };
    match answer(context, routes, received, body).await {
        Ok(Success { status, body, location }) => {
            let mut response = respond(status, body, &request_id);
            if let Some(location) = location.and_then(|location| HeaderValue::try_from(location).ok()) {
                response.headers_mut().insert(LOCATION, location);
            }
            response
        }
        Err(SignedRefusal { failure, allowed }) => {
            let mut response = refuse(&failure, &request_id);
            say_what_is_taken::<H>(&mut response, SCHEME);
            let headers = response.headers_mut();
            if let Some(seconds) = failure.retry_after_seconds() {
                headers.insert(RETRY_AFTER, seconds.into());
            }
            if let Some(allowed) = allowed.and_then(|methods| HeaderValue::try_from(methods).ok()) {
                headers.insert(ALLOW, allowed);
            }
            response
        }
    }
}

fn show_contract(contract: ContractDef, asked: &HeaderMap, request_id: &HeaderValue) -> Response<Body> {
    let tags = asked.get_all(IF_NONE_MATCH).iter().filter_map(|tags| tags.to_str().ok());
    let mut tags = tags.flat_map(|tags| tags.split(',')).map(str::trim);
    // RFC 9110 compares weakly here.
    let mut response = match tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == contract.etag) {
        true => empty(StatusCode::NOT_MODIFIED, request_id),
        false => respond(StatusCode::OK, Bytes::from_static(contract.document.as_bytes()), request_id),
    };
    response.headers_mut().insert(ETAG, HeaderValue::from_static(contract.etag));
    response
}

#[derive(Clone, Copy)]
struct Received<'a> {
    head: &'a Parts,
    peer: Option<&'a Peer>,
    request_id: &'a str,
}

struct Success {
    status: StatusCode,
    body: Bytes,
    location: Option<String>,
}

/// Has the methods that the path takes, if another one was used.
struct SignedRefusal {
    failure: Failure,
    allowed: Option<String>,
}

impl From<Failure> for SignedRefusal {
    fn from(failure: Failure) -> Self {
        Self { failure, allowed: None }
    }
}

/// Stores the nonce on the disk before the answer, unless the request is a read.
async fn answer<H: Handlers>(
    context: &Context<H>,
    routes: &Routes,
    received: Received<'_>,
    body: impl HttpBody<Data = Bytes> + Unpin,
) -> Result<Success, SignedRefusal> {
    let Received { head, peer: _, request_id: _ } = received;
    let matched = routes.find(head.method.as_str(), head.uri.path());
    let reads = match &matched {
        Matched::Route(route, _) => route.tool.hints.read_only,
        Matched::OtherMethod(_) | Matched::Nothing => matches!(head.method, Method::GET | Method::HEAD),
    };
    let (caller, sent) = authenticate(context, received, body, reads).await?;
    let outcome = carry_out(context, routes, received, &sent, &caller, matched).await;
    let is_unauthenticated = |failure: &Failure| *failure.def() == *H::CATALOGUE.roles.unauthenticated;
    if let Err(failure) = context.pipeline.keep_nonce(&caller).await {
        if !is_unauthenticated(&failure) {
            return Err(failure.into());
        }
        context.strike(received.peer).await;
        return Err(failure.with("canonical_request", sent.canonical).into());
    }
    outcome.map_err(|refusal| match is_unauthenticated(&refusal.failure) {
        true => failure_of_ended_key::<H>(sent.canonical).into(),
        false => refusal,
    })
}

fn failure_of_ended_key<H: Handlers>(canonical: String) -> Failure {
    let what = "the secret that signed this has ended meanwhile: sign with a live one.";
    Failure::exactly(H::CATALOGUE.roles.unauthenticated, what).with("canonical_request", canonical)
}

struct SignedBody<'a> {
    idempotency_key: &'a str,
    body: Bytes,
    canonical: String,
    charge: Charge,
}

async fn authenticate<'a, H: Handlers>(
    context: &Context<H>,
    Received { head, peer, request_id: _ }: Received<'a>,
    body: impl HttpBody<Data = Bytes> + Unpin,
    reads: bool,
) -> Result<(Caller, SignedBody<'a>), Failure> {
    let refused = |what: Words, canonical: Option<&str>| {
        context.pipeline.refuse_signature(what).with("canonical_request", canonical)
    };
    let signed = match SignedHeaders::read(&head.headers) {
        Ok(signed) => signed,
        Err(what) => {
            context.strike(peer).await;
            return Err(refused(what, None));
        }
    };
    let SignedHeaders { key_id, timestamp, nonce, idempotency_key, signature } = signed;
    let roles = &H::CATALOGUE.roles;
    let read = edge::read_body(body, peer, BodyRoom::Unverified, &context.limits).await;
    let body = read.map_err(|error| match error {
        BodyError::Broken => refused("the body ended early.".into(), None),
        error => explain_body::<H>(error),
    })?;
    let canonical = signing::Request {
        key_id,
        timestamp: timestamp.1,
        nonce,
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        idempotency_key,
        body: &body,
    };
    let canonical = canonical.canonical();
    let (timestamp, from) = (timestamp.0, peer.map(Peer::address));
    let shown = SignedRequest { key_id, timestamp, nonce, canonical: &canonical, signature: &signature, from };
    match context.pipeline.verify(&shown, reads) {
        Ok((caller, charge)) => Ok((caller, SignedBody { idempotency_key, body, canonical, charge })),
        Err(failure) if *failure.def() == *roles.unauthenticated => {
            context.strike(peer).await;
            Err(failure.with("canonical_request", canonical))
        }
        Err(failure) => Err(failure),
    }
}

async fn carry_out<H: Handlers>(
    context: &Context<H>,
    routes: &Routes,
    Received { head, peer, request_id }: Received<'_>,
    SignedBody { idempotency_key, body, canonical: _, charge }: &SignedBody<'_>,
    caller: &Caller,
    matched: Matched<'_>,
) -> Result<Success, SignedRefusal> {
    let (pipeline, roles) = (&context.pipeline, &H::CATALOGUE.roles);
    let admitted = pipeline.admit(caller, *charge, 1).inspect_err(|failure| {
        if let Matched::Route(route, _) = &matched {
            pipeline.record_refusal(caller, route.tool.name, request_id, failure);
        }
    })?;
    let (route, values) = match matched {
        Matched::Route(route, values) => (route, values),
        Matched::OtherMethod(methods) => {
            let what = words!["this path does not take ", Echo::of(head.method.as_str()), ": see the header Allow."];
            let failure = Failure::exactly(roles.method_not_allowed, what);
            return Err(SignedRefusal { failure, allowed: Some(methods.join(", ")) });
        }
        Matched::Nothing => {
            let what = "nothing is served at this path: /v1/openapi.json has those that are.";
            return Err(Failure::exactly(roles.no_route, what).into());
        }
    };
    if !body.is_empty() && route.takes_body() {
        check_type::<H>(&head.headers)?;
    }
    let tool = route.tool;
    let arguments = arguments::read(route, &values, head.uri.query(), body, idempotency_key);
    let arguments = arguments.map_err(|what| pipeline.reject(&admitted, tool, request_id, what))?;
    if !tool.hints.read_only && tool.task.is_none() {
        pipeline.keep_nonce(caller).await?;
    }
    let (hold, frame) = (edge::patience(peer), Frame::Plain);
    let asked = ToolCall { tool: tool.name, arguments: &arguments, request_id, hold, frame };
    let answer = pipeline.call(&admitted, asked).await?;
    let new = answer.task().filter(|task| task.is_new);
    let location = new.and_then(|task| routes.of_task(&task.id));
    let status = match (tool.hints.read_only || tool.acts, tool.task.is_some(), new) {
        (true, _, _) | (false, true, None) => StatusCode::OK,
        (false, true, Some(_)) => StatusCode::ACCEPTED,
        (false, false, _) => StatusCode::CREATED,
    };
    Ok(Success { status, body: hold_call::<H>(answer, peer, request_id)?, location })
}

struct SignedHeaders<'a> {
    key_id: &'a str,
    /// Also as the client sent it.
    timestamp: (u64, &'a str),
    nonce: &'a str,
    /// Empty if the client sent none.
    idempotency_key: &'a str,
    signature: Signature,
}

impl<'a> SignedHeaders<'a> {
    fn read(headers: &'a HeaderMap) -> Result<Self, Words> {
        if headers.contains_key(AUTHORIZATION) || headers.contains_key(SECRET) {
            let what =
                "requests under /v1 are signed and carry neither Authorization nor X-Api-Secret: those belong to /mcp.";
            return Err(what.into());
        }
        let [key_id, timestamp, nonce, signature] =
            [(KEY, "X-Api-Key"), (TIMESTAMP, "X-Timestamp"), (NONCE, "X-Nonce"), (SIGNATURE, "X-Signature")]
                .map(|(name, shown)| one(headers, name, shown).and_then(|value| value.ok_or_else(|| missing(shown))));
        let (key_id, timestamp, nonce, signature) = (key_id?, timestamp?, nonce?, signature?);
        Ok(Self {
            key_id,
            timestamp: signing::read_timestamp(timestamp)
                .map(|seconds| (seconds, timestamp))
                .ok_or("X-Timestamp is not a time in Unix seconds, of 10 digits.")?,
            nonce: Some(nonce)
                .filter(|nonce| signing::is_nonce(nonce))
                .ok_or("X-Nonce is not 16 to 64 characters of A-Z, a-z, 0-9, _ and -.")?,
            idempotency_key: one(headers, IDEMPOTENCY_KEY, "Idempotency-Key")?.unwrap_or_default(),
            signature: signing::read_header(signature)
                .ok_or("X-Signature is not 64 digits of 0-9 and a-f, as HMAC-SHA256 has.")?,
        })
    }
}

fn missing(shown: &'static str) -> Words {
    words![
        "requests under /v1 are signed, and ",
        shown,
        " is missing: send X-Api-Key, X-Timestamp, X-Nonce and X-Signature. Key and secret as they are belong to /mcp."
    ]
}

fn one<'a>(headers: &'a HeaderMap, name: &'static str, shown: &'static str) -> Result<Option<&'a str>, Words> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(words![shown, " is sent twice."]);
    }
    first.map(|value| value.to_str().map_err(|_| words![shown, " is not visible ASCII."])).transpose()
}
