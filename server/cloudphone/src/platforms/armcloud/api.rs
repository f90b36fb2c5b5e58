//! The typed calls of the platform. A request is signed, guarded and sent, and one table
//! ([`codes`]) interprets its answer.
//!
//! Reads are retried within the guard's budget. A call that changes something is sent once. Bodies,
//! headers and answers are never logged; the vendor's texts leave only as [`Remark`]s. Start at
//! [`Api::read`] and [`Api::start`].

mod answer;
mod calls;
mod codes;
mod error;
#[cfg(test)]
pub(super) mod tests;
mod unserved;

pub use answer::{Accepted, Rows};
pub(super) use answer::{Id, Number, Text};
pub use calls::{ApiCall, Family};
pub use error::ApiError;

use super::sign::{AccountKeys, Scheme, Signable};
use crate::adapter_kit::guard::{Admission, CallEnd, Class, Guard, Withheld};
use answer::{Judged, Started};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant::base::{ignore_poison, json};
use toolwarrant::http::{HttpClient, HttpFailure, HttpLimits};
use toolwarrant::tasks::Leave;
use toolwarrant::text::{Remark, Untrusted};
use toolwarrant::{Clock, Timestamp};
use unserved::UnservedCalls;
use url::Url;

#[derive(Debug)]
pub struct Api {
    origin: String,
    host: String,
    settings: ApiSettings,
    keys: AccountKeys,
    http: HttpClient,
    pub(super) guard: Guard,
    clock: Clock,
    unserved: UnservedCalls,
    signs_commands: AtomicBool,
    skew: Mutex<Option<i64>>,
}

#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// `https://` and the host, without a path. Plain http only for this machine.
    pub base_url: Url,
    /// The prefix of paths: `/vcpcloud/api/padApi` (VMOS Cloud), `/vsphone/api/padApi` (VSPhone) or
    /// empty (ARMCloud).
    pub prefix: String,
    pub family: Family,
    pub scheme: Scheme,
    /// For one exchange. A read with its waits and retries has twice as much.
    pub read_within: Duration,
    /// For one exchange, after which the outcome is unknown.
    pub write_within: Duration,
}

/// Long, because the platform runs commands for 5 seconds.
pub const READ_WITHIN: Duration = Duration::from_secs(10);

/// Long, because the outcome is unknown if the answer comes too late.
pub const WRITE_WITHIN: Duration = Duration::from_secs(30);

struct Exchange<'a> {
    class: Class,
    call: ApiCall,
    path: &'a str,
    body: &'a str,
    leave: &'a Leave,
}

#[derive(Debug)]
struct Trouble {
    error: ApiError,
    may_pass: bool,
}

/// Before a read is tried again. It grows by [`PAUSE_GROWTH`] each time.
const PAUSE: Duration = Duration::from_millis(250);

const PAUSE_GROWTH: u32 = 4;

impl Api {
    pub fn new(settings: ApiSettings, keys: AccountKeys, guard: Guard, clock: Clock) -> anyhow::Result<Self> {
        let base_url = &settings.base_url;
        Ok(Self {
            origin: base_url.origin().ascii_serialization(),
            host: base_url.host_str().unwrap_or_default().to_owned(),
            http: HttpClient::to(base_url)?,
            guard,
            settings,
            keys,
            clock,
            unserved: UnservedCalls::default(),
            signs_commands: AtomicBool::new(false),
            skew: Mutex::default(),
        })
    }

    /// Returns the calls that were answered with 404 since they last worked, and when they are
    /// tried again. A time in the past means at the next call.
    #[must_use]
    pub fn list_unserved(&self) -> Vec<(ApiCall, Timestamp)> {
        self.unserved.list()
    }

    pub fn withholds(&self, call: ApiCall) -> bool {
        self.unserved.withholds(call, self.clock.now())
    }

    pub fn retry_unserved(&self) {
        self.unserved.end_pauses();
    }

    /// Returns the milliseconds by which the platform's clock was ahead at the latest answer. The
    /// platform refuses signatures that differ by 5 minutes or more.
    #[must_use]
    pub fn skew(&self) -> Option<i64> {
        *lock(&self.skew)
    }

    /// Reads, with retries within the guard's budget. The kinds of error differ only in their text.
    pub async fn read<T: DeserializeOwned>(&self, call: ApiCall, body: &Value) -> Result<T, ApiError> {
        let body = body.to_string();
        let deadline = self.clock.now().plus(2 * self.settings.read_within);
        let (mut pause, mut earlier) = (PAUSE, None);
        loop {
            let again = self.clock.now().plus(pause);
            match self.attempt(Class::Read, call, &body, &Leave::until(deadline, &self.clock)).await {
                Ok(data) => return parse_data(&data),
                Err(trouble) if trouble.may_pass && again < deadline && self.guard.may_retry() => {
                    earlier = Some(trouble.error);
                    self.clock.sleep_until(self.clock.now().plus(pause)).await;
                    pause *= PAUSE_GROWTH;
                }
                // A retry that was withheld says less than the attempt before it.
                Err(Trouble { error: error @ ApiError::NotSent(_), .. }) => return Err(earlier.unwrap_or(error)),
                Err(trouble) => return Err(trouble.error),
            }
        }
    }

    /// Sends a call that changes something, once and only with `leave`. A success that is not a `T`
    /// is [`ApiError::Unknown`].
    pub async fn write<T: DeserializeOwned>(&self, call: ApiCall, body: &Value, leave: Leave) -> Result<T, ApiError> {
        let body = body.to_string();
        let data = self.attempt(Class::Write, call, &body, &leave).await.map_err(|trouble| trouble.error)?;
        parse_data(&data)
    }

    /// Starts a task on one pad, the only one that `body` names, once and only with `leave`.
    ///
    /// The outcome is unknown if the answer has no task for exactly this pad, or says that such a
    /// task is queued already. That task can be an earlier request whose answer was lost, so the
    /// effect may come. But it can have other arguments, so its end is not the end of this call.
    pub async fn start(&self, call: ApiCall, body: &Value, pad_code: &str, leave: Leave) -> Result<Accepted, ApiError> {
        self.write::<Rows<Started>>(call, body, leave).await?.on(pad_code)
    }

    async fn attempt(&self, class: Class, call: ApiCall, body: &str, leave: &Leave) -> Result<Box<str>, Trouble> {
        let not_served = |why: &str| Err(Trouble { error: ApiError::NotServed(why.into()), may_pass: false });
        let Some(path) = call.path(self.settings.family) else {
            return not_served("this platform has no such call");
        };
        if self.withholds(call) {
            return not_served("the platform answered 404 to such a call a while ago");
        }
        let path = format!("{}{path}", self.settings.prefix);
        let order = Exchange { class, call, path: &path, body, leave };
        let may_leave_out = call.is_command() && self.settings.scheme == Scheme::V2;
        let signs_body = !may_leave_out || self.signs_commands.load(Relaxed);
        let signed = |signs_body| if signs_body { body } else { "" };
        let (mut judged, mut pass) = self.exchange(&order, signed(signs_body)).await?;
        // The vendor does not document which of the two an account wants. A request with a wrong
        // signature was not carried out, so the other is tried, once.
        if may_leave_out && judged.code == Some(codes::WRONG_SIGNATURE) {
            pass.end(CallEnd::Answered);
            (judged, pass) = self.exchange(&order, signed(!signs_body)).await?;
            if judged.code != Some(codes::WRONG_SIGNATURE) {
                self.signs_commands.store(!signs_body, Relaxed);
            }
        }
        let Judged { data, end, may_pass, code, .. } = judged;
        let is_known = matches!(self.guard.observe().open, Some(Withheld::Denied(_)));
        if end == CallEnd::Denied && !is_known {
            let remedy = codes::find_remedy(code.unwrap_or_default());
            tracing::warn!(
                host = self.host,
                code,
                remedy,
                "the platform refused the credentials, and calls to it are paused"
            );
        }
        pass.end(end);
        let data = match data {
            Err(error) if error.is_unsupported() => {
                self.note_unserved(call, &path);
                // A read that worked before must not count as one that the platform does not have.
                let may_be_there = class != Class::Write && !self.unserved.is_missing(call);
                Err(if may_be_there { ApiError::Unknown(error.why()) } else { error })
            }
            Err(ApiError::Unknown(why)) => Err(ApiError::Unknown(why)),
            served => {
                self.unserved.remove(call);
                served
            }
        };
        data.map_err(|error| Trouble { error, may_pass })
    }

    fn note_unserved(&self, call: ApiCall, path: &str) {
        if let Some(pause) = self.unserved.add(call, self.clock.now()) {
            let (host, pause_minutes) = (&self.host, pause.as_secs() / 60);
            tracing::warn!(
                host,
                path,
                pause_minutes,
                "the platform answered 404, and this call is tried again after the pause; check base-url, prefix and \
                 the rights of the account, then run `platform check`"
            );
        }
    }

    /// Makes one exchange. The caller must report the end to the pass. `signed` is the part of the
    /// body that is signed.
    async fn exchange(&self, order: &Exchange<'_>, signed: &str) -> Result<(Judged, Admission<'_>), Trouble> {
        let Exchange { class, call, path, body, leave } = *order;
        let deadline = leave.not_after();
        let pass = self.guard.admit(class, deadline).await.map_err(|withheld| unsent(&withheld.to_string()))?;
        let (began, wall) = (self.clock.now(), self.clock.wall());
        let signed = Signable { host: &self.host, path, body: signed, at: wall };
        let request = self
            .request(signed, body)
            .map_err(|_| unsent("no header can carry the access key, or no URL the prefix"))?;
        let limits = |deadline| HttpLimits { deadline, largest_answer: call.largest_answer() };
        let answer = if class == Class::Write {
            let leave = leave.clone();
            let may_leave = async { leave.confirm().is_ok() };
            self.http.exchange_once(request, limits(self.settings.write_within), may_leave).await
        } else {
            self.http.exchange(request, limits(self.settings.read_within.min(deadline.since(began)))).await
        };
        let took = self.clock.now().since(began);
        let middle = wall.plus(took / 2);
        match answer {
            Ok(answer) => {
                let judged = Judged::of(&answer, self.clock.wall());
                let trace = judged.trace.as_ref().map(Untrusted::as_str);
                tracing::debug!(?call, code = judged.code, trace, millis = took.as_millis(), "the platform answered");
                if let Some(at) = judged.at {
                    *lock(&self.skew) = Some(at.saturating_sub_unsigned(middle.0));
                }
                Ok((judged, pass))
            }
            Err(failure) => {
                tracing::debug!(?call, %failure, millis = took.as_millis(), "the platform did not answer");
                match failure {
                    // Neither means that the platform could not be reached.
                    HttpFailure::TooLate => drop(pass),
                    HttpFailure::TooLarge(_) => pass.end(CallEnd::Answered),
                    _ => pass.end(CallEnd::Failed),
                }
                let why = Remark::from(failure.to_string());
                let error = if failure.nothing_left() { ApiError::NotSent(why) } else { ApiError::Unknown(why) };
                Err(Trouble { error, may_pass: !matches!(failure, HttpFailure::TooLarge(_)) })
            }
        }
    }

    fn request(&self, signed: Signable<'_>, body: &str) -> http::Result<http::Request<String>> {
        let mut request = http::Request::post(format!("{}{}", self.origin, signed.path));
        for (name, value) in self.keys.headers(self.settings.scheme, signed) {
            let mut value = http::HeaderValue::try_from(value)?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        request.body(body.to_owned())
    }
}

fn unsent(why: &str) -> Trouble {
    Trouble { error: ApiError::NotSent(why.into()), may_pass: false }
}

/// Leaves out the texts of parse errors, which can quote the answer.
fn parse_data<T: DeserializeOwned>(data: &str) -> Result<T, ApiError> {
    json::read(data).map_err(|error| {
        ApiError::Unknown(format!("the data of the answer has another shape ({:?})", error.classify()).into())
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    ignore_poison(mutex.lock())
}
