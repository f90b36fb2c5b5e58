//! A platform for tests: it shows what a test sets.

use super::contract::{Command, DeviceId, DeviceState, SetProxyArgs};
use super::port::{
    AtHand, CheckPort, DeviceReading, DeviceSnapshot, Exits, Found, Offers, Paces, PhoneStart, PhoneWrite,
    PlatformName, ReadPort, See, Through, Unreachable, WritePort,
};
use async_trait::async_trait;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolwarrant::handler::Flag;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Sent, TaskId};

/// `None` stands for a value that cannot be read.
#[derive(Default)]
pub(crate) struct Staged {
    /// In place of `phones`.
    pub(crate) reads: Option<Arc<dyn ReadPort>>,
    pub(crate) phones: Option<Vec<Arc<DeviceSnapshot>>>,
    pub(crate) own: Option<&'static str>,
    pub(crate) through: Option<&'static str>,
    pub(crate) boot: Option<&'static str>,
    pub(crate) unread: Option<&'static str>,
    pub(crate) age: Option<u64>,
    pub(crate) direct: Option<IpAddr>,
    pub(crate) pause: Option<Duration>,
    pub(crate) asked: Mutex<Vec<(TaskId, Option<String>)>>,
}

fn stage<T>(reading: Option<T>) -> Result<T, Unreachable> {
    reading.ok_or_else(|| Unreachable("the vendor's words".into()))
}

#[async_trait]
impl ReadPort for Staged {
    fn page(&self, after: Option<&DeviceId>, limit: u16, see: See<'_>) -> Result<(), Unreachable> {
        if let Some(reads) = &self.reads {
            return reads.page(after, limit, see);
        }
        let later = stage(self.phones.as_ref())?.iter().filter(|phone| after.is_none_or(|after| phone.id > *after));
        later.take(limit.into()).for_each(|phone| see(&[phone]));
        Ok(())
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        if let Some(reads) = &self.reads {
            return reads.read(ids, see);
        }
        let phones = stage(self.phones.as_ref())?;
        let found = ids.iter().filter_map(|id| phones.iter().find(|phone| phone.id.as_str() == *id));
        found.for_each(|phone| see(&[phone]));
        Ok(())
    }

    fn at_hand(&self, id: &DeviceId) -> AtHand {
        self.reads.as_ref().map_or(AtHand::Nothing, |reads| reads.at_hand(id))
    }

    async fn read_anew(&self, id: &DeviceId) -> Found {
        match &self.reads {
            Some(reads) => reads.read_anew(id).await,
            None => Ok(self.find_all(&[id.as_str()])?.pop()),
        }
    }

    fn retry_after(&self, _: &DeviceId) -> Option<Duration> {
        self.pause
    }
}

#[async_trait]
impl WritePort for Staged {
    fn facts(&self, _: &PhoneWrite) -> Facts {
        Facts::default()
    }

    async fn send(&self, request: TaskId, command: &Command, _: Leave) -> Sent {
        Sent::Pending(format!("{request} {command:?}"))
    }

    async fn look_up(&self, _: &DeviceId, task: TaskId, operation: Option<&str>) -> Result<Option<Sent>, Unreachable> {
        self.asked.lock().unwrap().push((task, operation.map(str::to_owned)));
        Ok(Some(Sent::Ok))
    }

    async fn exits(&self, _: &DeviceId, proxy: Option<&SetProxyArgs>) -> Result<Exits, Unreachable> {
        if let Some(why) = self.unread {
            return Err(Unreachable(why.into()));
        }
        let through = proxy.map(|_| stage(self.through)).transpose()?;
        let through = through.map(|address| Through::Phone(address.parse().unwrap()));
        Ok(Exits { direct: self.direct, ..Exits::of(stage(self.own)?.parse().unwrap(), through) })
    }

    async fn boot_id(&self, _: &DeviceId) -> Result<PhoneStart, Unreachable> {
        let (value, on) =
            stage(self.boot)?.split_once('@').map_or((stage(self.boot)?, None), |(value, on)| (value, Some(on)));
        let (value, on) = (value.to_owned(), on.map(str::to_owned));
        Ok(PhoneStart { value, on, age: self.age.map(Duration::from_secs) })
    }
}

impl CheckPort for Staged {
    fn state(&self, _: &PlatformName) -> UpstreamState {
        UpstreamState::default()
    }
}

pub(crate) fn id(text: &str) -> DeviceId {
    DeviceId::new(text).ok().unwrap()
}

pub(crate) fn name(text: &str) -> PlatformName {
    PlatformName::parse(text).unwrap()
}

pub(crate) fn phone(text: &str, state: Option<DeviceState>) -> Arc<DeviceSnapshot> {
    let reading = DeviceReading {
        id: id(text),
        name: "".into(),
        state,
        offers: Offers { proxy: Flag::Offered, power: Flag::Offered, session: Flag::Offered },
        spec: Arc::default(),
        power_actions: Vec::new().into(),
        proxy_schemes: Vec::new().into(),
        proxy: None,
        session_modes: Vec::new().into(),
        paces: Paces::default(),
    };
    Arc::new(reading.into())
}
