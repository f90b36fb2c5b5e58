//! A row as clients see it: no state that may be out of date.

use super::conditions::{Condition, Remedy, condition};
use super::pad::{Pad, PadViews};
use crate::adapter_kit::phone_ledger::{KeptRow, Row};
use crate::phones::contract::{DeviceId, DeviceSpec, PowerAction, ProxyScheme, SessionMode, texts};
use crate::phones::port::{DeviceReading, DeviceSnapshot, Offers, Paces};
use std::borrow::Cow;
use std::sync::Arc;
use toolwarrant::handler::Flag;
use toolwarrant::text::Untrusted;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Prefixes of the codes of pads that can be booted and shut down: on ARMCloud network-storage
    /// pads (`ACN`), on VMOS pads that are paid by time. Lists do not identify them.
    pub on_off: Vec<String>,
    pub paces: Paces,
}

/// One bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnservedOperations(pub u8);

impl UnservedOperations {
    pub const PROXY: u8 = 1;
    pub const SESSION: u8 = 2;
    pub const BOOT: u8 = 4;
    pub const SHUTDOWN: u8 = 8;
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

const NOT_SERVED: &str = "the platform does not serve this operation at present, and is asked again within an hour";

impl Abilities {
    fn has_on_off(&self, code: &str) -> bool {
        self.on_off.iter().any(|prefix| code.starts_with(prefix.as_str()))
    }

    /// Without a set of operations, the row may be out of date.
    pub fn snapshot<'a>(
        &self,
        id: &DeviceId,
        row: &'a KeptRow<Pad>,
        unserved: Option<UnservedOperations>,
    ) -> &'a Arc<DeviceSnapshot> {
        let PadViews { usual, limited } = &row.made;
        let view = match unserved {
            Some(UnservedOperations(set @ 1..32)) => &limited.get_or_init(Box::default)[usize::from(set)],
            _ => &usual[usize::from(unserved.is_some())],
        };
        view.get_or_init(|| Arc::new(self.reading(id, row, unserved).into()))
    }

    #[must_use]
    pub fn reading(&self, id: &DeviceId, row: &Pad, unserved: Option<UnservedOperations>) -> DeviceReading {
        let condition = condition(row.pad_status, row.cvm_status, row.online);
        let offers = self.offers(row, condition);
        let has_on_off = self.has_on_off(row.code());
        let mut reading = DeviceReading {
            id: id.clone(),
            name: row.pad_name.clone().unwrap_or_else(|| Untrusted::clean(row.code())),
            state: condition.state.filter(|_| unserved.is_some()),
            offers: if unserved.is_some() { offers } else { unreachable(offers) },
            spec: Arc::new(row.spec()),
            power_actions: Cow::Borrowed(if has_on_off { PowerAction::ALL } else { &[PowerAction::Restart] }),
            // `http-relay` is plain HTTP to the proxy.
            proxy_schemes: Cow::Borrowed(&[ProxyScheme::Http, ProxyScheme::Socks5]),
            proxy: None,
            // A token of the platform always lets its holder send input.
            session_modes: Cow::Borrowed(&[SessionMode::Control]),
            paces: self.paces,
        };
        if let Some(unserved @ UnservedOperations(1..)) = unserved {
            limit(&mut reading, unserved);
        }
        reading
    }

    /// Returns the flags. In a condition that passes, calls can be repeated.
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
        let (model, os_version, region) = (model.cloned(), system.map(number_of), self.idc_code.clone());
        DeviceSpec { model, os_version, region, ..DeviceSpec::default() }
    }
}

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

fn all(flag: Flag) -> Offers {
    Offers { proxy: flag.clone(), power: flag.clone(), session: flag }
}

fn unreachable(Offers { proxy, power, session }: Offers) -> Offers {
    let [proxy, power, session] = [proxy, power, session].map(|flag| match flag {
        Flag::Offered | Flag::Unreachable | Flag::Passing(_) => Flag::Unreachable,
        Flag::Refused(_) | Flag::Curable { .. } => flag,
    });
    Offers { proxy, power, session }
}

/// Returns 14 for `android14` and `Android14`.
fn number_of(version: &Untrusted) -> Untrusted {
    let text = version.as_str();
    match text.split_at_checked("android".len()) {
        Some((head, number)) if head.eq_ignore_ascii_case("android") && !number.is_empty() => Untrusted::clean(number),
        _ => version.clone(),
    }
}
