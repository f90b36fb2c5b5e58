//! Writes JSON-RPC answers. The parts that are the same in each are rendered once, when the server
//! starts: [`Answers`].
//!
//! A result is joined from JSON that already exists. This module does not parse or check it.

use bytes::Bytes;
use serde_json::{Value, json};
use toolwarrant_core::catalogue::{Catalogue, ContractDef, PermissionSet, ServiceDef};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::reply::{Answer, Frame};
use toolwarrant_core::revision::{Features, Revision};

/// Milliseconds for which a client may cache a list of tools. The rights of a key can change at any
/// time.
const FRESH_MS: u32 = 60_000;

/// The key in `_meta` of the version and the digest of the contract, and of the path of its
/// document. The revisions of the protocol allow any prefix whose second label is not their own.
const CONTRACT: &str = "toolwarrant/contract";

/// The beginning of an answer, up to its id.
const OPEN: &str = r#"{"jsonrpc":"2.0","id":"#;

/// The parts that all answers of a service share.
pub(crate) struct Answers {
    /// The result of `initialize` up to the instructions, for each revision that the server can
    /// agree to.
    initialize: Vec<(Revision, String)>,
    /// The result of `server/discover` up to the instructions.
    discover: String,
    plain: Openings,
    typed: Openings,
}

/// The beginnings of results, after the id.
struct Openings {
    /// Up to the text of a tool's answer and its quotation mark.
    call: String,
    /// Up to the list of tools.
    list: String,
}

impl Openings {
    /// Makes the openings. `own` is part of every result, `kept` of those that clients may cache:
    /// members of an object, each followed by a comma.
    fn new(own: &str, kept: &str) -> Self {
        Self {
            call: format!(r#","result":{{{own}"content":[{{"type":"text","text":""#),
            list: format!(r#","result":{{{own}{kept}"tools":"#),
        }
    }
}

impl Answers {
    /// Makes the parts. `base` is the path of the public URL, without a slash at its end.
    pub(crate) fn of(Catalogue { service, contract, .. }: &Catalogue, base: &str) -> Self {
        let ServiceDef { version, served, .. } = service;
        let ContractDef { path, digest, .. } = contract;
        let described = json!({"version": version, "digest": digest, "url": format!("{base}{path}")});
        let described = format!(r#""{CONTRACT}":{described}"#);
        let names: Value = served.iter().map(|revision| revision.features().name).collect();
        // Each result names the server, and only the first one describes it.
        let [made_by, introduced] = [Revision::FALLBACK, Revision::V2026_07_28]
            .map(|revision| format!(r#""io.modelcontextprotocol/serverInfo":{}"#, server_info(service, revision)));
        let own = format!(r#""resultType":"complete","_meta":{{{made_by}}},"#);
        let own_of_discover = format!(r#""resultType":"complete","_meta":{{{introduced},{described}}},"#);
        let kept = format!(r#""ttlMs":{FRESH_MS},"cacheScope":"private","#);
        let capabilities = r#""capabilities":{"tools":{}}"#;
        let initialize = |revision: &Revision| {
            let (name, server) = (revision.features().name, server_info(service, *revision));
            let members =
                format!(r#""protocolVersion":"{name}",{capabilities},"serverInfo":{server},"_meta":{{{described}}}"#);
            (*revision, format!(r#","result":{{{members},"instructions":"#))
        };
        Self {
            initialize: served.iter().filter(|revision| revision.features().handshake).map(initialize).collect(),
            discover: format!(
                r#","result":{{{own_of_discover}{kept}"supportedVersions":{names},{capabilities},"instructions":"#
            ),
            plain: Openings::new("", ""),
            typed: Openings::new(&own, &kept),
        }
    }

    /// Answers `initialize` with the agreed revision. `instructions` is a JSON string.
    pub(super) fn initialize(&self, id: &str, agreed: Revision, instructions: &Bytes) -> Answer {
        let head = self.initialize.iter().find(|(revision, _)| *revision == agreed).map_or("", |(_, head)| head);
        join(&[OPEN, id, head], instructions, "}}")
    }

    /// Answers `server/discover`. `instructions` is a JSON string.
    pub(super) fn discover(&self, id: &str, instructions: &Bytes) -> Answer {
        join(&[OPEN, id, &self.discover], instructions, "}}")
    }

    /// Answers `tools/list`. `tools` is a JSON list.
    pub(super) fn list_tools(&self, id: &str, revision: Revision, tools: &Bytes) -> Answer {
        join(&[OPEN, id, &self.openings(revision).list], tools, "}}")
    }

    /// Returns the frame of a tool's result: one text item and, if the revision supports it, the
    /// same content in structured form.
    pub(super) fn frame<'a>(&'a self, id: &'a str, revision: Revision) -> Frame<'a> {
        let open = [OPEN, id, &self.openings(revision).call];
        match revision.features().structured {
            true => Frame::Text { open, between: Some(r#""}],"structuredContent":"#), close: r#","isError":false}}"# },
            false => Frame::Text { open, between: None, close: r#""}],"isError":false}}"# },
        }
    }

    /// Returns the failure of a tool as its result: one text item. Clients validate structured
    /// content against the output schema, so it has no structured content.
    pub(super) fn tool_failure(&self, id: &str, revision: Revision, failure: &Failure) -> Answer {
        let frame = Frame::Text {
            open: [OPEN, id, &self.openings(revision).call],
            between: None,
            close: r#""}],"isError":true}}"#,
        };
        Answer::of(failure, frame).unwrap_or_else(|_| error(id, failure))
    }

    fn openings(&self, revision: Revision) -> &Openings {
        if revision.features().handshake { &self.plain } else { &self.typed }
    }
}

/// Returns the name, version and texts of the server, as a revision has them.
fn server_info(ServiceDef { name, title, version, doc, .. }: &ServiceDef, revision: Revision) -> Value {
    let Features { structured, described, .. } = revision.features();
    let mut server = json!({"name": name, "version": version});
    if structured {
        server["title"] = (*title).into();
    }
    // All keys get it, so it names no tools.
    let doc = doc.for_reader(PermissionSet::NONE);
    if described && !doc.as_str().is_empty() {
        server["description"] = doc.as_str().into();
    }
    server
}

/// Returns an empty answer, which only shows that the server runs.
pub(super) fn pong(id: &str) -> Answer {
    join(&[OPEN, id, r#","result":{}}"#], b"", "")
}

/// Returns an error of the protocol.
pub(super) fn error(id: &str, failure: &Failure) -> Answer {
    let data = json!(failure);
    let error = json!({"code": failure.def().jsonrpc, "message": data["message"], "data": data});
    join(&[OPEN, id, r#","error":"#], error.to_string().as_bytes(), "}")
}

/// Joins an answer from texts that already exist.
fn join(head: &[&str; 3], middle: &[u8], tail: &str) -> Answer {
    let [a, b, c] = head.map(str::as_bytes);
    [a, b, c, middle, tail.as_bytes()].concat().into()
}
