//! The typed calls of the platform: a request is signed, guarded and sent, and its answer judged by one table.
//!
//! Reads may be tried again, as far as the guard's budget goes. A call that changes something goes out once. What comes of it is one of
//! three: the platform's answer, that it was provably not done, or that nobody can tell. Whatever is not in the table is the last.
//!
//! No body, no header and no answer is logged; the vendor's texts leave as [`Remark`]s alone. Start at [`Api::read`] and [`Api::start`].

mod answer;
mod calls;
mod codes;
mod error;
#[cfg(test)]
mod tests;

pub use answer::{Accepted, Form, Int, Rows};
pub use calls::{ApiCall, Family};
pub use error::ApiError;

use super::sign::{AccountKeys, Scheme, Signable};
use crate::adapter_kit::guard::{CallEnd, Class, Guard, GuardLimits, Pass, Withheld};
use answer::{Judged, Started};
use anyhow::bail;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use toolwarrant::{Clock, HttpClient, HttpFailure, HttpLimits, Remark, Timestamp, Untrusted, unpoisoned};
use url::Url;

/// One account of a platform, and the way to it.
#[derive(Debug)]
pub struct Api {
    origin: String,
    host: String,
    settings: ApiSettings,
    keys: AccountKeys,
    http: HttpClient,
    guard: Guard,
    clock: Clock,
    /// Calls that the platform does not have, and until when that is believed.
    missing: Mutex<BTreeMap<ApiCall, Timestamp>>,
    /// Whether the account's V2 signatures cover the bodies of commands.
    signs_commands: AtomicBool,
    /// By how many milliseconds the platform's clock was ahead of this machine's at the latest answer.
    skew: Mutex<Option<i64>>,
}

/// Where an account's platform is and how it is spoken to.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// `https://` and the host, without a path. Plain http for this machine alone.
    pub base_url: Url,
    /// What stands before the paths of [`ApiCall`]: `/vcpcloud/api/padApi` (VMOS Cloud), `/vsphone/api/padApi` (VSPhone) or nothing (ARMCloud).
    pub prefix: String,
    /// Which names the calls have.
    pub family: Family,
    /// How requests are signed.
    pub scheme: Scheme,
    /// Time for one exchange of a read, usually [`READ_WITHIN`]. A read with its waits and repeats has twice as much.
    pub read_within: Duration,
    /// Time for the exchange of a call that changes something, usually [`WRITE_WITHIN`]. After it, nobody can tell what became of it.
    pub write_within: Duration,
}

/// Long for a read: the platform runs commands for 5 seconds.
pub const READ_WITHIN: Duration = Duration::from_secs(10);

/// Long, because an answer that comes too late costs certainty.
pub const WRITE_WITHIN: Duration = Duration::from_secs(30);

/// Checks that nothing but a scheme and a host stands in a base URL.
///
/// # Errors
/// What is expected.
pub fn judge_base_url(url: &Url) -> Result<(), &'static str> {
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if is_bare && url.username().is_empty() && url.password().is_none() {
        return Ok(());
    }
    Err("only a scheme and a host stand in the base URL; expected one like https://api.vmoscloud.com")
}

/// What one attempt came to.
type Attempt<T> = Result<T, Trouble>;

/// What is to be exchanged.
struct Order<'a> {
    class: Class,
    call: ApiCall,
    path: &'a str,
    body: &'a str,
    /// Nothing is sent after it.
    deadline: Timestamp,
}

/// An attempt without a result.
#[derive(Debug)]
struct Trouble {
    error: ApiError,
    /// Whether the same read may succeed a moment later.
    may_pass: bool,
}

/// Pause before a read is tried again; it grows by [`PAUSE_GROWTH`] each time.
const PAUSE: Duration = Duration::from_millis(250);

const PAUSE_GROWTH: u32 = 4;

/// For so long a call that was answered with 404 is not tried again.
const MISSING_FOR: Duration = Duration::from_hours(1);

impl Api {
    /// Sets an account up. Nothing is sent.
    ///
    /// # Errors
    /// The base URL or the prefix is none, or the system has no certificate authorities.
    pub fn new(settings: ApiSettings, keys: AccountKeys, limits: GuardLimits, clock: Clock) -> anyhow::Result<Self> {
        let ApiSettings { base_url, prefix, .. } = &settings;
        judge_base_url(base_url).map_err(anyhow::Error::msg)?;
        if !prefix.is_empty() && (!prefix.starts_with('/') || prefix.ends_with('/')) {
            bail!("the prefix begins with `/` and does not end with it; expected one like /vcpcloud/api/padApi");
        }
        Ok(Self {
            origin: base_url.origin().ascii_serialization(),
            host: base_url.host_str().unwrap_or_default().to_owned(),
            http: HttpClient::to(base_url)?,
            guard: Guard::new(limits, clock.clone()),
            settings,
            keys,
            clock,
            missing: Mutex::default(),
            signs_commands: AtomicBool::new(false),
            skew: Mutex::default(),
        })
    }

    /// The guard of this account.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// By how many milliseconds the platform's clock was ahead of this machine's at the latest answer; negative if it was behind. `None`
    /// before the first answer that says its time. Refusals say it as well. Signatures are refused from 5 minutes on.
    #[must_use]
    pub fn skew(&self) -> Option<i64> {
        *lock(&self.skew)
    }

    /// Reads. A failure to reach or to answer is tried again within the guard's budget.
    ///
    /// # Errors
    /// There is no answer that can be read as `T`; for a read, the kinds differ in words alone.
    pub async fn read<T: DeserializeOwned>(
        &self,
        class: Class,
        call: ApiCall,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let body = written(body)?;
        let deadline = self.clock.now().plus(2 * self.settings.read_within);
        let mut pause = PAUSE;
        loop {
            let again = self.clock.now().plus(pause);
            match self.attempt(class, call, &body, deadline).await {
                Ok(data) => return typed(&data),
                Err(trouble) if trouble.may_pass && again < deadline && self.guard.may_retry() => {
                    self.clock.sleep_until(self.clock.now().plus(pause)).await;
                    pause *= PAUSE_GROWTH;
                }
                Err(trouble) => return Err(trouble.error),
            }
        }
    }

    /// Sends what changes something, once. Nothing leaves after `not_after`.
    ///
    /// # Errors
    /// As [`ApiError`] says. An answer of success that is no `T` is [`ApiError::Unknown`].
    pub async fn write<T: DeserializeOwned>(
        &self,
        call: ApiCall,
        body: &impl Serialize,
        not_after: Timestamp,
    ) -> Result<T, ApiError> {
        let body = written(body)?;
        let data = self.attempt(Class::Write, call, &body, not_after).await.map_err(|trouble| trouble.error)?;
        typed(&data)
    }

    /// Starts a task of the platform on one pad, which is the only one that `body` names. Sent once, and not after `not_after`.
    ///
    /// # Errors
    /// As [`ApiError`] says. It is unknown what became of the call if the answer has no task for just this pad, and also if it says that
    /// such a task is queued already: that can be an earlier request whose answer was lost, so the effect may come; but it can have other
    /// arguments, so its end is not the end of this call.
    pub async fn start(
        &self,
        call: ApiCall,
        body: &impl Serialize,
        pad_code: &str,
        not_after: Timestamp,
    ) -> Result<Accepted, ApiError> {
        self.write::<Started>(call, body, not_after).await?.on(pad_code)
    }

    /// One try: the data of a success, as JSON.
    async fn attempt(&self, class: Class, call: ApiCall, body: &str, deadline: Timestamp) -> Attempt<Box<str>> {
        let last = |error| Trouble { error, may_pass: false };
        let Some(path) = call.path(self.settings.family) else {
            return Err(last(ApiError::unsupported("this platform has no such call")));
        };
        if lock(&self.missing).get(&call).is_some_and(|until| self.clock.now() < *until) {
            return Err(last(ApiError::unsupported("the platform answered 404 to such a call a while ago")));
        }
        let path = format!("{}{path}", self.settings.prefix);
        let order = Order { class, call, path: &path, body, deadline };
        let may_leave_out = call.is_command() && self.settings.scheme == Scheme::V2;
        let signs_body = !may_leave_out || self.signs_commands.load(Relaxed);
        let signed = |signs_body| if signs_body { body } else { "" };
        let (mut judged, mut pass) = self.exchange(&order, signed(signs_body)).await?;
        // Which of the two an account wants is not documented. A wrong signature has done nothing, so the other one is tried, once.
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
            tracing::warn!(
                host = self.host,
                code,
                "the platform refused the credentials, and is left alone for a while"
            );
        }
        pass.end(end);
        data.map_err(|error| {
            if error.is_unsupported() {
                lock(&self.missing).insert(call, self.clock.now().plus(MISSING_FOR));
            }
            Trouble { error, may_pass }
        })
    }

    /// One exchange under the guard, which is still to be told how it ended. Of the body, `signed` is signed.
    async fn exchange(&self, order: &Order<'_>, signed: &str) -> Attempt<(Judged, Pass<'_>)> {
        let Order { class, call, path, body, deadline } = *order;
        let pass = self.guard.admit(class, deadline).await.map_err(|withheld| unsent(&withheld.to_string()))?;
        let (began, wall) = (self.clock.now(), self.clock.wall());
        let signed = Signable { host: &self.host, path, body: signed, at: wall };
        let request = self
            .request(signed, body)
            .map_err(|_| unsent("no header can carry the access key, or no URL the prefix"))?;
        let limits = |deadline| HttpLimits { deadline, largest_answer: call.largest_answer() };
        let answer = if class == Class::Write {
            let clock = self.clock.clone();
            let may_leave = move || clock.now() <= deadline;
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
                    // Neither says that it could not be reached.
                    HttpFailure::TooLate => drop(pass),
                    HttpFailure::TooLarge(_) => pass.end(CallEnd::Answered),
                    _ => pass.end(CallEnd::Failed),
                }
                let why = Remark::from(failure.to_string());
                let error =
                    if failure.nothing_left() { ApiError::NotDone { code: None, why } } else { ApiError::Unknown(why) };
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
    Trouble { error: ApiError::NotDone { code: None, why: why.into() }, may_pass: false }
}

/// Compact JSON: what is signed is what is sent.
fn written(body: &impl Serialize) -> Result<String, ApiError> {
    serde_json::to_string(body)
        .map_err(|_| ApiError::NotDone { code: None, why: "the arguments cannot be written as JSON".into() })
}

/// The texts of such errors can quote an answer, so they are left out.
fn typed<T: DeserializeOwned>(data: &str) -> Result<T, ApiError> {
    serde_json::from_str(data).map_err(|error| {
        ApiError::Unknown(format!("the data of the answer has another shape ({:?})", error.classify()).into())
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}
