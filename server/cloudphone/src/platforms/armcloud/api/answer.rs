//! Parsing of answers. Numbers come as texts, lists as single objects, and members appear and
//! disappear.
//!
//! Memory is bounded: rows and members of the envelope are read one by one, and only if they are
//! short. Start at [`Rows`].

use super::codes::{self, Meaning, meaning};
use super::error::ApiError;
use crate::adapter_kit::guard::CallEnd;
use http::{HeaderMap, Response, StatusCode};
use serde::de::{DeserializeOwned, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number as JsonNumber;
use serde_json::value::RawValue;
use serde_with::de::{DeserializeAs, DeserializeAsWrap};
use serde_with::{As, DefaultOnError, DisplayFromStr, PickFirst, Same, TryFromInto};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::json;
use toolwarrant::text::{Remark, Untrusted};

/// A whole number that may come as a text. Anything else counts as missing.
pub(crate) type Number = DefaultOnError<Option<PickFirst<(Same, DisplayFromStr)>>>;

/// A text that may come as a number. Anything else, and an empty text, counts as missing.
pub(crate) type Text = DefaultOnError<Option<TryFromInto<Scalar>>>;

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Scalar {
    Text(String),
    Number(JsonNumber),
}

impl From<Scalar> for String {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Text(text) => text,
            Scalar::Number(number) => number.to_string(),
        }
    }
}

impl TryFrom<Scalar> for Untrusted {
    type Error = &'static str;

    fn try_from(scalar: Scalar) -> Result<Self, Self::Error> {
        let text = Self::from(String::from(scalar));
        if text.as_str().is_empty() { Err("an empty text") } else { Ok(text) }
    }
}

/// The id of a pad or of a seat, from 1 to 64 bytes.
#[derive(Deserialize)]
pub(crate) struct Id(Scalar);

const ID_MAX_BYTES: usize = 64;

impl TryFrom<Id> for String {
    type Error = &'static str;

    fn try_from(Id(scalar): Id) -> Result<Self, Self::Error> {
        let id = Self::from(scalar);
        if (1..=ID_MAX_BYTES).contains(&id.len()) { Ok(id) } else { Err("an id has from 1 to 64 bytes") }
    }
}

/// The rows of an array, of the array in a member of an object, of one object for one row, or of
/// nothing. A row that cannot be read costs only itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<T> {
    pub rows: Vec<T>,
    /// Of pads for which a call failed, in a list of their own.
    pub failed: Vec<T>,
    /// Includes rows that could not be read.
    pub count: usize,
    /// The rows were in a member.
    pub paged: bool,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), failed: Vec::new(), count: 0, paged: false }
    }
}

const ROW_MAX_BYTES: usize = 64 << 10;

const ROWS_MAX: usize = 100_000;

/// `rows` does not contain rows: it is the size of a page.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "T: DeserializeOwned")]
struct Page<T> {
    #[serde(default, alias = "records", alias = "data", alias = "successList", deserialize_with = "read_list")]
    page_data: Rows<T>,
    #[serde(default, alias = "failedList", deserialize_with = "read_list")]
    fail_list: Rows<T>,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Rows<T> {
    /// Refuses an object that is neither a list nor a row, which must not count as an empty list.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(from)?;
        let data = value.get();
        if !data.starts_with('{') {
            let list = json::deserializer(data).and_then(|mut from| read_list(&mut from));
            return list.map(|rows| Self { paged: false, ..rows }).map_err(D::Error::custom);
        }
        match json::read(data) {
            Ok(Page { page_data, fail_list }) if page_data.paged || fail_list.paged => {
                let count = page_data.count + fail_list.count;
                Ok(Self { failed: fail_list.rows, count, paged: true, ..page_data })
            }
            _ => {
                let row = read_short(value).ok_or_else(|| D::Error::custom("an object without rows"))?;
                Ok(Self { rows: vec![row], count: 1, ..Self::default() })
            }
        }
    }
}

fn read_list<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Rows<T>, D::Error> {
    struct ListVisitor<T>(PhantomData<T>);
    impl<'de, T: DeserializeOwned> Visitor<'de> for ListVisitor<T> {
        type Value = Rows<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Rows { paged: true, ..Rows::default() })
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut read = Rows { paged: true, ..Rows::default() };
            while let Some(row) = list.next_element::<&RawValue>()? {
                read.count += 1;
                read.rows.extend(read_short(row).filter(|_| row.get().starts_with('{')));
                if read.rows.len() > ROWS_MAX {
                    return Err(A::Error::custom(format_args!("a list has more than {ROWS_MAX} rows")));
                }
            }
            read.rows.shrink_to_fit();
            Ok(read)
        }
    }
    from.deserialize_any(ListVisitor(PhantomData))
}

/// Reads a value only if it is short: parsers that try several types keep a copy.
fn read_short<T: DeserializeOwned>(value: &RawValue) -> Option<T> {
    let text = Some(value.get()).filter(|text| text.len() <= ROW_MAX_BYTES)?;
    json::read(text).ok()
}

fn read_as<T, U>(value: Option<&RawValue>) -> Option<T>
where
    U: for<'de> DeserializeAs<'de, Option<T>>,
{
    read_short::<DeserializeAsWrap<Option<T>, U>>(value?)?.into_inner()
}

#[derive(Debug)]
pub(super) struct Judged {
    pub(super) data: Result<Box<str>, ApiError>,
    pub(super) end: CallEnd,
    pub(super) may_pass: bool,
    pub(super) code: Option<i64>,
    pub(super) at: Option<i64>,
    pub(super) trace: Option<Untrusted>,
}

impl Judged {
    /// Interprets an answer. One that is not in the platform's form comes from a gateway, and only
    /// its status counts.
    pub(super) fn of(answer: &Response<impl AsRef<[u8]>>, now: Timestamp) -> Self {
        let status = answer.status();
        let members = std::str::from_utf8(answer.body().as_ref()).ok().and_then(json::members).unwrap_or_default();
        let member = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let code = read_as::<i64, Number>(member("code"));
        let [msg, ts, data, trace] =
            ["msg", "ts", "data", "traceId"].map(|name| member(name).filter(|_| code.is_some()));
        let why = Remark::from(match (code, read_as::<String, Text>(msg)) {
            (Some(code), Some(msg)) => format!("code {code}: {msg}"),
            (Some(code), None) => format!("code {code}"),
            (None, _) => format!("status {} and no answer in the platform's form", status.as_u16()),
        });
        let by_status = i64::from(status.as_u16());
        let (meaning, number) = match (status, code.map_or(Meaning::Unknown, meaning)) {
            (StatusCode::UNAUTHORIZED, Meaning::Denied) => (Meaning::Denied, code.unwrap_or(by_status)),
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::UNAUTHORIZED, _)
            | (StatusCode::NOT_FOUND | StatusCode::FORBIDDEN, Meaning::Unknown) => {
                (codes::meaning(by_status), by_status)
            }
            (_, meaning) => (meaning, code.unwrap_or(by_status)),
        };
        let refused = |code| Err(ApiError::Refused { code, why: why.clone() });
        let (data, end) = match meaning {
            Meaning::Denied => (refused(number), CallEnd::Denied),
            Meaning::TooOften => (refused(number), CallEnd::Limited(pause(answer.headers(), now))),
            Meaning::Refused | Meaning::Unsupported => (refused(number), CallEnd::Answered),
            Meaning::Failed => (Err(ApiError::Failed { code: number, why }), CallEnd::Answered),
            Meaning::Unknown if code == Some(codes::ACCEPTED) && status.is_success() => {
                (Ok(data.map_or("null", RawValue::get).into()), CallEnd::Answered)
            }
            Meaning::Unknown if code.is_none_or(|code| code == 503) || status.is_server_error() => {
                (Err(ApiError::Unknown(why)), CallEnd::Failed)
            }
            Meaning::Unknown => (Err(ApiError::Unknown(why)), CallEnd::Answered),
        };
        Self {
            may_pass: meaning == Meaning::TooOften
                || (data.is_err() && code.map_or(end == CallEnd::Failed, codes::may_pass)),
            data,
            end,
            code,
            at: read_as::<i64, Number>(ts),
            trace: read_as::<Untrusted, Text>(trace),
        }
    }
}

/// Reads a moment of the platform's clock, or seconds.
fn pause(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let until = |seconds: u64| Timestamp(seconds.saturating_mul(1_000)).since(now);
    number("x-ratelimit-reset").map(until).or_else(|| number("retry-after").map(Duration::from_secs))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub task_id: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Started {
    #[serde(deserialize_with = "As::<TryFromInto<Scalar>>::deserialize")]
    pad_code: String,
    #[serde(default, deserialize_with = "As::<Number>::deserialize")]
    task_id: Option<i64>,
    #[serde(default, deserialize_with = "As::<Number>::deserialize")]
    task_status: Option<i64>,
    #[serde(default, alias = "errorCode", deserialize_with = "As::<Number>::deserialize")]
    err_code: Option<i64>,
    #[serde(default, alias = "errorMsg", deserialize_with = "As::<Text>::deserialize")]
    err_msg: Option<String>,
}

const QUEUED_ALREADY: i64 = -1;

impl Rows<Started> {
    pub(super) fn on(self, pad_code: &str) -> Result<Accepted, ApiError> {
        let is_it = |row: &&Started| row.pad_code == pad_code;
        if let Some(row) = self.failed.iter().find(is_it) {
            return Err(row.refusal());
        }
        let unknown = |why: &str| Err(ApiError::Unknown(why.into()));
        match self.rows.iter().find(is_it) {
            None => unknown("the answer says nothing of this pad"),
            Some(Started { task_status: Some(QUEUED_ALREADY), .. }) => {
                unknown("the platform says that such a task is queued already")
            }
            Some(Started { task_id: Some(task_id @ 1..), .. }) => Ok(Accepted { task_id: *task_id }),
            Some(_) => unknown("the answer has no task for this pad"),
        }
    }
}

impl Started {
    fn refusal(&self) -> ApiError {
        let said = self.err_msg.as_deref().unwrap_or("the pad is in the list of those that failed");
        let Some(code) = self.err_code else { return ApiError::Unknown(said.into()) };
        let why = Remark::from(format!("code {code}: {said}"));
        match meaning(code) {
            Meaning::Refused | Meaning::TooOften => ApiError::Refused { code, why },
            Meaning::Failed => ApiError::Failed { code, why },
            Meaning::Denied | Meaning::Unsupported | Meaning::Unknown => ApiError::Unknown(why),
        }
    }
}
