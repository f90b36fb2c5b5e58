//! Simulated phones of a vendor that a test directs.

use async_trait::async_trait;
use cloudphone::phones::contract::{
    Command, DeviceId, DeviceSpec, Port, Proxy, ProxyScheme, SessionMode, SessionToken, SetProxyArgs,
};
use cloudphone::phones::port::{
    CheckPort, DeviceSnapshot, Exits, Found, PhoneStart, PhoneWrite, PlatformName, ReadPort, See, Session,
    SessionError, Unreachable, WritePort,
};
use cloudphone::platforms::simulator::Sim;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::Semaphore;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Refusal, Sent, TaskId};
use toolwarrant::text::Secret;

/// Has one text in each field that a vendor fills.
pub(crate) struct Vendor {
    pub(crate) sim: Sim,
    pub(super) text: String,
    /// Counts look-ups with an operation id that equals the given one byte for byte.
    pub(super) looked_up: AtomicUsize,
    /// Has a permit for each reading that has begun.
    pub(crate) arrived: Semaphore,
    /// Each permit lets a reading go on.
    pub(crate) open: Semaphore,
}

impl Vendor {
    pub(crate) fn new(sim: Sim, text: &str, readings: usize) -> Arc<Self> {
        let [arrived, open] = [0, readings].map(Semaphore::new);
        Arc::new(Self { sim, text: text.to_owned(), looked_up: AtomicUsize::new(0), arrived, open })
    }

    fn unreachable<T>(&self, read: Result<T, Unreachable>) -> Result<T, Unreachable> {
        read.map_err(|_| Unreachable(self.text.as_str().into()))
    }

    fn rename(&self, phone: &DeviceSnapshot) -> Arc<DeviceSnapshot> {
        let mut phone = phone.snapshot.clone();
        let text = || self.text.as_str().into();
        phone.name = text();
        phone.spec = Arc::new(DeviceSpec {
            model: Some(text()),
            os_version: Some(text()),
            region: Some(text()),
            ..DeviceSpec::clone(&phone.spec)
        });
        phone.proxy = Some(Proxy { scheme: ProxyScheme::Http, host: text(), port: Port::new(1).expect("a port") });
        Arc::new(phone.into())
    }

    fn operation(&self, name: &str) -> String {
        format!("{}{name}", self.text)
    }

    fn spoil(&self, sent: Sent) -> Sent {
        let text = || self.text.as_str().into();
        match sent {
            Sent::Ok => Sent::Ok,
            Sent::NotSent(_) => Sent::NotSent(text()),
            Sent::Refused(refusal) => Sent::Refused(Refusal { why: text(), ..refusal }),
            Sent::Unsure(_) => Sent::Unsure(text()),
            Sent::Err(_) => Sent::Err(text()),
            Sent::NoAnswer(_) => Sent::NoAnswer(text()),
            Sent::Pending(name) => Sent::Pending(self.operation(&name)),
        }
    }
}

#[async_trait]
impl ReadPort for Vendor {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        let page =
            self.sim.page(after, limit, &mut |phones| phones.iter().for_each(|phone| see(&[&self.rename(phone)])));
        self.unreachable(page)
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        let read = self.sim.read(ids, &mut |phones| phones.iter().for_each(|phone| see(&[&self.rename(phone)])));
        self.unreachable(read)
    }

    async fn read_anew(&self, id: &DeviceId) -> Found {
        self.arrived.add_permits(1);
        self.open.acquire().await.expect("it stays").forget();
        Ok(self.find_all(&[id.as_str()])?.pop())
    }
}

#[async_trait]
impl WritePort for Vendor {
    /// Gives a phone whose id ends with 1 a token of its own, and any other phone the platform's
    /// text.
    async fn session(&self, id: &DeviceId, mode: SessionMode) -> Result<Session, SessionError> {
        let refused = |_| SessionError::Refused(self.text.as_str().into());
        let issued = self.sim.session(id, mode).await.map_err(|error| match error {
            SessionError::Unreachable(_) => SessionError::Unreachable(Unreachable(self.text.as_str().into())),
            SessionError::Refused(_) => refused(()),
        })?;
        let token = match id.as_str().ends_with('1') {
            true => issued.token,
            false => Secret::new(SessionToken::new(&self.text).map_err(|_| refused(()))?),
        };
        let url = format!("https://example.com/{}", self.text).parse().ok().map(Secret::new);
        Ok(Session { token, url, expires_at: issued.expires_at })
    }

    fn facts(&self, write: &PhoneWrite) -> Facts {
        self.sim.facts(write)
    }

    async fn send(&self, request: TaskId, command: &Command, leave: Leave) -> Sent {
        self.spoil(self.sim.send(request, command, leave).await)
    }

    async fn look_up(&self, id: &DeviceId, task: TaskId, operation: Option<&str>) -> Result<Option<Sent>, Unreachable> {
        let own = operation.and_then(|name| name.strip_prefix(&*self.text));
        self.looked_up.fetch_add(usize::from(own.is_some()), Relaxed);
        let known = self.unreachable(self.sim.look_up(id, task, own).await)?;
        Ok(known.map(|sent| self.spoil(sent)))
    }

    async fn exits(&self, id: &DeviceId, proxy: Option<&SetProxyArgs>) -> Result<Exits, Unreachable> {
        self.unreachable(self.sim.exits(id, proxy).await)
    }

    async fn boot_id(&self, id: &DeviceId) -> Result<PhoneStart, Unreachable> {
        let start = self.unreachable(self.sim.boot_id(id).await)?;
        Ok(PhoneStart { value: format!("{} {}", start.value, self.text), ..start })
    }
}

impl CheckPort for Vendor {
    fn state(&self, name: &PlatformName) -> UpstreamState {
        self.sim.state(name)
    }
}
