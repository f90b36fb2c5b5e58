//! The addresses from which a phone makes requests, and what they show of a proxy.

use crate::phones::contract::SetProxyArgs;
use std::net::IpAddr;
use toolwarrant::Verdict;

/// From which addresses requests left at about one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exits {
    /// An ordinary request of the phone.
    pub ordinary: IpAddr,
    /// Two requests that went explicitly through the proxy. `None` if they could not be made, or left from different addresses.
    pub through: Option<Through>,
    /// That of its ordinary requests before a proxy was ever set on it through this server, where that is known.
    pub direct: Option<IpAddr>,
}

/// An address that a proxy shows, by who has asked through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The phone.
    Phone(IpAddr),
    /// This server.
    Server(IpAddr),
}

impl Exits {
    /// Judges whether the phone uses `proxy`, given the address that an ordinary request left from before the send.
    ///
    /// Present: the request left from the address that the proxy shows, or, where nobody could ask through it, from the proxy's own
    /// literal address. Absent: it left from the address of before, which is the phone's own, and the proxy shows another one.
    ///
    /// Without a reading through the proxy nothing is absent, since a proxy that was in force before already looks the same. Two addresses
    /// of which one is IPv6 do not contradict each other: a proxy may have an exit in each family. Nor does a reading that this server
    /// took at a proxy with a name, which may be another machine where the phone looks it up.
    #[must_use]
    pub fn verdict(&self, proxy: &SetProxyArgs, before: IpAddr) -> Verdict {
        let (ordinary, before) = (self.ordinary.to_canonical(), before.to_canonical());
        let through = self.through.map(Through::canonical);
        let literal = proxy.host_address();
        if through.map(Through::address).or(literal) == Some(ordinary) {
            return Verdict::Present;
        }
        let comparable = match through {
            Some(Through::Phone(shown)) => shown.is_ipv4() == ordinary.is_ipv4(),
            Some(Through::Server(shown)) => shown.is_ipv4() == ordinary.is_ipv4() && literal.is_some(),
            None => false,
        };
        let own = self.direct.map(|address| address.to_canonical()) == Some(before);
        match comparable && own && ordinary == before && Some(ordinary) != literal {
            true => Verdict::Absent,
            false => Verdict::Unreadable,
        }
    }
}

impl Through {
    fn canonical(self) -> Self {
        match self {
            Self::Phone(address) => Self::Phone(address.to_canonical()),
            Self::Server(address) => Self::Server(address.to_canonical()),
        }
    }

    /// The address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        let (Self::Phone(address) | Self::Server(address)) = self;
        address
    }
}

impl SetProxyArgs {
    /// Returns the host of the proxy as an address, if it is one.
    pub(crate) fn host_address(&self) -> Option<IpAddr> {
        self.host.as_str().parse().ok().map(|address: IpAddr| address.to_canonical())
    }
}
