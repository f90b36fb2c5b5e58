//! The methods that are served.

use toolwarrant_base::wording::Echo;
use toolwarrant_base::words;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_core::revision::Revision;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Initialize,
    Ping,
    Discover,
    ListTools,
    CallTool,
    Task(TaskMethod),
}

impl Method {
    pub(super) fn of<H: Handlers>(name: &str, revision: Revision) -> Option<Self> {
        let handshake = revision.features().handshake;
        match name {
            "tools/call" => Some(Self::CallTool),
            "tools/list" => Some(Self::ListTools),
            "initialize" if handshake => Some(Self::Initialize),
            "ping" if handshake => Some(Self::Ping),
            "server/discover" if !handshake => Some(Self::Discover),
            _ if handshake || H::CATALOGUE.followed.is_none() => None,
            _ => TaskMethod::of(name).map(Self::Task),
        }
    }

    pub(super) fn unknown<H: Handlers>(name: &str) -> Failure {
        Failure::new(H::CATALOGUE.roles.method_not_found, words!["there is no method `", Echo::of(name), "`"])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskMethod {
    Get,
    Cancel,
    Update,
}

impl TaskMethod {
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "tasks/get" => Some(Self::Get),
            "tasks/cancel" => Some(Self::Cancel),
            "tasks/update" => Some(Self::Update),
            _ => None,
        }
    }
}
