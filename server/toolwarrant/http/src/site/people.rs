//! The listener of a site for people, who come with a browser. It judges where a request comes from
//! before the site sees it: the host, the origin, and the page that sent a form. The site knows
//! neither headers nor connections. Start at [`serve`].

use super::{OF_PEOPLE, PagePolicy, protect};
use crate::context::make;
use crate::edge::{self, BodyRoom, ConnectionLimiter, Limits, Peer, Responder, Tls};
use axum::body::{Body, HttpBody};
use axum::http::header::{CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use bytes::Bytes;
use hyper::body::Incoming;
use percent_encoding::percent_decode;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use toolwarrant_base::BoxFuture;

/// Enough for a few windows of a few people. An address has no limit of its own, because all people
/// on this machine have the same.
const CONNECTIONS: usize = 256;

const FORM_MAX: usize = 64 * 1024;

const FORM: &str = "application/x-www-form-urlencoded";

/// The names and values of a query or a form, in its order.
pub type FormFields = Vec<(String, String)>;

/// A request that comes from a page of the site, or from the address bar.
pub struct SiteRequest<'a> {
    pub path: &'a str,
    /// The path with its query, as it was sent.
    pub target: &'a str,
    /// The parts of the path, decoded.
    pub parts: Vec<String>,
    pub query: FormFields,
    /// The fields of a POST.
    pub form: Option<FormFields>,
    pub cookie: Option<&'a str>,
    /// The tag of the page that the browser shows, which waits for another.
    pub shown: Option<&'a str>,
}

pub enum SiteAnswer {
    Page {
        status: u16,
        html: String,
    },
    /// The page at this path, with this new value of the cookie. An empty value deletes it.
    See {
        path: String,
        cookie: Option<String>,
    },
    /// Its path changes with its text, so browsers keep it.
    File {
        content_type: &'static str,
        text: &'static str,
    },
    Nothing,
}

pub trait PeopleSite: Send + Sync + 'static {
    /// Returns true if the site has this host and port.
    fn is_at(&self, host: &str) -> bool;

    /// Returns the name of the cookie.
    fn cookie(&self) -> &'static str;

    /// Returns true if this value of the cookie is of a session.
    fn has_session(&self, cookie: &str) -> bool;

    fn answer<'a>(&'a self, request: SiteRequest<'a>) -> BoxFuture<'a, SiteAnswer>;
}

/// Serves until `stop`, and ends requests in flight a moment later. With `tls`, only TLS is
/// accepted.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    site: Arc<dyn PeopleSite>,
    stop: impl Future<Output = ()>,
) {
    let limits = Limits {
        connections: CONNECTIONS,
        connections_per_address: usize::MAX,
        body_bytes: FORM_MAX,
        grace: Duration::from_secs(1),
        ..Limits::default()
    };
    let responder = SiteResponder { site, limits, is_encrypted: tls.is_some() };
    edge::serve(listener, responder, ConnectionLimiter::new(limits), tls, stop).await;
}

struct SiteResponder {
    site: Arc<dyn PeopleSite>,
    limits: Limits,
    is_encrypted: bool,
}

impl Responder for SiteResponder {
    fn respond<'a>(&'a self, request: Request<Incoming>, peer: Cow<'a, Peer>) -> BoxFuture<'a, Response<Body>> {
        Box::pin(async move {
            let (head, mut body) = request.into_parts();
            let answer = self.answer(&head, &mut body, &peer).await;
            let policy = match answer {
                Ok(SiteAnswer::File { .. }) => PagePolicy { cache: "public, max-age=31536000, immutable", ..OF_PEOPLE },
                _ => OF_PEOPLE,
            };
            let mut response = match answer {
                Ok(SiteAnswer::Page { status, html }) => {
                    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    make(status, "text/html; charset=utf-8", html)
                }
                Ok(SiteAnswer::See { path, cookie }) => see(&path, cookie.map(|value| self.set_cookie(&value))),
                Ok(SiteAnswer::File { content_type, text }) => make(StatusCode::OK, content_type, text),
                Ok(SiteAnswer::Nothing) => make(StatusCode::NO_CONTENT, "text/plain", ""),
                Err((status, why)) => make(status, "text/plain; charset=utf-8", why),
            };
            protect(response.headers_mut(), &policy);
            edge::skip_rest(body, Some(&*peer)).await;
            response
        })
    }
}

type Refused = (StatusCode, &'static str);

impl SiteResponder {
    /// A browser takes a cookie with this prefix from TLS alone, and from no other host.
    fn cookie(&self) -> String {
        let prefix = if self.is_encrypted { "__Host-" } else { "" };
        format!("{prefix}{}", self.site.cookie())
    }

    fn set_cookie(&self, value: &str) -> String {
        let (name, secure) = (self.cookie(), if self.is_encrypted { "; Secure" } else { "" });
        let age = if value.is_empty() { "; Max-Age=0" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}")
    }

    async fn answer(
        &self,
        Parts { method, uri, headers, .. }: &Parts,
        body: impl HttpBody<Data = Bytes> + Unpin,
        peer: &Peer,
    ) -> Result<SiteAnswer, Refused> {
        let name = self.cookie();
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut cookies = cookies.flat_map(|line| line.split("; ")).filter_map(|pair| pair.split_once('='));
        let cookie = cookies.find(|(known, _)| *known == name).map(|(_, value)| value);
        let has_session = cookie.is_some_and(|cookie| self.site.has_session(cookie));
        if !has_session {
            // So that only connections of sessions count as used, and all others give way to them.
            peer.end_after_answer();
        }
        let host = once(headers, &HOST)?.filter(|host| self.site.is_at(host));
        let host = host.ok_or((StatusCode::FORBIDDEN, "the console is not at this host; open the whole link\n"))?;
        if uri.authority().is_some() {
            return Err((StatusCode::BAD_REQUEST, "this is no proxy\n"));
        }
        let scheme = if self.is_encrypted { "https://" } else { "http://" };
        judge_origin(headers, (scheme, host), method == Method::POST)?;
        let form = match *method {
            Method::GET => None,
            Method::POST if once(headers, &CONTENT_TYPE)? == Some(FORM) => {
                let room = if has_session { BodyRoom::Verified } else { BodyRoom::Unverified };
                let read = edge::read_body(body, Some(peer), room, &self.limits).await;
                let body = read.map_err(|_| (StatusCode::BAD_REQUEST, "the form is too large or did not arrive\n"))?;
                Some(parse_fields(&body))
            }
            Method::POST => return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "a form is expected\n")),
            _ => return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are answered here\n")),
        };
        let request = SiteRequest {
            path: uri.path(),
            target: uri.path_and_query().map_or("/", |target| target.as_str()),
            parts: uri.path().split('/').skip(1).map(|part| decode(part.as_bytes())).collect(),
            query: parse_fields(uri.query().unwrap_or_default().as_bytes()),
            form,
            cookie,
            shown: once(headers, &SHOWN)?,
        };
        let is_form = request.form.is_some();
        tokio::select! {
            answer = self.site.answer(request) => Ok(answer),
            () = edge::patience(Some(peer)).wait_for_hangup(), if !is_form => Ok(SiteAnswer::Nothing),
        }
    }
}

const SHOWN: HeaderName = HeaderName::from_static("x-shown");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Accepts a form only from a page of the site itself. A page on another port of this host is of
/// the same site, and its requests carry the cookie. So it may not even link to the site.
fn judge_origin(headers: &HeaderMap, (scheme, host): (&str, &str), is_form: bool) -> Result<(), Refused> {
    let origin = once(headers, &ORIGIN)?;
    let is_own = |origin: &str| origin.strip_prefix(scheme).is_some_and(|origin| origin == host);
    let allowed = origin.is_none_or(is_own)
        && match (once(headers, &FETCH_SITE)?, is_form) {
            (Some("same-origin"), _) => true,
            (Some("none") | None, false) => true,
            (None, true) => origin.is_some(),
            // A link on a page of another site, which comes without the cookie.
            (Some("cross-site"), false) => {
                once(headers, &FETCH_MODE)? == Some("navigate") && once(headers, &FETCH_DEST)? == Some("document")
            }
            (Some(_), _) => false,
        };
    match allowed {
        true => Ok(()),
        false => Err((StatusCode::FORBIDDEN, "this request does not come from a page of the console\n")),
    }
}

/// Refuses a header that occurs twice, which is ambiguous.
fn once<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Refused> {
    let mut values = headers.get_all(name).into_iter();
    let malformed = (StatusCode::BAD_REQUEST, "a header is malformed\n");
    let first = values.next().map(|value| value.to_str().map_err(|_| malformed)).transpose()?;
    values.next().map_or(Ok(first), |_| Err(malformed))
}

fn decode(part: &[u8]) -> String {
    percent_decode(part).decode_utf8_lossy().into_owned()
}

fn parse_fields(text: &[u8]) -> FormFields {
    form_urlencoded::parse(text).into_owned().collect()
}

fn see(path: &str, cookie: Option<String>) -> Response<Body> {
    let mut response = make(StatusCode::SEE_OTHER, "text/plain", "");
    for (name, value) in [(LOCATION, Some(path.to_owned())), (SET_COOKIE, cookie)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
