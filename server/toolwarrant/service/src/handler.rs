//! Handlers: the arguments and results of the generated methods, and [`Resource`], which finds the
//! targets of tools.
//!
//! `contract!` generates a trait for each file of `tools/`, with a method for each tool. The
//! framework checks key, permission, arguments and capability before it calls the method.
//!
//! ```
//! mod contract {
//!     toolwarrant::contract!("../../../tests/services/outside/spec"); // "spec" in your crate
//! }
//!
//! use contract::{Command, DimLampArgs, DimLampError, GetLampArgs, GetLampError, LampsTools};
//! use contract::{Lamp, LampCapabilities, LampCapability, LampId, Percent};
//! use toolwarrant::handler::{Call, Caller, Flag, Reply, Resource, Target, Unresolved};
//!
//! struct Lamps;
//!
//! impl Resource<LampId> for Lamps {
//!     type View = Lamp;
//!     type Capability = LampCapability;
//!
//!     async fn resolve(&self, _: &Caller, id: &LampId) -> Result<Lamp, Unresolved> {
//!         if id.as_str() != "desk" {
//!             return Err(Unresolved::NotFound);
//!         }
//!         let light = Percent::new(40).map_err(|_| Unresolved::Unavailable)?;
//!         Ok(Lamp { lamp_id: id.clone(), light, capabilities: LampCapabilities { dim: true } })
//!     }
//!
//!     fn flag(lamp: &Lamp, LampCapability::Dim: LampCapability) -> Flag {
//!         if lamp.capabilities.dim { Flag::Offered } else { Flag::Refused("it has no dimmer") }
//!     }
//! }
//!
//! impl LampsTools for Lamps {
//!     async fn get_lamp(
//!         &self,
//!         _: &Call<'_>,
//!         lamp: &Target<Lamp>,
//!         _: GetLampArgs,
//!     ) -> Result<Reply<Lamp>, GetLampError> {
//!         Ok(Lamp::clone(lamp).into())
//!     }
//!
//!     // A tool with `effect = "task"` returns a command. The executor carries it out.
//!     async fn dim_lamp(
//!         &self,
//!         _: &Call<'_>,
//!         _: &Target<Lamp>,
//!         args: DimLampArgs,
//!     ) -> Result<Command, DimLampError> {
//!         Ok(Command::DimLamp(args))
//!     }
//! }
//! # fn main() {}
//! ```

pub use toolwarrant_core::access::{Caller, Granted, Grants, Run};
pub use toolwarrant_core::handler::{Call, Flag, Resource, Target, Unresolved};
pub use toolwarrant_core::reply::Reply;
