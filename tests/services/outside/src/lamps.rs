//! Two lamps, which answer calls and carry writes out.

use crate::contract::{Command, DimLampArgs, DimLampError, GetLampArgs, GetLampError, Lamp, LampCapabilities};
use crate::contract::{LampCapability, LampId, LampsTools, Percent};
use std::sync::atomic::{AtomicI64, Ordering};
use toolwarrant::BoxFuture;
use toolwarrant::handler::{Call, Caller, Flag, Reply, Resource, Target, Unresolved};
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Verdict, Write};

/// In percent.
#[derive(Default)]
pub struct Lamps {
    desk: AtomicI64,
    door: AtomicI64,
}

impl Lamps {
    fn find(&self, id: &str) -> Option<&AtomicI64> {
        match id {
            "desk" => Some(&self.desk),
            "door" => Some(&self.door),
            _ => None,
        }
    }

    fn order(&self, write: &Write) -> Option<(&AtomicI64, i64)> {
        let Command::DimLamp(args) = Command::read(&write.tool, write.arguments.expose())?;
        Some((self.find(args.lamp_id.as_str())?, args.light.get()))
    }
}

impl Resource<LampId> for Lamps {
    type View = Lamp;
    type Capability = LampCapability;

    async fn resolve(&self, _: &Caller, id: &LampId) -> Result<Lamp, Unresolved> {
        let lamp = self.find(id.as_str()).ok_or(Unresolved::NotFound)?;
        let light = Percent::new(lamp.load(Ordering::Relaxed))
            .map_err(|why| Unresolved::Unavailable(why.to_string().into()))?;
        Ok(Lamp { lamp_id: id.clone(), light, capabilities: LampCapabilities { dim: true } })
    }

    fn flag(lamp: &Lamp, LampCapability::Dim: LampCapability) -> Flag {
        if lamp.capabilities.dim { Flag::Offered } else { Flag::Refused("it has no dimmer") }
    }
}

impl LampsTools for Lamps {
    async fn get_lamp(&self, _: &Call<'_>, lamp: &Target<Lamp>, _: GetLampArgs) -> Result<Reply<Lamp>, GetLampError> {
        Ok(Lamp::clone(lamp).into())
    }

    async fn dim_lamp(&self, _: &Call<'_>, _: &Target<Lamp>, args: DimLampArgs) -> Result<Command, DimLampError> {
        Ok(Command::DimLamp(args))
    }
}

impl Executor for Lamps {
    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let Some((lamp, light)) = self.order(write) else { return Sent::NotSent("no such lamp".into()) };
            if let Err(why) = leave.confirm() {
                return Sent::NotSent(why);
            }
            lamp.store(light, Ordering::Relaxed);
            Sent::Ok
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            let read = self.order(write).map(|(lamp, light)| (lamp.load(Ordering::Relaxed), light));
            let verdict = match read {
                Some((seen, light)) if seen == light => Verdict::Present,
                Some(_) => Verdict::Absent,
                None => Verdict::Unreadable,
            };
            let (seen, light) = read.unzip();
            let shown = |light: Option<i64>| light.map_or("no light".to_owned(), |light| format!("{light} percent"));
            Reading { verdict, expected: shown(light).into(), observed: shown(seen).into() }
        })
    }
}
