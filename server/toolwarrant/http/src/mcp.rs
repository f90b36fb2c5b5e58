//! `/mcp`: the Model Context Protocol over Streamable HTTP, stateless.
//!
//! `envelope` reads the JSON-RPC messages of a request, `metadata` reads the headers and `_meta`
//! that describe them, a [`Session`] runs them, and [`Answers`] writes the answers. This module
//! refuses a request as a whole, or its answer has status 200. Start at [`serve`].

mod answers;
mod envelope;
mod follow;
mod metadata;
mod method;
mod refusal;
mod session;

pub(crate) use answers::{Answers, error};

use super::context::{Context, check_type, empty, explain_body, hold_call, respond};
use super::credentials;
use super::edge::{self, BodyRoom, Peer};
use super::head::RequestHead;
use axum::body::{Body, HttpBody};
use axum::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ALLOW, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use bytes::Bytes;
use envelope::{Body as Posted, Message};
use refusal::HttpRefusal;
use session::Session;
use toolwarrant_base::wording::Words;
use toolwarrant_base::words;
use toolwarrant_core::catalogue::Roles;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_core::reply::Answer;
use toolwarrant_core::revision::{Features, Revision};
use toolwarrant_core::tasks::LongPoll;

pub(super) async fn serve<H: Handlers>(
    context: &Context<H>,
    answers: &Answers,
    (Parts { method, uri, headers, .. }, body): (Parts, impl HttpBody<Data = Bytes> + Unpin),
    peer: Option<&Peer>,
) -> Response<Body> {
    let head = RequestHead::from(&headers);
    let request_id = context.ids.of(head);
    let roles = &H::CATALOGUE.roles;
    let preflight = method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if method != Method::POST && !preflight {
        return not_allowed::<H>(&request_id);
    }
    if let Err(refused) = context.policy.judge(&head, uri.authority().map(|authority| authority.as_str())) {
        let failure = Failure::exactly(roles.origin_not_allowed, refused.words());
        return HttpRefusal::from(failure).respond::<H>(&request_id);
    }
    if preflight {
        return not_allowed::<H>(&request_id);
    }
    match post(context, answers, Posting { headers: &headers, head, body, peer }, &request_id).await {
        Ok(Some(body)) => match hold_call::<H>(body, peer, &request_id) {
            Ok(body) => respond(StatusCode::OK, body, request_id),
            Err(failure) => HttpRefusal::from(failure).respond::<H>(&request_id),
        },
        Ok(None) => empty(StatusCode::ACCEPTED, &request_id),
        Err(refused) => refused.respond::<H>(&request_id),
    }
}

fn not_allowed<H: Handlers>(request_id: &HeaderValue) -> Response<Body> {
    let failure = Failure::plain(H::CATALOGUE.roles.method_not_allowed);
    let mut response = HttpRefusal::from(failure).respond::<H>(request_id);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    response
}

struct Posting<'a, B> {
    headers: &'a HeaderMap,
    head: RequestHead<'a>,
    body: B,
    peer: Option<&'a Peer>,
}

/// Returns `None` if no message needs an answer.
async fn post<H: Handlers>(
    context: &Context<H>,
    answers: &Answers,
    Posting { headers, head, body, peer }: Posting<'_, impl HttpBody<Data = Bytes> + Unpin>,
    request_id: &HeaderValue,
) -> Result<Option<Answer>, HttpRefusal> {
    let roles = &H::CATALOGUE.roles;
    let caller = match context.pipeline.authenticate(credentials::read(head), peer.map(Peer::address)) {
        Ok(caller) => caller,
        Err(failure) => {
            // A process without its store has judged nobody.
            if *failure.def() == *roles.unauthenticated {
                context.strike(peer).await;
            }
            return Err(failure.into());
        }
    };
    let charged = context.pipeline.charge_head(&caller);
    check_type::<H>(head)?;
    let read = edge::read_body(body, peer, BodyRoom::Verified, &context.limits).await;
    let bytes = read.map_err(explain_body::<H>)?;
    // The client decides how long its body takes, so the key may have ended meanwhile.
    let caller = context.pipeline.renew(&caller)?;
    let posted = match sound(&bytes, roles) {
        Ok(posted) => posted,
        Err(refusal) => {
            context.pipeline.unsound();
            // The caller's budget pays for the refusal. Once it is spent, the failure counts
            // against the address.
            if charged.is_none() {
                context.strike(peer).await;
            }
            return Err(refusal);
        }
    };
    let session = |revision, hold| Session {
        context,
        answers,
        caller: &caller,
        charged,
        request_id: request_id.to_str().unwrap_or_default(),
        revision,
        hold,
    };
    match posted {
        Posted::One(message) => {
            let revision = metadata::of_message::<H>(headers, &message)?;
            session(revision, edge::patience(peer)).one(&message).await
        }
        Posted::Batch(messages) => {
            let revision = metadata::revision::<H>(headers)?;
            check_batch(revision, &messages).map_err(|what| HttpRefusal::new(roles.invalid_request, what))?;
            Ok(session(revision, LongPoll::Never).batch(&messages).await)
        }
    }
}

fn sound<'b>(bytes: &'b [u8], roles: &Roles) -> Result<Posted<'b>, HttpRefusal> {
    match envelope::read(bytes) {
        Ok(Posted::One(Message::Invalid { id, what })) => {
            Err(HttpRefusal { failure: Failure::new(roles.invalid_request, what), id: id.unwrap_or("null").to_owned() })
        }
        Ok(posted) => Ok(posted),
        Err(envelope::UnreadableBody::NotJson(what)) => Err(HttpRefusal::new(roles.parse_error, what)),
        Err(envelope::UnreadableBody::NotRpc(what)) => Err(HttpRefusal::new(roles.invalid_request, what)),
    }
}

fn check_batch(revision: Revision, messages: &[Message<'_>]) -> Result<(), Words> {
    let Features { name, batches, .. } = revision.features();
    if !batches {
        let others = Revision::ALL.into_iter().map(Revision::features).filter(|features| features.batches);
        let others: Vec<_> = others.map(|features| features.name.into()).collect();
        return Err(words![
            "revision ",
            name,
            " has no batches; ",
            Words::list(&others, ", "),
            " has: send one message"
        ]);
    }
    if messages.is_empty() {
        return Err("the batch is empty".into());
    }
    match messages.iter().filter_map(Message::request).any(|request| request.method == "initialize") {
        true => Err("`initialize` cannot stand in a batch".into()),
        false => Ok(()),
    }
}
