//! The switches: deviations from the platform's usual behaviour, for all pads or for one.
//!
//! `table.rs` lists them. The switch of a pad has priority over the same switch for all pads. A
//! switch can be limited to a number of next calls, and to one endpoint.

mod table;

pub(crate) use table::{Switch, TABLE};

use crate::truth::Seat;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use table::{Row, When};

#[derive(Debug, Default)]
pub(crate) struct Switches {
    all: Set,
    pads: HashMap<Seat, Set>,
}

/// Every value fits its switch, because only [`parse`] makes a set.
pub(crate) type Set = BTreeMap<Switch, Setting>;

#[derive(Clone, Debug)]
pub(crate) struct Setting {
    value: Value,
    calls: Option<u64>,
    endpoint: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) endpoint: &'static str,
    pub(crate) seats: &'a [Seat],
}

impl Switches {
    pub(crate) fn set(&mut self, seat: Option<Seat>, set: Set) {
        match seat {
            None => self.all = set,
            Some(seat) => drop(self.pads.insert(seat, set)),
        }
    }

    pub(crate) fn show(&self, seat: Option<Seat>) -> Value {
        let set = seat.map_or(Some(&self.all), |seat| self.pads.get(&seat));
        let shown = set.into_iter().flatten().map(|(switch, Setting { value, calls, endpoint })| {
            let limits = calls.is_some() || endpoint.is_some();
            let limited = || json!({"value": value, "calls": calls, "endpoint": endpoint});
            (switch.row().name.to_owned(), if limits { limited() } else { value.clone() })
        });
        Value::Object(shown.collect())
    }

    /// Does not count as a call.
    pub(crate) fn look(&self, switch: Switch, seat: Seat) -> Option<&Value> {
        let set = self.pads.get(&seat).and_then(|set| set.get(&switch)).or_else(|| self.all.get(&switch));
        set.map(|setting| &setting.value)
    }

    pub(crate) fn global(&self, switch: Switch) -> Option<&Value> {
        self.all.get(&switch).map(|setting| &setting.value)
    }

    /// Counts as one of the calls of a limited switch.
    pub(crate) fn take(&mut self, switch: Switch, asked: Asked<'_>) -> Option<Value> {
        let holder = asked.seats.iter().find(|seat| {
            self.pads.get(seat).and_then(|set| set.get(&switch)).is_some_and(|setting| setting.is_for(asked.endpoint))
        });
        let set = match holder {
            Some(seat) => self.pads.get_mut(seat)?,
            None => &mut self.all,
        };
        let setting = set.get_mut(&switch).filter(|setting| setting.is_for(asked.endpoint))?;
        let value = setting.value.clone();
        if let Some(calls) = &mut setting.calls {
            *calls -= 1;
            if *calls == 0 {
                set.remove(&switch);
            }
        }
        Some(value)
    }

    pub(crate) fn take_flag(&mut self, switch: Switch, asked: Asked<'_>) -> bool {
        self.take(switch, asked) == Some(Value::Bool(true))
    }

    pub(crate) fn take_number(&mut self, switch: Switch, asked: Asked<'_>) -> Option<i64> {
        self.take(switch, asked)?.as_i64()
    }

    pub(crate) fn take_text(&mut self, switch: Switch, asked: Asked<'_>) -> Option<String> {
        self.take(switch, asked)?.as_str().map(str::to_owned)
    }

    pub(crate) fn take_address(&mut self, switch: Switch, asked: Asked<'_>) -> Option<Ipv4Addr> {
        self.take_text(switch, asked)?.parse().ok()
    }

    pub(crate) fn look_flag(&self, switch: Switch, seat: Seat) -> bool {
        self.look(switch, seat) == Some(&Value::Bool(true))
    }

    pub(crate) fn look_number(&self, switch: Switch, seat: Seat) -> Option<i64> {
        self.look(switch, seat)?.as_i64()
    }

    pub(crate) fn time(&self, switch: Switch, seat: Seat) -> u64 {
        self.look(switch, seat).and_then(Value::as_u64).unwrap_or(switch.row().value.usual())
    }
}

impl Setting {
    fn is_for(&self, endpoint: &str) -> bool {
        self.endpoint.is_none_or(|own| own == endpoint)
    }
}

/// Reads a value, or `{"value": .., "calls": N, "endpoint": NAME}`, by name. `false` and null leave
/// a switch off.
pub(crate) fn parse(written: &Map<String, Value>, is_global: bool, endpoints: &[&'static str]) -> Result<Set, String> {
    let mut set = Set::new();
    for (name, written) in written {
        let Some(row) = TABLE.iter().find(|row| row.name == name) else {
            let known: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
            return Err(format!("there is no switch `{name}`; the switches are {}", known.join(", ")));
        };
        if row.when == When::Platform && !is_global {
            return Err(format!("`{name}` is for the whole platform: set it at /double/switches"));
        }
        let setting = setting(row, written, endpoints)?;
        if !matches!(setting.value, Value::Null | Value::Bool(false)) {
            set.insert(row.switch, setting);
        }
    }
    Ok(set)
}

fn setting(row: &Row, written: &Value, endpoints: &[&'static str]) -> Result<Setting, String> {
    let name = row.name;
    let Value::Object(members) = written else {
        return Ok(Setting { value: row.value.read(name, written)?, calls: None, endpoint: None });
    };
    let mut setting = Setting { value: Value::Null, calls: None, endpoint: None };
    for (member, value) in members {
        match (member.as_str(), row.when) {
            ("value", _) => setting.value = row.value.read(name, value)?,
            ("calls", When::Call | When::Task | When::Shell) => {
                let calls = value.as_u64().filter(|calls| *calls > 0);
                setting.calls = Some(calls.ok_or_else(|| format!("`calls` of `{name}` must be a number from 1"))?);
            }
            ("endpoint", When::Call | When::Task) => {
                let known = endpoints.iter().find(|known| value.as_str() == Some(known));
                let allowed = || format!("`endpoint` of `{name}` must be one of {}", endpoints.join(", "));
                setting.endpoint = Some(known.ok_or_else(allowed)?);
            }
            ("calls" | "endpoint", _) => {
                return Err(format!("`{name}` cannot be limited by `{member}`: {}", row.when.why()));
            }
            _ => return Err(format!("`{name}` has no `{member}`; the members are value, calls, endpoint")),
        }
    }
    Ok(setting)
}
