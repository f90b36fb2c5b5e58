//! The operator's side of a service: names, flags, commands, lists, checks and upstreams.
//!
//! # Flags
//!
//! [`Flags`] is any type that derives `clap::Args`. Flags of a group whose name begins with `both-`
//! are given together or not at all. The values are in [`Setup::flags`](crate::Setup::flags).
//!
//! ```
//! use toolwarrant::Program;
//! use toolwarrant::operator::Names;
//!
//! #[derive(Clone, clap::Args)]
//! struct LampFlags {
//!     /// Light of all lamps at the start, in percent
//!     #[arg(long, default_value_t = 0)]
//!     light: u8,
//! }
//!
//! let names = Names::of("lamps", "0.1.0");
//! let program = Program::<LampFlags>::with_names(names, "Serves lamps.");
//! ```
//!
//! # Lists
//!
//! An [`Inventory`] lists what tools act on. It also lets the operator assign only ids that exist.
//!
//! ```
//! use serde_json::Map;
//! use toolwarrant::BoxFuture;
//! use toolwarrant::operator::{Explanation, Inventory, Item};
//!
//! /// Lamps, in the order of their ids.
//! struct Lamps(Vec<String>);
//!
//! impl Inventory for Lamps {
//!     fn page<'a>(
//!         &'a self,
//!         _resource: &'static str,
//!         after: Option<&'a str>,
//!         limit: u16,
//!     ) -> BoxFuture<'a, Result<Vec<Item>, Explanation>> {
//!         let ids = self.0.iter().filter(move |id| after.is_none_or(|after| id.as_str() > after));
//!         let item = |id: &String| Item {
//!             id: id.clone(),
//!             shown: Map::from_iter([("lamp_id".to_owned(), id.as_str().into())]),
//!         };
//!         Box::pin(async move { Ok(ids.take(limit.into()).map(item).collect()) })
//!     }
//!
//!     fn missing<'a>(
//!         &'a self,
//!         _resource: &'static str,
//!         ids: &'a [String],
//!     ) -> BoxFuture<'a, Result<Option<String>, Explanation>> {
//!         Box::pin(async move { Ok(ids.iter().find(|id| !self.0.contains(id)).cloned()) })
//!     }
//! }
//! ```
//!
//! # Commands
//!
//! An enum that implements [`OwnCommand`] describes commands; [`Commands`] carries them out, in the
//! server if one runs.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use serde_json::{Value, json};
//! use toolwarrant::BoxFuture;
//! use toolwarrant::operator::{Commands, Explanation, OwnCommand};
//!
//! #[derive(clap::Subcommand, Serialize, Deserialize)]
//! enum LampCommand {
//!     /// Switch all lamps off
//!     Dark {
//!         /// Switch them off without asking
//!         #[arg(long)]
//!         yes: bool,
//!     },
//! }
//!
//! impl OwnCommand for LampCommand {
//!     fn question(&self) -> Option<String> {
//!         let Self::Dark { yes } = self;
//!         (!yes).then(|| "Switch all lamps off?".to_owned())
//!     }
//! }
//!
//! struct Lamps;
//!
//! impl Commands<LampCommand> for Lamps {
//!     fn execute(&self, command: LampCommand) -> BoxFuture<'_, Result<Value, Explanation>> {
//!         let LampCommand::Dark { yes: _ } = command;
//!         Box::pin(async { Ok(json!({"switched_off": 2})) })
//!     }
//! }
//! ```
//!
//! # Upstreams
//!
//! [`Upstreams`] reports the systems behind the service to the metrics and to `/readyz`.
//!
//! ```
//! use toolwarrant::operator::{UpstreamState, Upstreams};
//!
//! struct Lamps;
//!
//! impl Upstreams for Lamps {
//!     fn states(&self) -> Vec<UpstreamState> {
//!         vec![UpstreamState {
//!             name: "home".to_owned(),
//!             kind: "hub",
//!             reachable: true,
//!             prefix: Some("home-".to_owned()),
//!             age_seconds: Some(4),
//!             targets: 2,
//!             calls: vec![("ok", 17), ("failed", 0)],
//!             waiting: 0,
//!             refused: 0,
//!             unserved: Vec::new(),
//!         }]
//!     }
//! }
//! ```

pub use toolwarrant_core::registry::KeyPrefixes;
pub use toolwarrant_operator::cli::{Flags, NoFlags};
pub use toolwarrant_operator::data::DataFolder;
pub use toolwarrant_operator::{
    Check, Commands, Explanation, Inventory, Item, Names, NoCommands, OwnCommand, States, UpstreamState, Upstreams,
    VisitState,
};
