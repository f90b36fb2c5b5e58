//! Lamps that outlive the program: each is a file in a folder next to the data, and `sends` there
//! has a line for each command. No answer arrives and no meter can be read before `open` exists.
//!
//! The id of a lamp says how it behaves. `plain` obeys. `broken` reports success and stays dark.
//! `quiet` obeys and never answers.

use crate::contract::{Command, DimLampArgs, DimLampError, GetLampArgs, GetLampError, Lamp, LampCapabilities};
use crate::contract::{LampCapability, LampId, LampsTools, Percent};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use toolwarrant::BoxFuture;
use toolwarrant::handler::{Call, Caller, Flag, Reply, Resource, Target, Unresolved};
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Verdict, Write};

pub struct LampFolder(pub PathBuf);

impl LampFolder {
    fn light(&self, lamp: &str) -> i64 {
        fs::read_to_string(self.0.join(lamp)).ok().and_then(|light| light.parse().ok()).unwrap_or(0)
    }

    fn is_open(&self) -> bool {
        self.0.join("open").exists()
    }
}

fn order(write: &Write) -> Option<(String, i64)> {
    let Command::DimLamp(args) = Command::read(&write.tool, write.arguments.expose())?;
    Some((args.lamp_id.as_str().to_owned(), args.light.get()))
}

impl Resource<LampId> for LampFolder {
    type View = Lamp;
    type Capability = LampCapability;

    async fn resolve(&self, _: &Caller, id: &LampId) -> Result<Lamp, Unresolved> {
        let light =
            Percent::new(self.light(id.as_str())).map_err(|why| Unresolved::Unavailable(why.to_string().into()))?;
        Ok(Lamp { lamp_id: id.clone(), light, capabilities: LampCapabilities { dim: true } })
    }

    fn flag(_: &Lamp, LampCapability::Dim: LampCapability) -> Flag {
        Flag::Offered
    }
}

impl LampsTools for LampFolder {
    async fn get_lamp(&self, _: &Call<'_>, lamp: &Target<Lamp>, _: GetLampArgs) -> Result<Reply<Lamp>, GetLampError> {
        Ok(Lamp::clone(lamp).into())
    }

    async fn dim_lamp(&self, _: &Call<'_>, _: &Target<Lamp>, args: DimLampArgs) -> Result<Command, DimLampError> {
        Ok(Command::DimLamp(args))
    }
}

impl Executor for LampFolder {
    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let Some((lamp, light)) = order(write) else { return Sent::NotSent("no such lamp".into()) };
            if let Err(why) = leave.confirm() {
                return Sent::NotSent(why);
            }
            let journal = File::options().create(true).append(true).open(self.0.join("sends"));
            let noted = journal.and_then(|mut journal| journal.write_all(format!("{lamp} {}\n", write.id).as_bytes()));
            if noted.is_err()
                || (!lamp.starts_with("broken") && fs::write(self.0.join(&lamp), light.to_string()).is_err())
            {
                return Sent::Err("the folder cannot be written".into());
            }
            if lamp.starts_with("quiet") { Sent::NoAnswer("silence".into()) } else { Sent::Pending(lamp) }
        })
    }

    fn look_up<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        let pending = || Sent::Pending(write.operation.clone().unwrap_or_default());
        let sent = if self.is_open() { Sent::Ok } else { pending() };
        Box::pin(async move { Ok(Some(sent)) })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        let read = order(write).filter(|_| self.is_open()).map(|(lamp, light)| (self.light(&lamp), light));
        let verdict = match read {
            Some((seen, light)) if seen == light => Verdict::Present,
            Some(_) => Verdict::Absent,
            None => Verdict::Unreadable,
        };
        let (expected, observed) = ("the light that was asked for".into(), format!("{read:?}").into());
        Box::pin(async move { Reading { verdict, expected, observed } })
    }
}
