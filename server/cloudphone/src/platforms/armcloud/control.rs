//! Changes of pads, readings on them and `platform check`.

use super::api::{Accepted, ApiCall, ApiError, Family, Rows};
use super::operations;
use super::rows::Pad;
use super::{Armcloud, LEAVES_WITHIN};
use crate::adapter_kit::guard::{CallCounts, GuardState};
use crate::adapter_kit::shell::Shell;
use crate::phones::contract::{
    ClearProxyArgs, Command, DeviceId, PowerAction, ProxyScheme, SessionMode, SessionToken, SetPowerArgs, SetProxyArgs,
};
use crate::phones::port::{
    CheckPort, Direction, Exits, Finding, NoAddress, PhoneStart, PhoneWrite, PlatformName, Session, SessionError,
    Unreachable, WritePort,
};
use async_trait::async_trait;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Provability, Refusal, Sent, TaskId};
use toolwarrant::text::{Secret, Words, words};

/// Before the first look at a command, doubled for each further look, and for the whole command.
/// Platforms refuse a second call about a pad within 2 seconds.
const LOOK_AFTER: Duration = Duration::from_millis(2_100);
const COMMAND_WITHIN: Duration = Duration::from_secs(25);

/// Before a command that came too often is sent again.
const TOO_OFTEN: Duration = Duration::from_secs(2);

/// From a difference of 5 minutes on, the platform refuses signatures.
const SKEW_MAX_SECONDS: i64 = 60;

impl Armcloud {
    /// Returns `None` if the command was accepted and the platform names no task.
    async fn transmit(&self, command: &Command, leave: Leave) -> Result<Option<Accepted>, ApiError> {
        if let Command::SetProxy(SetProxyArgs { device_id, .. }) = command {
            let noted = self.readings.note_proxy(device_id).await;
            noted.map_err(|Unreachable(why)| ApiError::NotSent(why))?;
        }
        let code = self.code(command.device()).map_err(|Unreachable(why)| ApiError::NotSent(why))?;
        let family = self.family;
        let (call, body) = match command {
            Command::SetPower(SetPowerArgs { action, .. }) => {
                let call = match (action, family) {
                    (PowerAction::Restart, _) => ApiCall::Restart,
                    (PowerAction::Boot, Family::PadApi) => ApiCall::TimingPadOn,
                    (PowerAction::Shutdown, Family::PadApi) => ApiCall::TimingPadOff,
                    (PowerAction::Boot, Family::Armcloud) => ApiCall::NetStorageOn,
                    (PowerAction::Shutdown, Family::Armcloud) => ApiCall::NetStorageOff,
                };
                (call, json!({"padCodes": [code]}))
            }
            Command::SetProxy(args) => (
                ApiCall::SetProxy,
                proxy(&code, args).ok_or_else(|| ApiError::NotSent("it has no words for such a proxy".into()))?,
            ),
            Command::ClearProxy(ClearProxyArgs { .. }) => {
                (ApiCall::SetProxy, json!({"padCodes": [code], "enable": false}))
            }
        };
        match call {
            // The answer of these calls is not documented, and no task has been seen in it.
            ApiCall::TimingPadOn | ApiCall::TimingPadOff => {
                self.api.write::<IgnoredAny>(call, &body, leave).await.map(|_| None)
            }
            _ => self.api.start(call, &body, &code, leave).await.map(Some),
        }
    }

    fn is_proven(&self, direction: Direction) -> bool {
        self.ledger.is_proven(None, direction, &self.identity)
    }
}

/// Returns `None` if the platform cannot express the proxy. It would silently ignore members of
/// other names.
fn proxy(code: &str, args: &SetProxyArgs) -> Option<Value> {
    let SetProxyArgs { device_id: _, scheme, host, port, username, password, idempotency_key: _ } = args;
    let name = match scheme {
        ProxyScheme::Http => "http-relay",
        ProxyScheme::Socks5 => "socks5",
        ProxyScheme::Https => return None,
    };
    let mut body = json!({
        "padCodes": [code], "enable": true, "ip": host.as_str(), "port": port.get(), "proxyType": "proxy", "proxyName": name,
    });
    if let Some(username) = username {
        body["account"] = json!(username.as_str());
    }
    if let Some(password) = password {
        body["password"] = json!(password.expose().as_str());
    }
    Some(body)
}

#[derive(Deserialize)]
struct Issued {
    token: String,
}

#[async_trait]
impl WritePort for Armcloud {
    /// Refuses `|`, which separates name and password on the pad.
    fn inexpressible(&self, args: &SetProxyArgs) -> Option<Words> {
        let username = args.username.as_ref().map(|name| ("username", name.as_str()));
        let password = args.password.as_ref().map(|password| ("password", password.expose().as_str()));
        let mut both = [username, password].into_iter().flatten();
        let (argument, _) = both.find(|(_, text)| text.contains('|'))?;
        Some(words!["`", argument, "` has a `|`, which the platform of this device cannot pass on"])
    }

    async fn session(&self, id: &DeviceId, _: SessionMode) -> Result<Session, SessionError> {
        let code = self.code(id)?;
        let leave = Leave::until(self.clock.now().plus(LEAVES_WITHIN), &self.clock);
        let issued = self.api.write::<Rows<Issued>>(ApiCall::ScreenToken, &json!({"padCode": code}), leave).await;
        let Rows { rows, .. } = issued.map_err(|error| match error {
            ApiError::Unknown(why) => SessionError::Unreachable(Unreachable(why)),
            refused => SessionError::Refused(refused.why()),
        })?;
        let [Issued { token }] = <[Issued; 1]>::try_from(rows)
            .map_err(|rows| Unreachable(format!("the answer has {} tokens", rows.len()).into()))?;
        let token = SessionToken::new(Secret::new(token).expose())
            .map_err(|_| SessionError::Refused("its token is none".into()))?;
        Ok(Session { token: Secret::new(token), url: None, expires_at: None })
    }

    fn facts(&self, write: &PhoneWrite) -> Facts {
        let id = write.device();
        let provability = match write {
            restart if restart.is_restart() && self.starts.is_in_vain(self.clock.now()) => {
                Provability::Nothing("no command has run on a phone of this account so far")
            }
            restart if restart.is_restart() => {
                match self.ledger.is_proven_on(id, Direction::Start) || self.is_proven(Direction::Start) {
                    true => Provability::Both,
                    false => Provability::Presence,
                }
            }
            PhoneWrite::Command(Command::SetProxy(args)) => {
                self.readings.provability(id, args, (false, self.is_proven(Direction::Exit)))
            }
            // A phone that is up answers; the platform's list, which lags, is no absence.
            PhoneWrite::Command(Command::SetPower(SetPowerArgs { action: PowerAction::Boot, .. })) => {
                Provability::Presence
            }
            PhoneWrite::Command(Command::SetPower(_)) => {
                Provability::Nothing("a phone that is off cannot be asked, and the platform's list is no measurement")
            }
            PhoneWrite::Command(Command::ClearProxy(_)) | PhoneWrite::Unread { .. } => Provability::Both,
        };
        let provability = match [ApiCall::AsyncCmd, ApiCall::TaskDetail].iter().any(|call| self.api.withholds(*call)) {
            true => Provability::Nothing("the platform does not serve commands on phones at present"),
            false => provability,
        };
        Facts { provability, ..Facts::default() }
    }

    async fn send(&self, _: TaskId, command: &Command, leave: Leave) -> Sent {
        let sent = self.transmit(command, leave).await;
        self.refresh.wake();
        let precedes_act = sent.as_ref().is_err_and(ApiError::precedes_act);
        let is_busy = sent.as_ref().is_err_and(ApiError::is_too_often);
        match sent {
            Ok(Some(Accepted { task_id })) => Sent::Pending(task_id.to_string()),
            Ok(None) => Sent::Ok,
            Err(ApiError::NotSent(why) | ApiError::NotServed(why)) => Sent::NotSent(why),
            Err(ApiError::Refused { code, why }) => Sent::Refused(Refusal { code, why, precedes_act, is_busy }),
            Err(ApiError::Failed { why, .. }) => Sent::Err(why),
            Err(ApiError::Unknown(what)) => Sent::NoAnswer(what),
        }
    }

    async fn look_up(&self, id: &DeviceId, _: TaskId, operation: Option<&str>) -> Result<Option<Sent>, Unreachable> {
        let task_id = operation.and_then(|name| name.parse().ok());
        let task_id = task_id.ok_or_else(|| Unreachable("it knows operations, not requests".into()))?;
        let (sent, _) = operations::look_up(&self.api, task_id, &self.code(id)?).await?;
        if !matches!(sent, Sent::Pending(_)) {
            self.refresh.wake();
        }
        Ok(Some(sent))
    }

    async fn exits(&self, id: &DeviceId, proxy: Option<&SetProxyArgs>) -> Result<Exits, Unreachable> {
        self.readings.exits((self, None), id, proxy).await
    }

    async fn boot_id(&self, id: &DeviceId) -> Result<PhoneStart, Unreachable> {
        let before = self.code(id)?;
        let read = self.readings.start(self, id).await;
        self.starts.note(read.is_ok(), self.clock.now());
        let start = read?;
        match self.code(id)? {
            code if code == before => Ok(start.on(&code)),
            _ => Err(Unreachable("the platform has replaced the phone meanwhile".into())),
        }
    }

    async fn note_restart(&self, id: &DeviceId, on: &str) -> Result<(), Unreachable> {
        self.ledger.set_proof(Some(id), Direction::Start, Some(on.to_owned())).await
    }
}

#[async_trait]
impl CheckPort for Armcloud {
    fn judge_addresses(&self, seen: &[IpAddr]) -> Result<(), NoAddress> {
        self.readings.judge_addresses(seen)
    }

    async fn renew_address(&self, id: &DeviceId) -> Result<(), Unreachable> {
        self.readings.renew((self, None), id).await
    }

    async fn account(&self) -> Vec<Finding> {
        self.api.retry_unserved();
        self.api.guard.urge_trial();
        let first = json!({"page": 1, "rows": 1});
        let asked = self.api.read::<Rows<Pad>>(ApiCall::Infos, &first).await;
        let is_missing = self.api.list_unserved().iter().any(|(call, _)| *call == ApiCall::Infos);
        let remedy = match &asked {
            Err(_) if is_missing => ApiError::NotServed("404".into()).remedy(),
            Err(error) => error.remedy(),
            Ok(_) => "see the log about this platform",
        };
        let listed = match asked {
            Ok(_) => self.refresh.at_least(self.clock.now()).await,
            Err(error) => Err(error.into()),
        };
        let found = listed.map(|()| "the platform accepts them".to_owned());
        let credentials = Finding::of("credentials", found.map_err(|Unreachable(why)| why.as_str().to_owned()), remedy);
        let clock = self.api.skew().map(|millis| {
            let seconds = millis / 1_000;
            let by = if seconds < 0 { "behind" } else { "ahead" };
            let found = format!("the platform's clock is {} s {by}", seconds.abs());
            let found = if seconds.abs() <= SKEW_MAX_SECONDS { Ok(found) } else { Err(found) };
            Finding::of("clock", found, "set this machine's clock: signatures are valid for 5 minutes")
        });
        let unserved = self.api.list_unserved().iter().map(|(call, _)| call.name()).collect::<Vec<_>>().join(", ");
        let found = format!("the platform has answered 404 to {unserved}; the next such call tries again");
        let unserved = (!unserved.is_empty()).then(|| Finding::sound("calls", found));
        [credentials].into_iter().chain(clock).chain(unserved).collect()
    }

    async fn record(&self, direction: Direction, _: &DeviceId) -> Result<(), Unreachable> {
        self.ledger.set_proof(None, direction, Some(self.identity.clone())).await
    }

    async fn withdraw(&self, direction: Direction, id: &DeviceId) -> Result<(), Unreachable> {
        if direction == Direction::Start {
            self.ledger.set_proof(Some(id), direction, None).await?;
        }
        self.ledger.set_proof(None, direction, None).await
    }

    fn state(&self, name: &PlatformName) -> UpstreamState {
        let GuardState { open, waiting, calls } = self.api.guard.observe();
        let CallCounts { answered, failed, denied, limited, abandoned, withheld, retried } = calls;
        let (unserved, now) = (self.api.list_unserved(), self.clock.now());
        let calls = [
            ("answered", answered),
            ("failed", failed),
            ("denied", denied),
            ("limited", limited),
            ("abandoned", abandoned),
            ("retried", retried),
        ];
        UpstreamState {
            name: name.to_string(),
            kind: "armcloud",
            reachable: open.is_none() && self.refresh.is_reachable(),
            age_seconds: self.ledger.age().map(|age| age.as_secs()),
            targets: self.ledger.count() as u64,
            calls: calls.to_vec(),
            waiting: waiting as u64,
            refused: withheld,
            unserved: unserved.into_iter().map(|(call, until)| (call.name(), until.since(now).as_secs())).collect(),
            ..UpstreamState::default()
        }
    }
}

#[async_trait]
impl Shell for Armcloud {
    async fn run(&self, id: &DeviceId, script: &str) -> Result<String, Unreachable> {
        let (mut code, now) = (self.code(id)?, self.clock.now());
        let (until, mut pause) = (now.plus(COMMAND_WITHIN), LOOK_AFTER);
        let Accepted { task_id } = loop {
            let body = json!({"padCodes": [code], "scriptContent": script});
            let leave = Leave::until(self.clock.now().plus(LEAVES_WITHIN), &self.clock);
            match self.api.start(ApiCall::AsyncCmd, &body, &code, leave).await {
                // A script only reads, so it may even run twice.
                Err(error) if error.is_too_often() && self.clock.now() < until => {
                    self.clock.sleep_until(self.clock.now().plus(TOO_OFTEN)).await;
                }
                // The pad may have another code since the last list.
                Err(error)
                    if error.is_missing_pad() && self.refresh.at_least(now).await.is_ok() && self.code(id)? != code =>
                {
                    code = self.code(id)?;
                }
                started => break started?,
            }
        };
        loop {
            self.clock.sleep_until(self.clock.now().plus(pause)).await;
            pause *= 2;
            match operations::look_up(&self.api, task_id, &code).await? {
                (Sent::Ok, output) => return Ok(output),
                (Sent::Pending(_), _) if self.clock.now() < until => {}
                (Sent::Pending(_), _) => return Err(Unreachable("a command did not end in time".into())),
                (sent, _) => return Err(Unreachable(sent.to_string().into())),
            }
        }
    }
}

impl From<ApiError> for Unreachable {
    fn from(error: ApiError) -> Self {
        Self(error.why())
    }
}
