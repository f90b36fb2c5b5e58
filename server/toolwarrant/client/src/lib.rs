//! The client's side of a service: `bridge` connects clients that use standard input and output,
//! `call` calls one tool, and `sign` signs one request under `/v1`. Start at [`ClientCommand`],
//! or at [`bridge_program`] for a program that is only a bridge.
//!
//! This crate knows no contract and no server code. It uses no database and no feature of Unix
//! alone, so that the bridge runs where desktop clients run.

mod api_key;
mod bridge;
mod call;
mod cli;
mod connection;
mod error;
mod server_url;
mod sign;

pub use api_key::{ApiKey, KeySource};
pub use bridge::bridge;
pub use call::{Called, ToolShape, call};
pub use cli::{
    CallOptions, ClientCommand, ClientNames, ConnectOptions, KeyOptions, SignOptions, bridge_program,
    ignore_empty_variables,
};
pub use connection::{Connection, Repeat};
pub use error::{ClientError, SetupError, complain};
pub use server_url::ServerUrl;
pub use sign::{SignatureHeaders, sign};
