//! HTTP in front of a pipeline. [`edge`] owns connections and their limits, `mcp` serves JSON-RPC
//! at `/mcp`, `v1` serves signed HTTP below `/v1`, and `page` serves a page of the service to
//! browsers. [`people`] serves a site for people, [`monitor`] serves health and metrics, and
//! [`callback`] reports the addresses of callers. No transport knows a tool by name. No other crate
//! of the server uses axum or hyper. Start at `Endpoint::answer`.

pub mod callback;
mod context;
mod credentials;
pub mod edge;
mod endpoint;
mod gate;
mod head;
mod ids;
mod mcp;
pub mod monitor;
mod page;
mod site;
mod v1;

pub use axum::Router;
pub use context::ServerProcess;
pub use endpoint::Endpoint;
pub use gate::Gate;
pub use page::OfferedPage;
pub use site::people;
