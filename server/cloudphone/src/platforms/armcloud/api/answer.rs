//! What an answer says. The platform's shapes waver: numbers come as texts, lists as single objects, members appear and vanish.

use super::ApiError;
use super::codes::{self, Meaning, meaning};
use crate::phones::upstream::guard::CallEnd;
use http::{HeaderMap, Response, StatusCode};
use serde::de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use toolwarrant::{Remark, Timestamp, Untrusted};

/// A whole number, also one that comes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Int(pub i64);

/// The rows of an answer: an array, the array in `pageData` or `records`, one object for one row, or nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<T>(pub Vec<T>);

/// A task that the platform has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its number, for [`ApiCall::TaskDetail`](super::ApiCall::TaskDetail).
    pub task_id: i64,
}

impl Int {
    fn of(value: &Value) -> Option<Self> {
        value.as_i64().or_else(|| value.as_str()?.trim().parse().ok()).map(Self)
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(&Value::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("no whole number"))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Rows<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RowsVisitor(PhantomData))
    }
}

/// Reads each row as it comes: a list of ten thousand seats is never in memory as JSON.
struct RowsVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for RowsVisitor<T> {
    type Value = Rows<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Rows(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut rows = Vec::new();
        while let Some(row) = list.next_element()? {
            rows.push(row);
        }
        Ok(Rows(rows))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let (mut rows, mut others) = (None, Map::new());
        while let Some(name) = members.next_key::<String>()? {
            if ["pageData", "records"].contains(&name.as_str()) {
                rows = Some(members.next_value::<Option<Vec<T>>>()?.unwrap_or_default());
            } else {
                others.insert(name, members.next_value()?);
            }
        }
        let one = || T::deserialize(Value::Object(others)).map(|row| vec![row]).map_err(A::Error::custom);
        rows.map_or_else(one, Ok).map(Rows)
    }
}

/// An answer and what it says.
#[derive(Debug)]
pub(super) struct Judged {
    /// The data of a success, as JSON.
    pub(super) data: Result<Box<str>, ApiError>,
    /// What it says of the platform.
    pub(super) end: CallEnd,
    /// Whether the same read may succeed a moment later.
    pub(super) may_pass: bool,
    /// The platform's code, if the answer has one.
    pub(super) code: Option<i64>,
    /// The platform's time of the answer, in milliseconds since the epoch.
    pub(super) at: Option<i64>,
    /// Its name of the request.
    pub(super) trace: Option<Untrusted>,
}

/// What stands around the data of each answer.
#[derive(Deserialize)]
struct Envelope<'a> {
    code: Int,
    #[serde(default)]
    msg: Value,
    #[serde(default)]
    ts: Value,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(default, rename = "traceId")]
    trace_id: Value,
}

impl Judged {
    /// Judges an answer that came at this time of the machine.
    pub(super) fn of(answer: &Response<impl AsRef<[u8]>>, now: Timestamp) -> Self {
        let (status, envelope) = (answer.status(), serde_json::from_slice::<Envelope<'_>>(answer.body().as_ref()).ok());
        let Some(Envelope { code: Int(code), msg, ts, data, trace_id }) = envelope else {
            return Self::without_envelope(status, answer.headers(), now);
        };
        let why = Remark::from(match msg.as_str() {
            Some(msg) => format!("code {code}: {msg}"),
            None => format!("code {code}"),
        });
        // A status that says more than the code beside it.
        let meaning = match (status, meaning(code)) {
            (StatusCode::TOO_MANY_REQUESTS, _) => Meaning::TooOften,
            (StatusCode::UNAUTHORIZED, _) => Meaning::Denied,
            (StatusCode::NOT_FOUND, Meaning::Unknown) => Meaning::Unsupported,
            (_, meaning) => meaning,
        };
        let not_done = |code| Err(ApiError::NotDone { code: Some(code), why: why.clone() });
        let (data, end) = match meaning {
            Meaning::Denied => (not_done(code), CallEnd::Denied),
            Meaning::TooOften => (not_done(code), CallEnd::Limited(pause(answer.headers(), now))),
            Meaning::Unsupported => (not_done(codes::UNSUPPORTED), CallEnd::Answered),
            Meaning::Refused => (not_done(code), CallEnd::Answered),
            Meaning::Failed => (Err(ApiError::Failed { code, why }), CallEnd::Answered),
            Meaning::Unknown if code == codes::ACCEPTED && status.is_success() => {
                (Ok(data.map_or("null", RawValue::get).into()), CallEnd::Answered)
            }
            Meaning::Unknown if status.is_server_error() || code == 503 => {
                (Err(ApiError::Unknown(why)), CallEnd::Failed)
            }
            Meaning::Unknown => (Err(ApiError::Unknown(why)), CallEnd::Answered),
        };
        Self {
            may_pass: meaning == Meaning::TooOften || (data.is_err() && codes::may_pass(code)),
            data,
            end,
            code: Some(code),
            at: Int::of(&ts).map(|Int(at)| at),
            trace: trace_id.as_str().map(Untrusted::from),
        }
    }

    /// What a gateway says in the platform's place. Only three statuses are certain to have done nothing.
    fn without_envelope(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Self {
        let why = Remark::from(format!("status {} and no answer in the platform's form", status.as_u16()));
        let not_done = |why| ApiError::NotDone { code: Some(status.as_u16().into()), why };
        let (error, end) = match status {
            StatusCode::UNAUTHORIZED => (not_done(why), CallEnd::Denied),
            StatusCode::NOT_FOUND => (not_done(why), CallEnd::Answered),
            StatusCode::TOO_MANY_REQUESTS => (not_done(why), CallEnd::Limited(pause(headers, now))),
            _ => (ApiError::Unknown(why), CallEnd::Failed),
        };
        let may_pass = matches!(end, CallEnd::Failed | CallEnd::Limited(_));
        Self { data: Err(error), end, may_pass, code: None, at: None, trace: None }
    }
}

/// How long the platform asks to be left alone: until a moment of its clock, or for seconds.
fn pause(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let until = |seconds: u64| Timestamp(seconds.saturating_mul(1_000)).since(now);
    number("x-ratelimit-reset").map(until).or_else(|| number("retry-after").map(Duration::from_secs))
}

/// What a call that starts tasks says of each pad: one list, or a list of those that were taken and one of those that were not.
#[derive(Debug)]
pub(super) struct Started {
    taken: Vec<StartedRow>,
    refused: Vec<StartedRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartedRow {
    #[serde(default)]
    pad_code: Value,
    #[serde(default)]
    task_id: Value,
    #[serde(default)]
    task_status: Value,
    #[serde(default, alias = "errorCode")]
    err_code: Value,
    #[serde(default, alias = "errorMsg")]
    err_msg: Value,
}

impl<'de> Deserialize<'de> for Started {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rows = |value: Value| serde_json::from_value::<Rows<StartedRow>>(value).map_err(D::Error::custom);
        let mut data = Value::deserialize(deserializer)?;
        let lists = ["successList", "failList", "failedList"].map(|name| data.as_object_mut()?.remove(name));
        if lists.iter().all(Option::is_none) {
            return Ok(Self { taken: rows(data)?.0, refused: Vec::new() });
        }
        let [taken, refused, failed] = lists.map(Option::unwrap_or_default);
        let Rows(mut refused) = rows(refused)?;
        refused.extend(rows(failed)?.0);
        Ok(Self { taken: rows(taken)?.0, refused })
    }
}

/// Such a task was there already.
const QUEUED_ALREADY: i64 = -1;

impl Started {
    /// What became of the call for the one pad that it named.
    pub(super) fn on(self, pad_code: &str) -> Result<Accepted, ApiError> {
        let Self { taken, refused } = self;
        let is_it = |row: &&StartedRow| row.pad_code.as_str() == Some(pad_code);
        if let Some(row) = refused.iter().find(is_it) {
            return Err(row.refusal());
        }
        let Some(row) = taken.iter().find(is_it) else {
            return Err(ApiError::Unknown("the answer says nothing of this pad".into()));
        };
        if Int::of(&row.task_status) == Some(Int(QUEUED_ALREADY)) {
            return Err(ApiError::Unknown("the platform says that such a task is queued already".into()));
        }
        match Int::of(&row.task_id) {
            Some(Int(task_id)) if task_id > 0 => Ok(Accepted { task_id }),
            _ => Err(ApiError::Unknown("the answer has no task for this pad".into())),
        }
    }
}

impl StartedRow {
    fn refusal(&self) -> ApiError {
        let said = self.err_msg.as_str().unwrap_or("the pad is in the list of those that failed");
        let Some(Int(code)) = Int::of(&self.err_code) else {
            return ApiError::Unknown(said.into());
        };
        let why = Remark::from(format!("code {code}: {said}"));
        match meaning(code) {
            Meaning::Refused | Meaning::TooOften => ApiError::NotDone { code: Some(code), why },
            Meaning::Failed => ApiError::Failed { code, why },
            Meaning::Denied | Meaning::Unsupported | Meaning::Unknown => ApiError::Unknown(why),
        }
    }
}
