//! The baseline: bare `axum::serve` and a handler that reads the body and returns bytes that it
//! received at its start. It has no keys, limits or deadlines, and of the program's headers only
//! the content type.

use crate::cores;
use crate::server::Server;
use crate::wire::WireReply;
use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response};
use axum::routing::post;
use axum::serve::ListenerExt;
use bytes::Bytes;
use serde_json::json;
use std::io::{Read, stdin};
use std::process::Command;

pub(crate) fn start(reply: &WireReply) -> Result<Server> {
    Server::start(as_baseline(cores::command_for_server(std::env::current_exe()?)), reply.body()?)
}

pub(crate) fn as_baseline(mut command: Command) -> Command {
    command.arg("baseline");
    command
}

pub(crate) fn serve() -> Result<()> {
    let mut body = Vec::new();
    stdin().read_to_end(&mut body)?;
    let body = Bytes::from(body);
    let answer = move |_: Bytes| std::future::ready(reply(body.clone()));
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", json!({"listens": listener.local_addr()?}));
        // Like the program. Otherwise a reply in two parts waits for an acknowledgement.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        Ok(axum::serve(listener, Router::new().route("/mcp", post(answer))).await?)
    })
}

fn reply(body: Bytes) -> Response<Body> {
    let mut reply = Response::new(Body::from(body));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
