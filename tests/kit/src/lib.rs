//! Starts programs for tests and measurements, operates and watches them.
//!
//! It knows a program only by its command line and its answers, and depends on no other crate of
//! the workspace. It does not check behaviour: an error always means that a program cannot be
//! started or reached, or gives an unexpected answer. Start at [`Start`].

mod http;
mod mcp;
mod operator;
mod postgres;
mod process;
mod program;
mod proxy;
mod rack;
mod relay;
mod scenario;
mod waiting;

pub use http::{HttpAnswer, exchange, get, send};
pub use mcp::{KeyPair, call, outcome, rpc};
pub use operator::ProgramOperator;
pub use postgres::{PostgresPair, TestPostgres};
pub use process::{Process, lacks, signal};
pub use program::{Instance, Start};
pub use proxy::ProxyClient;
pub use rack::{PROXY_LOGIN, PhoneAct, PhoneFault, Rack, RackPhone, RackProxy, RackServer, write_program};
pub use relay::{LinkRelay, LinkState};
pub use scenario::play;
pub use waiting::wait_for;
