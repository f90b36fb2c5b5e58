//! A row as clients see it: the capabilities that the pad really has, and no state that may be out
//! of date.

use super::conditions::{Condition, Remedy, condition};
use super::pad::{Pad, PadViews};
use crate::adapter_kit::phone_ledger::{KeptRow, Row, is_current};
use crate::phones::contract::{DeviceId, DeviceSpec, PowerAction, ProxyScheme, SessionMode, texts};
use crate::phones::port::{DeviceReading, DeviceSnapshot, Offers, Paces};
use std::borrow::Cow;
use std::sync::Arc;
use toolwarrant::Timestamp;
use toolwarrant::handler::Flag;
use toolwarrant::text::Untrusted;

/// The abilities of the pads of one account that their rows do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// The prefixes of the codes of pads that can be booted and shut down. Lists do not identify
    /// these pads. On ARMCloud they are network-storage pads, whose codes begin with `ACN`; on
    /// VMOS, pads that are paid by time.
    pub on_off: Vec<String>,
    /// The durations of writes.
    pub paces: Paces,
}

/// The availability of the platform now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It answers.
    Reachable,
    /// It does not answer, so the state of its phones is not known.
    Unreachable,
}

/// The operations that the platform does not serve at present: a set of one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnservedOperations(pub u8);

impl UnservedOperations {
    /// Setting and clearing the proxy.
    pub const PROXY: u8 = 1;
    /// Screen sessions.
    pub const SESSION: u8 = 2;
    /// Booting.
    pub const BOOT: u8 = 4;
    /// Shutting down.
    pub const SHUTDOWN: u8 = 8;
    /// Restarting.
    pub const RESTART: u8 = 16;

    fn has(self, operation: u8) -> bool {
        self.0 & operation != 0
    }

    fn has_power(self, action: PowerAction) -> bool {
        self.has(match action {
            PowerAction::Boot => Self::BOOT,
            PowerAction::Shutdown => Self::SHUTDOWN,
            PowerAction::Restart => Self::RESTART,
        })
    }
}

/// The reason of a flag that is false because the platform answers 404.
const NOT_SERVED: &str = "the platform does not serve this operation at present, and is asked again within an hour";

impl Reach {
    /// Returns the reach for a row whose reading began at `read_at`: an old row does not show that
    /// its phone can be reached.
    #[must_use]
    pub fn of_row(self, read_at: Timestamp, now: Timestamp) -> Self {
        if is_current(read_at, now) { self } else { Self::Unreachable }
    }
}

impl Abilities {
    /// Returns the abilities of ARMCloud's pads, unless the operator configures others.
    #[must_use]
    pub fn of_network_storage() -> Self {
        Self { on_off: vec!["ACN".to_owned()], ..Self::default() }
    }

    /// Returns true if a pad can be booted and shut down, and not only restarted.
    #[must_use]
    pub fn has_on_off(&self, code: &str) -> bool {
        self.on_off.iter().any(|prefix| code.starts_with(prefix.as_str()))
    }

    /// Returns a pad as clients see it: the same value until it looks different.
    pub fn snapshot<'a>(
        &self,
        id: &DeviceId,
        row: &'a KeptRow<Pad>,
        reach: Reach,
        unserved: UnservedOperations,
    ) -> &'a Arc<DeviceSnapshot> {
        let PadViews { usual, limited } = &row.made;
        let view = match (reach, unserved.0) {
            (Reach::Reachable, set @ 1..32) => &limited.get_or_init(Box::default)[usize::from(set)],
            _ => &usual[reach as usize],
        };
        view.get_or_init(|| {
            let mut reading = self.reading(id, row, reach);
            if reach == Reach::Reachable && unserved != UnservedOperations::default() {
                limit(&mut reading, unserved);
            }
            Arc::new(reading.into())
        })
    }

    /// Makes the snapshot of a pad.
    #[must_use]
    pub fn reading(&self, id: &DeviceId, row: &Pad, reach: Reach) -> DeviceReading {
        let condition = condition(row.pad_status, row.cvm_status, row.online);
        let offers = self.offers(row, condition);
        let (state, offers) = match reach {
            Reach::Reachable => (condition.state, offers),
            Reach::Unreachable => (None, unreachable(offers)),
        };
        let has_on_off = self.has_on_off(row.code());
        DeviceReading {
            id: id.clone(),
            name: row.pad_name.clone().unwrap_or_else(|| Untrusted::clean(row.code())),
            state,
            offers,
            spec: Arc::new(row.spec()),
            power_actions: Cow::Borrowed(if has_on_off { PowerAction::ALL } else { &[PowerAction::Restart] }),
            // `http-relay` is plain HTTP to the proxy.
            proxy_schemes: Cow::Borrowed(&[ProxyScheme::Http, ProxyScheme::Socks5]),
            proxy: None,
            // A token of the platform always lets its holder send input.
            session_modes: Cow::Borrowed(&[SessionMode::Control]),
            paces: self.paces,
        }
    }

    /// Returns the flags of a pad in this condition. In one that passes, calls can be repeated.
    fn offers(&self, pad: &Pad, condition: Condition) -> Offers {
        let Condition { state: _, why, way } = condition;
        let has_on_off = self.has_on_off(pad.code());
        let others = match way {
            Remedy::Up => Flag::Offered,
            Remedy::Wait => Flag::Passing(why),
            Remedy::Boot if has_on_off => Flag::Curable { why, cure: texts::BOOT_FIRST },
            Remedy::Boot | Remedy::Restart | Remedy::Shutdown | Remedy::None => Flag::Refused(why),
        };
        match way {
            Remedy::Boot | Remedy::Shutdown if !has_on_off => all(others),
            Remedy::Boot | Remedy::Shutdown | Remedy::Restart => Offers { power: Flag::Offered, ..all(others) },
            Remedy::Up | Remedy::Wait | Remedy::None => all(others),
        }
    }
}

impl Pad {
    fn spec(&self) -> DeviceSpec {
        let system = [&self.android_version, &self.image_version, &self.rom_version].into_iter().flatten().next();
        let model = [&self.config_name, &self.good_name, &self.pad_grade].into_iter().flatten().next();
        DeviceSpec {
            model: model.cloned(),
            os_version: system.map(number_of),
            cpu_cores: None,
            memory_mb: None,
            storage_gb: None,
            screen: None,
            region: self.idc_code.clone(),
        }
    }
}

/// Makes the capabilities false that the platform does not serve.
fn limit(reading: &mut DeviceReading, unserved: UnservedOperations) {
    reading.power_actions.to_mut().retain(|action| !unserved.has_power(*action));
    let Offers { proxy, power, session } = &mut reading.offers;
    let is_unserved = [
        (proxy, unserved.has(UnservedOperations::PROXY)),
        (power, reading.power_actions.is_empty()),
        (session, unserved.has(UnservedOperations::SESSION)),
    ];
    for (flag, is_unserved) in is_unserved {
        if is_unserved && *flag == Flag::Offered {
            *flag = Flag::Refused(NOT_SERVED);
        }
    }
}

/// Returns the same flag for each capability.
fn all(flag: Flag) -> Offers {
    Offers { proxy: flag.clone(), power: flag.clone(), session: flag }
}

/// Returns the flags of a phone whose state is not known now.
fn unreachable(Offers { proxy, power, session }: Offers) -> Offers {
    let [proxy, power, session] = [proxy, power, session].map(|flag| match flag {
        Flag::Offered | Flag::Unreachable | Flag::Passing(_) => Flag::Unreachable,
        Flag::Refused(_) | Flag::Curable { .. } => flag,
    });
    Offers { proxy, power, session }
}

/// Returns the number of a version: 14 for `android14` and `Android14`.
fn number_of(version: &Untrusted) -> Untrusted {
    let text = version.as_str();
    match text.split_at_checked("android".len()) {
        Some((head, number)) if head.eq_ignore_ascii_case("android") && !number.is_empty() => Untrusted::clean(number),
        _ => version.clone(),
    }
}
