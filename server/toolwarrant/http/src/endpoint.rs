//! The endpoint: passes each request to its transport.

use crate::context::{Context, ServerProcess, body_of, empty, refuse, respond};
use crate::edge::{self, AuthThrottle, HostOriginPolicy, Limits, Peer, Responder};
use crate::ids::RequestIds;
use crate::page::{self, OfferedPage};
use crate::{mcp, v1};
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use hyper::body::Incoming;
use std::borrow::Cow;
use std::sync::Arc;
use toolwarrant_base::BoxFuture;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::{Handlers, Pipeline};

pub struct Endpoint<H> {
    context: Context<H>,
    routes: v1::Routes,
    answers: mcp::Answers,
    page: Option<OfferedPage>,
}

impl<H: Handlers> Endpoint<H> {
    pub fn new(
        pipeline: impl Into<Arc<Pipeline<H>>>,
        policy: HostOriginPolicy,
        limits: Limits,
        process: ServerProcess<'_>,
    ) -> Self {
        let pipeline = pipeline.into();
        let (throttle, ids) = (AuthThrottle::default(), RequestIds::of_process(process.id));
        Self {
            context: Context { pipeline, policy, limits, throttle, ids },
            routes: v1::Routes::new(H::CATALOGUE, process),
            answers: mcp::Answers::of(H::CATALOGUE, process),
            page: None,
        }
    }

    /// Serves a page as well.
    #[must_use]
    pub fn with_page(self, page: Option<OfferedPage>) -> Self {
        Self { page, ..self }
    }

    /// Returns a router for callers without a connection.
    pub fn router(self: Arc<Self>) -> Router {
        let answer =
            async |State(endpoint): State<Arc<Self>>, request: Request<Body>| endpoint.answer(request, None).await;
        Router::new().fallback(answer).with_state(self)
    }

    /// Lets pages of an allowed origin read every answer.
    async fn answer(
        &self,
        request: Request<impl HttpBody<Data = Bytes> + Unpin>,
        peer: Option<Cow<'_, Peer>>,
    ) -> Response<Body> {
        let (head, mut body) = request.into_parts();
        let origin = head.headers.get(ORIGIN).and_then(|_| {
            let authority = head.uri.authority().map(|authority| authority.as_str());
            self.context.policy.check(&head.headers, authority).ok().flatten()
        });
        if let Some(origin) = &origin
            && head.method == Method::OPTIONS
            && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            let mut response = empty(StatusCode::NO_CONTENT, &self.context.ids.of(&head.headers));
            edge::answer_preflight(response.headers_mut(), origin.clone());
            return response;
        }
        let mut response = self.route(head, &mut body, peer.as_deref()).await;
        if let Some(origin) = origin {
            edge::allow_origin(response.headers_mut(), origin);
        }
        edge::skip_rest(body, peer.as_deref()).await;
        response
    }

    async fn route(
        &self,
        head: Parts,
        body: impl HttpBody<Data = Bytes> + Unpin,
        peer: Option<&Peer>,
    ) -> Response<Body> {
        match head.uri.path() {
            "/mcp" | "/mcp/" => mcp::serve(&self.context, &self.answers, (head, body), peer).await,
            path if v1::owns(path) => v1::serve(&self.context, &self.routes, (head, body), peer).await,
            // Clients without credentials try to register with an OAuth server here, and show the
            // answer.
            "/register" if head.method == Method::POST => {
                let failure = Failure::new(H::CATALOGUE.roles.unauthenticated, "this server has no OAuth");
                respond(StatusCode::BAD_REQUEST, body_of(&failure), self.context.ids.of(&head.headers))
            }
            path => match self.page.as_ref().and_then(|page| Some((page, page.name(path)?.to_owned()))) {
                Some((page, name)) => page::serve(&self.context, page, (head, body), &name, peer).await,
                None => refuse(&Failure::plain(H::CATALOGUE.roles.no_route), &self.context.ids.of(&head.headers)),
            },
        }
    }
}

impl<H: Handlers> Responder for Endpoint<H> {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        Box::pin(self.answer(request, Some(peer)))
    }
}
