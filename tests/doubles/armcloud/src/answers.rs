//! The platform's answers: the envelope, its codes, and the shapes that switches give it.

use crate::requests::Refusal;
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
        1116 => "the caller's address is not on the list of this account",
        2019 => "signature mismatch",
        2020 | 110_028 => "pad does not exist",
        2031 => "access key does not exist",
        _ => "operation failed",
    };
    Refusal::new(code, msg)
}

pub(crate) fn dress(answer: Answer, ts: u64, trace: String) -> Response<String> {
    let status = answer.status();
    let is_limit = answer.code == 429;
    let Answer { code, msg, data, tasks: _ } = answer;
    let body = json!({"code": code, "msg": msg, "ts": ts, "data": data, "traceId": trace}).to_string();
    let mut response = respond(status, "application/json", body);
    if is_limit {
        let reset = i64::try_from(ts / 1_000).unwrap_or_default() + 1;
        response.headers_mut().insert("x-ratelimit-reset", reset.into());
    }
    response
}

pub(crate) fn html(status: u16) -> Response<String> {
    respond(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY), "text/html", page(status))
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

fn page(status: u16) -> String {
    format!("<html><head><title>{status}</title></head><body><center><h1>{status}</h1></center></body></html>\n")
}
