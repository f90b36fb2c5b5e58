//! Every phone before its first command: a function of the seed and its index.

use super::cast::{CAST, Part};
use crate::phones::contract::{DeviceId, DeviceSpec, Screen};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, LazyLock};
use toolwarrant::base::SplitMix;
use toolwarrant::text::Untrusted;

pub(super) const DEVICES_MAX: u32 = 1_000_000;

/// Returns an id of seven digits, so that ids and indices have the same order.
pub(super) fn device_id(index: u32) -> DeviceId {
    let Ok(id) = DeviceId::new(&format!("phone-{index:07}")) else { unreachable!("letters, a dash and seven digits") };
    id
}

pub(super) fn index(id: &str, devices: u32) -> Option<u32> {
    let digits = id.strip_prefix("phone-").filter(|digits| digits.len() == 7 && !digits.starts_with('+'))?;
    digits.parse().ok().filter(|index| (1..=devices).contains(index))
}

/// Returns the first index whose id is greater than `id`, also if no phone has it.
pub(super) fn index_after(id: &DeviceId, devices: u32) -> u32 {
    let (mut low, mut high) = (1, devices + 1);
    while low < high {
        let middle = low.midpoint(high);
        if device_id(middle) <= *id { low = middle + 1 } else { high = middle }
    }
    low
}

/// Draws the part and the spec of a phone: the same at all times. After the cast, every second
/// phone is plain and the rest draw any part.
pub(super) fn draw(seed: u64, index: u32) -> (Part, Arc<DeviceSpec>) {
    static SPECS: LazyLock<[[Arc<DeviceSpec>; REGIONS.len()]; MODELS.len()]> =
        LazyLock::new(|| MODELS.map(|model| REGIONS.map(|region| Arc::new(spec(model, region)))));
    let mut draw = SplitMix(seed ^ (u64::from(index) << 32));
    let part = match CAST.get(index as usize - 1) {
        Some(part) => *part,
        None if draw.next().is_multiple_of(2) => Part::Plain,
        None => CAST[draw.below(CAST.len() as u64) as usize],
    };
    let [model, region] = [MODELS.len(), REGIONS.len()].map(|count| draw.below(count as u64) as usize);
    (part, SPECS[model][region].clone())
}

fn spec((model, os_version, numbers): Model, region: &str) -> DeviceSpec {
    let [cpu_cores, memory_mb, storage_gb, width_px, height_px, dpi] = numbers;
    DeviceSpec {
        model: Some(Untrusted::clean(model)),
        os_version: Some(Untrusted::clean(os_version)),
        cpu_cores: Some(cpu_cores),
        memory_mb: Some(memory_mb),
        storage_gb: Some(storage_gb),
        screen: Some(Screen { width_px, height_px, dpi }),
        region: Some(Untrusted::clean(region)),
    }
}

type Model = (&'static str, &'static str, [i64; 6]);

/// Name, Android version, cores, memory in MB, storage in GB, screen width, height and density.
const MODELS: [Model; 4] = [
    ("Cirrus S", "12", [4, 4_096, 32, 720, 1_280, 320]),
    ("Cirrus M", "13", [8, 6_144, 64, 1_080, 1_920, 420]),
    ("Cirrus L", "14", [8, 8_192, 128, 1_080, 2_400, 440]),
    ("Cirrus XL", "15", [12, 16_384, 256, 1_440, 3_120, 560]),
];

const REGIONS: [&str; 5] = ["ap-southeast", "eu-central", "eu-west", "us-east", "us-west"];

/// In 2001:db8::/32, for documentation (RFC 3849).
pub(super) enum Network {
    Phones = 0,
    Proxies = 1,
    Rotating = 2,
}

impl Network {
    pub(super) fn address(self, host: u64) -> IpAddr {
        Ipv6Addr::from_bits(0x2001_0db8 << 96 | (self as u128) << 80 | u128::from(host)).into()
    }
}
