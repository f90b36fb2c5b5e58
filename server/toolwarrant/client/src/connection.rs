//! One request over HTTP, with its possible failures. Start at [`Connection::send`].
//!
//! If the server refuses the key (401, before it reads the request), and the key file then holds
//! another key, the client sends the request again. If the connection of a read ends before the
//! answer, the client sends the read once more, because a server that restarts closes kept
//! connections. A write is not repeated then: it may have been carried out, and the error says so.
//! A write goes out on another connection only if not one byte of it had left; the HTTP library
//! does that.
//!
//! Behind the socket of a data folder, another process can take the server's place at any time. So
//! the client waits for the next server, and repeats requests of which it is certain that they
//! change nothing twice.

use crate::api_key::{ApiKey, KeySource};
use crate::error::{ClientError, SetupError};
use crate::server_url::ServerUrl;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use http::{Request, Response, StatusCode, request};
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use toolwarrant_outbound::{HttpClient, HttpFailure, HttpLimits};
use url::Url;

#[derive(Debug)]
pub struct Connection {
    http: HttpClient,
    url: ServerUrl,
    keys: Arc<KeySource>,
    /// In place of the URL's host.
    socket: Option<PathBuf>,
}

/// A server holds a poll for 50 seconds at most.
const LIMITS: HttpLimits = HttpLimits { deadline: Duration::from_secs(75), largest_answer: 4 << 20 };

/// The calls of a tool that the client may send again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// All.
    Harmless,
    /// Those to the next server of a data folder: a repeated write gets its task in flight.
    UnderKey,
    /// None.
    Never,
}

#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) key_id: String,
    pub(crate) retry_after: Option<u32>,
    content: Option<String>,
}

impl Connection {
    /// Sends nothing. Uses proxies as [`HttpClient::to`] describes.
    pub fn new(url: ServerUrl, keys: KeySource) -> Result<Self, SetupError> {
        let http = HttpClient::to(url.as_url()).map_err(|error| SetupError(error.to_string()))?;
        Ok(Self { http, url, keys: Arc::new(keys), socket: None })
    }

    /// Reaches the server over a Unix socket, as an application that the server knows by name.
    #[cfg(unix)]
    pub fn to_socket(file: &Path, application: &str) -> Result<Self, SetupError> {
        let url = ServerUrl::USUAL.parse().map_err(SetupError)?;
        let (http, keys) = (HttpClient::to_socket(file), Arc::new(KeySource::of_application(application)));
        Ok(Self { http, url, keys, socket: Some(file.to_owned()) })
    }

    #[must_use]
    pub fn url(&self) -> &ServerUrl {
        &self.url
    }

    #[must_use]
    pub fn key_id(&self) -> String {
        self.keys.latest().id.clone()
    }

    pub(crate) async fn post(
        &self,
        body: Bytes,
        repeat: Repeat,
        head: impl Fn(request::Builder) -> request::Builder,
    ) -> Result<HttpAnswer, ClientError> {
        let request = |key: &ApiKey| {
            let request = Request::post(self.url.as_url().as_str()).header(CONTENT_TYPE, "application/json");
            let request = request.header(ACCEPT, "application/json, text/event-stream");
            let mut secret = HeaderValue::from_str(key.secret())?;
            secret.set_sensitive(true);
            head(request.header("x-api-key", &key.id).header("x-api-secret", secret)).body(body.clone())
        };
        self.send(repeat, request).await
    }

    pub(crate) async fn send(
        &self,
        repeat: Repeat,
        request: impl Fn(&ApiKey) -> Result<Request<Bytes>, http::Error>,
    ) -> Result<HttpAnswer, ClientError> {
        let mut key = self.keys.latest();
        let (mut renewed, mut repeated) = (false, repeat != Repeat::Harmless);
        let begun = Instant::now();
        loop {
            let waits = self.socket.is_some() && begun.elapsed() < NEXT_SERVER_WITHIN;
            let request =
                request(&key).map_err(|error| ClientError::final_one("invalid_argument", error.to_string()))?;
            match self.http.exchange(request, LIMITS).await.map(|response| HttpAnswer::of(response, &key)) {
                Ok(answer) if answer.status == StatusCode::UNAUTHORIZED && !renewed => {
                    match self.reload_key(&key).await? {
                        Some(other) => (key, renewed) = (other, true),
                        None => return Ok(answer),
                    }
                }
                // The server stops, and did nothing.
                Ok(answer) if waits && answer.status == StatusCode::TOO_EARLY => sleep(LOOK_EVERY).await,
                Err(failure) if waits && failure.nothing_left() => sleep(LOOK_EVERY).await,
                Err(HttpFailure::Lost(_)) if waits && repeat != Repeat::Never => sleep(LOOK_EVERY).await,
                Err(HttpFailure::Lost(_)) if !repeated => repeated = true,
                Ok(answer) => return Ok(answer),
                Err(failure) => return Err(self.explain(failure, repeat)),
            }
        }
    }

    fn place(&self) -> String {
        self.socket.as_ref().map_or_else(|| self.url.to_string(), |file| file.display().to_string())
    }

    pub(crate) fn refusal(&self, key_id: &str) -> ClientError {
        let (url, remedy) = (self.place(), self.keys.how_to_replace());
        ClientError::final_one(
            UNAUTHENTICATED,
            format!(
                "The server at {url} refuses the key {key_id}: it is wrong, revoked, suspended or expired. Before any repeat, \
                 {remedy}."
            ),
        )
    }

    pub(crate) fn strange(&self, answer: &HttpAnswer, repeat: Repeat) -> ClientError {
        let HttpAnswer { status, body, key_id: _, retry_after, content } = answer;
        let url = self.place();
        if status.is_redirection() {
            let target = content.as_deref().unwrap_or("elsewhere");
            let message = format!(
                "{url} redirects to {target}. Redirects are not followed, because they would take the key along: correct --url."
            );
            return ClientError::final_one("redirected", message);
        }
        let kind = content.as_deref().unwrap_or(if body.is_empty() { "nothing" } else { "no content type" });
        let message = format!("{url} answered with status {status} and {kind}, which is no answer of an MCP endpoint.");
        if matches!(status.as_u16(), 502 | 504) && repeat != Repeat::Harmless {
            return ClientError::final_one("no_answer", format!("{message} {FATE_UNKNOWN}"));
        }
        if matches!(status.as_u16(), 429 | 502..=504) {
            let message = format!(
                "{message} It may come from a gateway whose server is starting or overloaded: repeat the call later."
            );
            return ClientError::retryable("gateway", message, retry_after.unwrap_or(RETRY_SECONDS));
        }
        ClientError::final_one(
            "no_endpoint",
            format!("{message} --url must be corrected; an endpoint's path ends in /mcp."),
        )
    }

    fn explain(&self, failure: HttpFailure, repeat: Repeat) -> ClientError {
        let url = self.place();
        let remedy = match self.socket {
            Some(_) => "another program uses this data folder, and must end",
            None => "the server must be started, or --url corrected",
        };
        let unreachable = |why: &str| {
            let message = format!(
                "No server can be reached at {url}: {why}. Nothing was sent. Repeat the call later; if that does not help, {remedy}."
            );
            ClientError::retryable("unreachable", message, RETRY_SECONDS)
        };
        let unanswered = |what: String| match repeat {
            Repeat::Harmless => {
                ClientError::retryable("no_answer", format!("{what} Repeat the call later."), RETRY_SECONDS)
            }
            Repeat::UnderKey | Repeat::Never => ClientError::final_one("no_answer", format!("{what} {FATE_UNKNOWN}")),
        };
        match failure {
            HttpFailure::Refused => unreachable("nothing listens there"),
            HttpFailure::Unreachable(why) => unreachable(&why),
            HttpFailure::TooLate => unreachable("there was no time left"),
            HttpFailure::Certificate(why) => {
                let remedy = "Correct --url, or let the system trust the authority that signed it.";
                let message = format!("The certificate of {url} is not trusted: {why}. Nothing was sent. {remedy}");
                ClientError::final_one("untrusted_server", message)
            }
            HttpFailure::Lost(why) => {
                unanswered(format!("The connection to {url} ended before the answer came: {why}."))
            }
            HttpFailure::Late(deadline) => unanswered(format!("{url} did not answer within {} s.", deadline.as_secs())),
            HttpFailure::TooLarge(most) => {
                let message = format!("The answer is larger than {} MiB. Ask for less at a time.", most >> 20);
                ClientError::final_one("answer_too_large", message)
            }
        }
    }

    async fn reload_key(&self, refused: &Arc<ApiKey>) -> Result<Option<Arc<ApiKey>>, ClientError> {
        let (keys, refused) = (self.keys.clone(), refused.clone());
        let read = tokio::task::spawn_blocking(move || keys.reload(&refused)).await;
        let read = read.unwrap_or(Ok(None));
        read.map_err(|error| {
            ClientError::final_one(UNAUTHENTICATED, format!("The server refuses the key, and {error}."))
        })
    }
}

const UNAUTHENTICATED: &str = "unauthenticated";

const FATE_UNKNOWN: &str = "Whether the call was carried out is unknown: before any repeat, read what it acts on.";

const RETRY_SECONDS: u32 = 5;

/// A server starts within a second, unless the machine is busy.
const NEXT_SERVER_WITHIN: Duration = Duration::from_secs(30);

const LOOK_EVERY: Duration = Duration::from_millis(20);

impl HttpAnswer {
    fn of(response: Response<Bytes>, key: &ApiKey) -> Self {
        let (head, body) = response.into_parts();
        let header = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let is_redirect = head.status.is_redirection();
        let content = if is_redirect { header(LOCATION).map(destination) } else { header(CONTENT_TYPE).map(essence) };
        let retry_after = header(RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
        Self { status: head.status, body, key_id: key.id.clone(), retry_after, content }
    }
}

fn essence(value: &str) -> String {
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.chars().filter(|c| c.is_ascii_alphanumeric() || "/+.-".contains(*c)).take(64).collect()
}

/// Removes parts that may be secret.
fn destination(value: &str) -> String {
    Url::parse(value).map_or_else(|_| "another path".to_owned(), |url| url.origin().ascii_serialization() + url.path())
}
