//! Parsing of answers. Numbers come as texts, lists as single objects, and members appear and
//! disappear.

use super::codes::{self, Meaning, meaning};
use super::error::ApiError;
use crate::adapter_kit::guard::CallEnd;
use http::{HeaderMap, Response, StatusCode};
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::json;
use toolwarrant::text::{Remark, Untrusted};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Int(pub i64);

/// An array, the array in a member of an object, one object for one row, or nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows<T> {
    pub rows: Vec<T>,
    /// Includes rows that were left out.
    pub count: usize,
    pub form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    List,
    Page,
    /// An object without such a member, which is the only row.
    One,
}

/// Members that contain rows. `rows` is not one of them: it is the size of a page.
const ROWS: [&str; 3] = ["pageData", "records", "data"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub task_id: i64,
}

/// A text (true) or a number. Anything else counts as missing, and is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scalar(Option<Box<str>>, bool);

impl Scalar {
    pub(crate) fn as_text(&self) -> Option<&str> {
        self.0.as_deref().filter(|_| self.1)
    }

    pub(crate) fn into_string(self) -> Option<String> {
        self.0.map(String::from)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        Ok(match json.as_bytes() {
            [b'"', ..] => Self(Some(json::read(json).map_err(D::Error::custom)?), true),
            [b'-' | b'0'..=b'9', ..] => {
                let number: Number = json::read(json).map_err(D::Error::custom)?;
                Self(Some(number.to_string().into()), false)
            }
            _ => Self::default(),
        })
    }
}

impl Int {
    pub(crate) fn of(value: &Scalar) -> Option<Self> {
        value.0.as_deref()?.trim().parse().ok().map(Self)
    }
}

impl<'de> Deserialize<'de> for Int {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(&Scalar::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("no whole number"))
    }
}

pub(super) fn find_members<'a, const N: usize>(
    text: &'a str,
    names: [&'static str; N],
) -> Option<[Option<&'a str>; N]> {
    struct Found<const N: usize>([&'static str; N]);
    impl<'de, const N: usize> Visitor<'de> for Found<N> {
        type Value = [Option<&'de str>; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut found = [None; N];
            while let Some(name) = members.next_key::<Cow<'de, str>>()? {
                match self.0.iter().position(|known| name == *known) {
                    Some(at) => found[at] = Some(members.next_value::<&RawValue>()?.get()),
                    None => drop(members.next_value::<IgnoredAny>()?),
                }
            }
            Ok(found)
        }
    }
    json::deserializer(text).ok()?.deserialize_map(Found(names)).ok()
}

/// Reads rows one by one, so that a row that `keep` refuses costs no memory. Counts all rows.
fn read_list<T>(text: &str, keep: fn(&str) -> serde_json::Result<Option<T>>) -> serde_json::Result<(Vec<T>, usize)> {
    struct Rows<T>(usize, fn(&str) -> serde_json::Result<Option<T>>);
    impl<'de, T> Visitor<'de> for Rows<T> {
        type Value = (Vec<T>, usize);

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok((Vec::new(), 0))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let (mut rows, mut count) = (Vec::new(), 0);
            while let Some(row) = list.next_element::<&RawValue>()? {
                count += 1;
                rows.extend((self.1)(row.get()).map_err(A::Error::custom)?);
                if rows.len() > self.0 {
                    return Err(A::Error::custom("more rows than a list of this length has"));
                }
            }
            rows.shrink_to_fit();
            Ok((rows, count))
        }
    }
    let most = ROWS_FREE + LENGTHS * text.len() / size_of::<T>().max(1);
    json::deserializer(text)?.deserialize_any(Rows(most, keep))
}

/// The rows that any answer may have, and the memory of more rows in lengths of the answer.
const ROWS_FREE: usize = 1_000;
const LENGTHS: usize = 4;

impl<T> Rows<T> {
    pub(crate) fn read(data: &str, keep: fn(&str) -> serde_json::Result<Option<T>>) -> serde_json::Result<Self> {
        let members = find_members(data, ROWS);
        let page = |member: &Option<&str>| read_list((*member)?, keep).ok();
        let ((rows, count), form) = match &members {
            None => (read_list(data, keep)?, Form::List),
            Some(members) => match members.iter().find_map(page) {
                Some(rows) => (rows, Form::Page),
                None => ((Vec::from_iter(keep(data)?), 1), Form::One),
            },
        };
        Ok(Self { rows, count, form })
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Rows<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let data = <&RawValue>::deserialize(deserializer)?.get();
        Self::read(data, |row| json::read(row).map(Some)).map_err(D::Error::custom)
    }
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

/// An object without a code is not an envelope.
#[derive(Default, Deserialize)]
struct Envelope<'a> {
    code: Option<Int>,
    #[serde(default)]
    msg: Scalar,
    #[serde(default)]
    ts: Scalar,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(default, rename = "traceId")]
    trace_id: Scalar,
}

impl Judged {
    /// Interprets an answer. One that is not in the platform's form comes from a gateway, and only
    /// its status counts.
    pub(super) fn of(answer: &Response<impl AsRef<[u8]>>, now: Timestamp) -> Self {
        let (status, envelope) = (answer.status(), json::read_bytes::<Envelope<'_>>(answer.body().as_ref()));
        let envelope = envelope.ok().filter(|envelope| envelope.code.is_some()).unwrap_or_default();
        let Envelope { code, msg, ts, data, trace_id } = envelope;
        let code = code.map(|Int(code)| code);
        let why = Remark::from(match (code, msg.as_text()) {
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
            at: Int::of(&ts).map(|Int(at)| at),
            trace: trace_id.as_text().map(Untrusted::from),
        }
    }
}

/// Reads a moment of the platform's clock, or seconds.
fn pause(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let until = |seconds: u64| Timestamp(seconds.saturating_mul(1_000)).since(now);
    number("x-ratelimit-reset").map(until).or_else(|| number("retry-after").map(Duration::from_secs))
}

/// An entry per pad: one list, or a list of accepted pads and one of refused pads.
#[derive(Debug)]
pub(super) struct Started {
    taken: Vec<StartedRow>,
    refused: Vec<StartedRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartedRow {
    #[serde(default)]
    pad_code: Scalar,
    #[serde(default)]
    task_id: Scalar,
    #[serde(default)]
    task_status: Scalar,
    #[serde(default, alias = "errorCode")]
    err_code: Scalar,
    #[serde(default, alias = "errorMsg")]
    err_msg: Scalar,
}

impl<'de> Deserialize<'de> for Started {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rows = |text: &str| json::read::<Rows<_>>(text).map(|Rows { rows, .. }| rows).map_err(D::Error::custom);
        let data = <&RawValue>::deserialize(deserializer)?.get();
        let lists = find_members(data, ["successList", "failList", "failedList"]).unwrap_or_default();
        if lists == [None; 3] {
            return Ok(Self { taken: rows(data)?, refused: Vec::new() });
        }
        let [taken, refused, failed] = lists.map(|list| rows(list.unwrap_or("null")));
        Ok(Self { taken: taken?, refused: refused?.into_iter().chain(failed?).collect() })
    }
}

const QUEUED_ALREADY: i64 = -1;

impl Started {
    pub(super) fn on(self, pad_code: &str) -> Result<Accepted, ApiError> {
        let Self { taken, refused } = self;
        let is_it = |row: &&StartedRow| row.pad_code.as_text() == Some(pad_code);
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
        let said = self.err_msg.as_text().unwrap_or("the pad is in the list of those that failed");
        let Some(Int(code)) = Int::of(&self.err_code) else {
            return ApiError::Unknown(said.into());
        };
        let why = Remark::from(format!("code {code}: {said}"));
        match meaning(code) {
            Meaning::Refused | Meaning::TooOften => ApiError::Refused { code, why },
            Meaning::Failed => ApiError::Failed { code, why },
            Meaning::Denied | Meaning::Unsupported | Meaning::Unknown => ApiError::Unknown(why),
        }
    }
}
