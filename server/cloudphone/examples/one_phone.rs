//! Another platform: one phone, which does what it is asked. Written against the public interface
//! of `cloudphone`.

use async_trait::async_trait;
use cloudphone::phones::contract::{Command, DeviceId, DeviceState, Proxy, ProxyScheme, SetProxyArgs};
use cloudphone::phones::platforms::Platforms;
use cloudphone::phones::port::{
    AtHand, CheckPort, DeviceReading, DeviceSnapshot, Exits, Offers, Paces, PhoneStart, PhoneWrite, PlatformName,
    ReadPort, See, Through, Unreachable, WritePort,
};
use cloudphone::{OwnFlags, program, service};
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use toolwarrant::Setup;
use toolwarrant::base::ignore_poison;
use toolwarrant::handler::Flag;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Sent, TaskId};
use toolwarrant::text::Untrusted;

fn main() -> ExitCode {
    program::<OwnFlags>().run(|Setup { flags, clock, passes, .. }| {
        // The ids of its phones begin with this name.
        let platforms = Platforms::default().with(PlatformName::parse("the")?, Arc::new(OnePhone::new()?));
        Ok(service(Arc::new(platforms), flags, clock, passes))
    })
}

/// The platform. Nothing is stored: the phone is reset when the program starts.
struct OnePhone {
    id: DeviceId,
    proxy: Mutex<Option<SetProxyArgs>>,
}

impl OnePhone {
    fn new() -> anyhow::Result<Self> {
        Ok(Self { id: DeviceId::new("the-phone").map_err(anyhow::Error::msg)?, proxy: Mutex::default() })
    }

    fn proxy(&self) -> Option<SetProxyArgs> {
        ignore_poison(self.proxy.lock()).clone()
    }

    fn set_proxy(&self, proxy: Option<SetProxyArgs>) -> Sent {
        *ignore_poison(self.proxy.lock()) = proxy;
        Sent::Ok
    }

    /// Returns the phone. An adapter of many phones would return the same value until the phone
    /// changes.
    fn snapshot(&self) -> Arc<DeviceSnapshot> {
        Arc::new(DeviceSnapshot::from(DeviceReading {
            id: self.id.clone(),
            name: Untrusted::clean("The phone"),
            state: Some(DeviceState::Running),
            offers: Offers {
                proxy: Flag::Offered,
                power: Flag::Refused("it is always on"),
                session: Flag::Refused("it has no screen"),
            },
            spec: Arc::default(),
            power_actions: Vec::new().into(),
            proxy_schemes: vec![ProxyScheme::Http].into(),
            proxy: self.proxy().map(|set| Proxy {
                scheme: set.scheme,
                host: Untrusted::clean(set.host.as_str()),
                port: set.port,
            }),
            session_modes: Vec::new().into(),
            paces: Paces::default(),
        }))
    }
}

impl ReadPort for OnePhone {
    fn page(&self, after: Option<&DeviceId>, _: u16, see: See<'_>) -> Result<(), Unreachable> {
        if after.is_none_or(|after| *after < self.id) {
            see(&[&self.snapshot()]);
        }
        Ok(())
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        if ids.contains(&self.id.as_str()) {
            see(&[&self.snapshot()]);
        }
        Ok(())
    }

    fn at_hand(&self, id: &DeviceId) -> AtHand {
        AtHand::Now(Ok((*id == self.id).then(|| self.snapshot())))
    }
}

#[async_trait]
impl WritePort for OnePhone {
    fn facts(&self, _: &PhoneWrite) -> Facts {
        Facts::default()
    }

    async fn send(&self, _: TaskId, command: &Command, leave: Leave) -> Sent {
        if let Err(why) = leave.confirm() {
            return Sent::NotSent(why);
        }
        match command {
            Command::SetProxy(set) => self.set_proxy(Some(set.clone())),
            Command::ClearProxy(_) => self.set_proxy(None),
            Command::SetPower(_) => Sent::NotSent("it is always on".into()),
        }
    }

    async fn look_up(&self, _: &DeviceId, _: TaskId, _: Option<&str>) -> Result<Option<Sent>, Unreachable> {
        Ok(None)
    }

    async fn exits(&self, _: &DeviceId, proxy: Option<&SetProxyArgs>) -> Result<Exits, Unreachable> {
        let seen = |proxy: Option<SetProxyArgs>| -> Result<IpAddr, Unreachable> {
            let address = proxy.map_or_else(|| "198.51.100.1".to_owned(), |proxy| proxy.host.as_str().to_owned());
            address.parse().map_err(|_| Unreachable(format!("{address} is no address").into()))
        };
        let through = proxy.map(|proxy| seen(Some(proxy.clone())).map(Through::Phone)).transpose();
        let (ordinary, direct) = (seen(self.proxy())?, seen(None).ok());
        Ok(Exits { direct, ..Exits::of(ordinary, through?) })
    }

    async fn boot_id(&self, _: &DeviceId) -> Result<PhoneStart, Unreachable> {
        Ok(PhoneStart { value: "the only one".to_owned(), on: None, age: None })
    }
}

impl CheckPort for OnePhone {
    fn state(&self, name: &PlatformName) -> UpstreamState {
        let (name, kind) = (name.to_string(), "example");
        UpstreamState { name, kind, reachable: true, age_seconds: Some(0), targets: 1, ..UpstreamState::default() }
    }
}
