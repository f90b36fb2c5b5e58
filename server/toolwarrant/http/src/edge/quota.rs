//! A quota: the amount of a resource that clients may hold at a time, in total and by address.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use toolwarrant_base::ignore_poison;

#[derive(Debug)]
pub(super) struct Quota {
    most: usize,
    most_each: usize,
    fair: bool,
    taken: Mutex<Shares>,
}

#[derive(Debug, Default)]
struct Shares {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// Dropping it returns the amount.
#[derive(Debug)]
pub(super) struct Share {
    quota: Arc<Quota>,
    address: IpAddr,
    pub(super) amount: usize,
}

impl Quota {
    pub(super) fn new(most: usize, most_each: usize) -> Arc<Self> {
        Arc::new(Self { most, most_each, fair: false, taken: Mutex::default() })
    }

    /// Makes a quota in which an address may hold no more than it leaves for others. However few
    /// addresses take all they can, another one finds as much as each of them holds.
    pub(super) fn fair(most: usize, most_each: usize) -> Arc<Self> {
        Arc::new(Self { most, most_each, fair: true, taken: Mutex::default() })
    }

    pub(super) fn take(self: &Arc<Self>, address: IpAddr, amount: usize) -> Option<Share> {
        let mut share = Share { quota: Arc::clone(self), address: network_of(address), amount: 0 };
        share.grow(amount).then_some(share)
    }

    pub(super) fn has_average(&self, address: IpAddr) -> bool {
        let Shares { total, by_address } = &*self.lock();
        by_address.get(&network_of(address)).is_some_and(|own| own * by_address.len() >= *total)
    }

    #[cfg(test)]
    pub(super) fn total(&self) -> usize {
        self.lock().total
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        ignore_poison(self.taken.lock())
    }
}

impl Share {
    /// Returns false and takes nothing if too little is left.
    pub(super) fn grow(&mut self, amount: usize) -> bool {
        let Quota { most, most_each, fair, .. } = *self.quota;
        let mut taken = self.quota.lock();
        let own = taken.by_address.get(&self.address).copied().unwrap_or(0);
        let left_for_others = if fair { own } else { 0 };
        if amount > most.saturating_sub(taken.total + left_for_others) || amount > most_each.saturating_sub(own) {
            return false;
        }
        taken.total += amount;
        taken.by_address.insert(self.address, own + amount);
        self.amount += amount;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.quota.lock();
        taken.total -= self.amount;
        if let Entry::Occupied(mut own) = taken.by_address.entry(self.address) {
            *own.get_mut() -= self.amount;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_leaves_no_trace_once_its_last_share_is_returned() {
        let quota = Quota::new(10, 10);
        let shares = [quota.take(address("192.0.2.1"), 1), quota.take(address("::ffff:192.0.2.1"), 1)];
        assert_eq!(quota.lock().by_address.get(&address("192.0.2.1")), Some(&2));
        drop(shares);
        assert!(quota.lock().by_address.is_empty() && quota.lock().total == 0);
    }

    #[test]
    fn hosts_of_one_ipv6_network_count_as_one() {
        let quota = Quota::new(10, 1);
        let taken = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::2", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2"]
            .map(|text| quota.take(address(text), 1));
        assert_eq!(taken.each_ref().map(Option::is_some), [true, false, true, true, false, true]);
    }

    #[test]
    fn addresses_that_take_all_they_can_leave_as_much_for_another_one() {
        for addresses in [1, 4, 24] {
            let quota = Quota::fair(1_000, 400);
            let mut shares = Vec::new();
            loop {
                let taken: Vec<_> = (1..=addresses).filter_map(|n| quota.take([192, 0, 2, n].into(), 1)).collect();
                if taken.is_empty() {
                    break;
                }
                shares.extend(taken);
            }
            let held = shares.len() / usize::from(addresses);
            assert!(held <= 400 && quota.take(address("192.0.2.100"), held).is_some(), "{addresses}: {held}");
        }
    }

    #[test]
    fn a_share_that_cannot_grow_keeps_what_it_has() {
        let quota = Quota::new(10, 6);
        let mut one = quota.take(address("192.0.2.1"), 4).expect("a share");
        assert!(!one.grow(3) && one.grow(2));
        assert!(quota.take(address("192.0.2.2"), 5).is_none());
        drop(one);
        assert!(quota.take(address("192.0.2.2"), 5).is_some());
    }
}
