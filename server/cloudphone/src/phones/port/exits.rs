//! The addresses from which a phone makes requests, and what they prove about a proxy.

use crate::phones::contract::SetProxyArgs;
use std::net::IpAddr;
use toolwarrant::tasks::Verdict;

/// The reason why a phone that runs commands has no address: its requests go nowhere, such as
/// through a dead proxy.
pub const NOTHING_ARRIVED: &str = "a request of the phone did not arrive";

/// The addresses from which requests left at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exits {
    /// The address of an ordinary request of the phone.
    pub ordinary: IpAddr,
    /// The address of two requests that went explicitly through the proxy. `None` if they were not
    /// made, or left from different addresses.
    pub through: Option<Through>,
    /// The address of the phone's ordinary requests before this server ever set a proxy on it, if
    /// known.
    pub direct: Option<IpAddr>,
    /// True if another phone may have the same `direct` address. Its user can make requests come
    /// from there.
    pub is_shared: bool,
    /// The address of the ordinary request in this process's reading before this one.
    pub former: Option<IpAddr>,
    /// The requests in the other family of addresses. `None` if no ordinary request arrived there,
    /// or the operator has no observer there.
    pub other: Option<OtherExits>,
}

/// The addresses from which requests left in the other family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherExits {
    /// The address of an ordinary request of the phone.
    pub ordinary: IpAddr,
    /// The address of two requests that went explicitly through the proxy.
    pub through: Option<IpAddr>,
}

/// The address that a proxy shows, by the machine that made the request through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// The phone.
    Phone(IpAddr),
    /// This server.
    Server(IpAddr),
}

impl Exits {
    /// Makes a reading in one family, of a phone whose other addresses are not known.
    #[must_use]
    pub fn of(ordinary: IpAddr, through: Option<Through>) -> Self {
        Self { ordinary, through, direct: None, is_shared: false, former: None, other: None }
    }

    /// Returns the evidence that the phone uses `proxy`. `before` is the address of an ordinary
    /// request before the send.
    ///
    /// * Present: the request left from the address that the proxy shows, which is not the address
    ///   from before, and no request in the other family left from elsewhere. If no request was
    ///   made through the proxy, its literal address counts instead. If nothing was read before the
    ///   send, the former address or else the phone's own counts as the address from before.
    /// * Undecidable: the address from before is the one that the proxy shows, or none is known. A
    ///   forwarder in front of the callback listener or a network that the phone shares with the
    ///   proxy looks like that.
    /// * Absent: the request left from the address from before, which is the phone's own and no
    ///   other phone's, and the proxy shows another address.
    ///
    /// Without a reading through the proxy, the verdict is never Absent, because a proxy that was
    /// already in force looks the same. Addresses of different families do not contradict each
    /// other, because a proxy may have an exit in each. A reading that this server took at a proxy
    /// with a name does not contradict either: the phone may resolve the name to another machine.
    #[must_use]
    pub fn verdict(&self, proxy: &SetProxyArgs, before: Option<IpAddr>) -> Verdict {
        let [ordinary, through] = [Some(self.ordinary), self.through.map(Through::address)].map(to_canonical);
        let [before, former, direct] = [before, self.former, self.direct].map(to_canonical);
        let literal = proxy.host_address();
        if through.or(literal) == ordinary {
            let leaks = self.other.is_some_and(|other| other.through != Some(other.ordinary));
            return match before.or(former).or(direct) {
                _ if leaks => Verdict::Unreadable,
                Some(known) if Some(known) != ordinary => Verdict::Present,
                _ => Verdict::Undecidable,
            };
        }
        let is_of_one_family = through.map(|shown| shown.is_ipv4()) == ordinary.map(|seen| seen.is_ipv4());
        let contradicts = is_of_one_family && (literal.is_some() || matches!(self.through, Some(Through::Phone(_))));
        let is_own = direct == before && !self.is_shared;
        match contradicts && ordinary == before && is_own && ordinary != literal {
            true => Verdict::Absent,
            false => Verdict::Unreadable,
        }
    }
}

fn to_canonical(address: Option<IpAddr>) -> Option<IpAddr> {
    address.map(|address| address.to_canonical())
}

impl Through {
    /// Returns the address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        let (Self::Phone(address) | Self::Server(address)) = self;
        address
    }
}

impl SetProxyArgs {
    pub(crate) fn host_address(&self) -> Option<IpAddr> {
        self.host.as_str().parse().ok().map(|address: IpAddr| address.to_canonical())
    }
}
