//! The page of a service: its files, and the requests of those who hold a pass. Start at [`serve`].

use crate::context::{Context, check_type, empty, explain_body, hold_answer, refuse, respond, say_what_is_taken};
use crate::edge::{self, BodyError, BodyRoom, Peer};
use crate::head::RequestHead;
use crate::site;
use axum::body::{Body, HttpBody};
use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use bytes::Bytes;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use toolwarrant_base::survive;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::page::{PageAnswer, PageError, PageFile, PageRequest, WebPage};
use toolwarrant_core::passes::Passes;
use toolwarrant_core::pipeline::{Handlers, Visit};

const INPUT_MAX: usize = 4 * 1024;

/// A page, and the passes that open it.
#[derive(Clone)]
pub struct OfferedPage {
    pub page: Arc<dyn WebPage>,
    pub passes: Passes,
}

impl OfferedPage {
    /// Returns the name below the path of the page.
    pub(crate) fn name<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.page.path())?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/').filter(|name| !name.is_empty()) }
    }
}

pub(crate) async fn serve<H: Handlers>(
    context: &Context<H>,
    OfferedPage { page, passes }: &OfferedPage,
    (Parts { method, uri, headers, .. }, body): (Parts, impl HttpBody<Data = Bytes> + Unpin),
    name: &str,
    peer: Option<&Peer>,
) -> Response<Body> {
    let head = RequestHead::from(&headers);
    let request_id = context.ids.of(head);
    let roles = &H::CATALOGUE.roles;
    let file = page.files().iter().find(|file| file.name == name);
    let answer = async {
        let allowed = context.policy.judge(&head, uri.authority().map(|authority| authority.as_str()));
        allowed.map_err(|refused| Failure::exactly(roles.origin_not_allowed, refused.words()))?;
        let is_input = match (&method, file) {
            (&Method::GET, Some(PageFile { name: _, content_type, text })) => {
                let body = Bytes::from_static(text.as_bytes());
                return Ok(PageAnswer::Content { content_type, number: None, body });
            }
            (&Method::GET, None) => false,
            (&Method::POST, None) => true,
            _ => return Err(Failure::exactly(roles.method_not_allowed, "this takes the methods of the header Allow")),
        };
        let token = head.authorization.at_most_once().flatten().and_then(|value| value.to_str().ok());
        let token = token.and_then(|text| text.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let visit = context.pipeline.visit(passes, token, peer.map(Peer::address), is_input);
        let visit = match visit {
            Err(failure) if *failure.def() == *roles.unauthenticated => {
                context.strike(peer).await;
                return Err(failure);
            }
            visit => visit?,
        };
        let input = if is_input { Some(read_input(context, head, body, peer, &visit).await?) } else { None };
        let request = match &input {
            Some(body) => PageRequest::Input { name, body },
            None => PageRequest::Read { name, query: uri.query().unwrap_or_default() },
        };
        let mut answer = hold(&**page, &visit, request, peer).await?;
        if let PageAnswer::Content { body, .. } = &mut answer {
            *body = hold_answer::<H>(mem::take(body), peer)?;
        }
        Ok(answer)
    };
    let answer = answer.await;
    let mut response = match answer {
        Ok(PageAnswer::Nothing) => empty(StatusCode::NO_CONTENT, &request_id),
        Ok(PageAnswer::Content { content_type, number, body }) => {
            let mut response = respond(StatusCode::OK, body, request_id);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            if let (Some(number), Ok(name)) = (number, HeaderName::try_from(format!("x-{name}"))) {
                response.headers_mut().insert(name, number.into());
            }
            response
        }
        Err(failure) => {
            let mut response = refuse(&failure, &request_id);
            say_what_is_taken::<H>(&mut response, "Bearer");
            if response.status() == StatusCode::METHOD_NOT_ALLOWED {
                let allowed = if file.is_some() { "GET" } else { "GET, POST" };
                response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            }
            response
        }
    };
    site::protect(response.headers_mut(), &site::OF_SERVICE);
    response
}

async fn read_input<H: Handlers>(
    context: &Context<H>,
    head: RequestHead<'_>,
    body: impl HttpBody<Data = Bytes> + Unpin,
    peer: Option<&Peer>,
    visit: &Visit<'_>,
) -> Result<Bytes, Failure> {
    check_type::<H>(head)?;
    let limits = edge::Limits { body_bytes: INPUT_MAX, ..context.limits };
    let read = edge::read_body(body, peer, BodyRoom::Verified, &limits).await;
    let body = read.map_err(|error| match error {
        BodyError::TooLarge => visit.fail(PageError::Malformed("an input has at most 4 KiB".into())),
        error => explain_body::<H>(error),
    })?;
    // The client decides how long its body takes.
    visit.check()?;
    Ok(body)
}

/// Answers with the end of the right if that comes first, and with nothing if the client leaves.
async fn hold(
    page: &dyn WebPage,
    visit: &Visit<'_>,
    request: PageRequest<'_>,
    peer: Option<&Peer>,
) -> Result<PageAnswer, Failure> {
    let mut answering = pin!(survive(page.answer(visit.pass(), request)));
    let answer = tokio::select! {
        biased;
        failure = visit.wait_for_end() => return Err(failure),
        answer = &mut answering => answer,
        () = edge::patience(peer).wait_for_hangup() => return Ok(PageAnswer::Nothing),
    };
    let failed = |error| visit.fail(error);
    let answer = answer.unwrap_or_else(|| Err(PageError::Unavailable("the page failed".into()))).map_err(failed)?;
    visit.check()?;
    Ok(answer)
}
