//! The platform's answers: the envelope, its codes, and the shapes that switches give it.

use crate::requests::Refusal;
use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i64,
    pub(crate) msg: String,
    pub(crate) data: Value,
    pub(crate) tasks: Vec<u64>,
}

impl Answer {
    pub(crate) fn ok(data: Value) -> Self {
        Self { code: 200, msg: "success".to_owned(), data, tasks: Vec::new() }
    }

    pub(crate) fn refusal(code: i64, msg: impl Into<String>) -> Self {
        Refusal::new(code, msg).into()
    }

    /// Refusals of signatures and of too many calls have a status of their own; all other answers
    /// have 200.
    fn status(&self) -> StatusCode {
        match self.code {
            1116 | 2019 | 2031..=2033 | 100_003..=100_005 => StatusCode::UNAUTHORIZED,
            429 => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::OK,
        }
    }
}

impl From<Refusal> for Answer {
    fn from(Refusal { code, msg }: Refusal) -> Self {
        Self { code, msg, data: Value::Null, tasks: Vec::new() }
    }
}

pub(crate) fn refusal(code: i64) -> Refusal {
    let msg = match code {
        429 => "Too many requests, please try again later",
        500 | 503 => "System error, please contact the administrator",
        1116 => "the caller's address is not on the list of this account",
        2019 => "signature mismatch",
        2020 | 110_028 => "pad does not exist",
        2031 => "access key does not exist",
        2032 => "required header is missing: Authorization",
        2033 => "timestamp expired or malformed",
        100_010 => "processing failed, please retry",
        100_011 => "the request is being processed, please do not repeat it",
        110_014 => "operation too frequent",
        110_031 => "pad is not ready",
        110_042 => "a pad in the list does not belong to you",
        _ => "operation failed",
    };
    Refusal::new(code, msg)
}

#[derive(Debug, Default)]
pub(crate) struct Dress {
    /// In milliseconds.
    pub(crate) ts: u64,
    pub(crate) trace: String,
    pub(crate) shape: Option<String>,
    pub(crate) body_bytes: usize,
}

pub(crate) fn dress(answer: Answer, dress: Dress) -> (Response<Body>, usize) {
    let status = answer.status();
    let is_limit = answer.code == 429;
    let Answer { code, msg, data, tasks: _ } = answer;
    let Dress { ts, trace, shape, body_bytes } = dress;
    let shape = shape.unwrap_or_default();
    let mut envelope = json!({"code": code, "msg": msg, "ts": ts, "data": data, "traceId": trace});
    if body_bytes > 0 {
        envelope["padding"] = "x".repeat(body_bytes).into();
    }
    let body = match shape.as_str() {
        "zeros" => format!("{{\"code\":200,\"data\":[0{}]}}", ",0".repeat(body_bytes / 2)),
        _ => envelope.to_string(),
    };
    let length = body.len();
    let mut response = respond(status, "application/json", body);
    if is_limit {
        let reset = i64::try_from(ts / 1_000).unwrap_or_default() + 1;
        let told = [("limit", "200".to_owned()), ("remaining", "0".to_owned()), ("reset", reset.to_string())];
        for (name, value) in told.into_iter().chain([("type", "qps".to_owned())]) {
            let name = header::HeaderName::try_from(format!("x-ratelimit-{name}"));
            if let (Ok(name), Ok(value)) = (name, value.try_into()) {
                response.headers_mut().insert(name, value);
            }
        }
    }
    (response, length)
}

pub(crate) fn html(status: u16) -> Response<Body> {
    respond(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), "text/html", page(status))
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

fn page(status: u16) -> String {
    format!("<html><head><title>{status}</title></head><body><center><h1>{status}</h1></center></body></html>\n")
}
