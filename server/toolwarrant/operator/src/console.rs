//! The interface between commands and the console, which is a crate above this one.

use crate::answers::{ConsoleLink, ConsoleSession};
use crate::error::OperatorError;
use clap::Args;
use serde::{Deserialize, Serialize};
use toolwarrant_base::BoxFuture;
use toolwarrant_core::act::Operator;

/// A wish for a link.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkRequest {
    /// Let the holder of the link also change what a member of the operate group may change
    #[arg(long)]
    pub operate: bool,
    /// Make a link to 127.0.0.1, for a browser that does not find names below localhost; other
    /// programs on that address then receive the session as well if the browser opens them
    #[arg(long)]
    pub plain_host: bool,
}

/// The door of the console.
pub trait ConsoleDoor: Send + Sync + 'static {
    /// Opens the console if it is closed, and answers with a link for that operator.
    fn make_link(&self, operator: Operator, link: LinkRequest) -> BoxFuture<'_, Result<ConsoleLink, OperatorError>>;

    /// Returns the sessions.
    fn list_sessions(&self) -> Vec<ConsoleSession>;

    /// Ends one session or, with `None`, all of them. Returns their ids.
    fn end_sessions(&self, session: Option<&str>) -> Vec<String>;
}
