//! Writes JSON-RPC answers. The parts that are the same in each are rendered once, when the server
//! starts. A result is joined from JSON that already exists; it is not parsed or checked. Start at
//! [`Answers`].

use crate::context::ServerProcess;
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolwarrant_core::catalogue::{Catalogue, ContractDef, PermissionSet, ServiceDef};
use toolwarrant_core::failure::Failure;
use toolwarrant_core::reply::{Answer, Frame};
use toolwarrant_core::revision::{Features, Revision};

/// Short, because the rights of a key can change at any time.
const FRESH_MS: u32 = 60_000;

/// The revisions of the protocol allow any prefix whose second label is not their own.
const CONTRACT: &str = "toolwarrant/contract";

/// The extension for tasks.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The task as clients get it that do not declare the extension.
const TASK: &str = "toolwarrant/task";

const OPEN: &str = r#"{"jsonrpc":"2.0","id":"#;

const STRUCTURED: &str = r#","structuredContent":"#;

pub(crate) struct Answers {
    /// Up to the instructions, for each revision that the server can agree to.
    initialize: Vec<(Revision, String)>,
    /// Up to the instructions: without and with the extension for tasks.
    discover: [String; 2],
    /// A member of `_meta`.
    made_by: String,
    plain: Openings,
    typed: Openings,
}

struct Openings {
    /// Up to the text of a tool's answer and its quotation mark.
    call: String,
    /// Up to the list of tools.
    list: String,
}

impl Openings {
    /// Takes members of an object, each followed by a comma: `own` for every result, `kept` for
    /// those that clients may cache.
    fn new(own: &str, kept: &str) -> Self {
        Self {
            call: format!(r#","result":{{{own}"content":[{{"type":"text","text":""#),
            list: format!(r#","result":{{{own}{kept}"tools":"#),
        }
    }
}

impl Answers {
    pub(crate) fn of(Catalogue { service, contract, .. }: &Catalogue, process: ServerProcess<'_>) -> Self {
        let base = process.base;
        let ServiceDef { version, served, .. } = service;
        let ContractDef { path, digest, .. } = contract;
        let described = json!({"version": version, "digest": digest, "url": format!("{base}{path}")});
        let described = format!(r#""{CONTRACT}":{described}"#);
        let names: Value = served.iter().map(|revision| revision.features().name).collect();
        let [made_by, introduced] = [Revision::FALLBACK, Revision::V2026_07_28].map(|revision| {
            format!(r#""io.modelcontextprotocol/serverInfo":{}"#, server_info(service, revision, process.version))
        });
        let own = format!(r#""resultType":"complete","_meta":{{{made_by}}},"#);
        let own_of_discover = format!(r#""resultType":"complete","_meta":{{{introduced},{described}}},"#);
        let kept = format!(r#""ttlMs":{FRESH_MS},"cacheScope":"private","#);
        let capabilities = r#""capabilities":{"tools":{}}"#;
        let following = format!(r#""capabilities":{{"tools":{{}},"extensions":{{"{EXTENSION}":{{}}}}}}"#);
        let initialize = |revision: &Revision| {
            let (name, server) = (revision.features().name, server_info(service, *revision, process.version));
            let members =
                format!(r#""protocolVersion":"{name}",{capabilities},"serverInfo":{server},"_meta":{{{described}}}"#);
            (*revision, format!(r#","result":{{{members},"instructions":"#))
        };
        Self {
            initialize: served.iter().filter(|revision| revision.features().handshake).map(initialize).collect(),
            discover: [capabilities, &following].map(|capabilities| {
                format!(
                    r#","result":{{{own_of_discover}{kept}"supportedVersions":{names},{capabilities},"instructions":"#
                )
            }),
            plain: Openings::new("", ""),
            typed: Openings::new(&own, &kept),
            made_by,
        }
    }

    /// Takes `instructions` as a JSON string.
    pub(super) fn initialize(&self, id: &str, agreed: Revision, instructions: &Bytes) -> Answer {
        let head = self.initialize.iter().find(|(revision, _)| *revision == agreed).map_or("", |(_, head)| head);
        join(&[OPEN, id, head], instructions, "}}")
    }

    /// Takes `instructions` as a JSON string.
    pub(super) fn discover(&self, id: &str, follows: bool, instructions: &[u8]) -> Answer {
        join(&[OPEN, id, &self.discover[usize::from(follows)]], instructions, "}}")
    }

    /// Takes the members of the task as JSON, without its braces, and what other clients are told.
    pub(super) fn new_task(&self, id: &str, members: &str, told: &RawValue) -> Answer {
        let made_by = &self.made_by;
        let result = format!(r#"{{"resultType":"task","_meta":{{{made_by},"{TASK}":{told}}},{members}}}"#);
        join(&[OPEN, id, r#","result":"#], result.as_bytes(), "}")
    }

    /// Takes the members of the task as JSON, without its braces.
    pub(super) fn task(&self, id: &str, members: &str) -> Answer {
        join(&[OPEN, id, &self.open_task()], members.as_bytes(), "}}")
    }

    /// Takes the members of the task as [`Self::task`] does, and the object that a call would have
    /// returned.
    pub(super) fn task_with_result(&self, id: &str, members: &str, result: &RawValue) -> serde_json::Result<Answer> {
        let opened = [&*self.open_task(), members, &self.typed.call].concat();
        let (between, close) = (Some(STRUCTURED), r#","isError":false}}}"#);
        Answer::of(&result, Frame::Text { open: [OPEN, id, &opened], more: "", body: "", between, close })
    }

    pub(super) fn acknowledge(&self, id: &str) -> Answer {
        join(&[OPEN, id, self.open_task().trim_end_matches(',')], b"", "}}")
    }

    fn open_task(&self) -> String {
        format!(r#","result":{{"resultType":"complete","_meta":{{{}}},"#, self.made_by)
    }

    /// Takes `tools` as a JSON list.
    pub(super) fn list_tools(&self, id: &str, revision: Revision, tools: &Bytes) -> Answer {
        join(&[OPEN, id, &self.openings(revision).list], tools, "}}")
    }

    /// Returns the frame of one text item and, if the revision supports it, the same content in
    /// structured form.
    pub(super) fn frame<'a>(&'a self, id: &'a str, revision: Revision) -> Frame<'a> {
        let open = [OPEN, id, &self.openings(revision).call];
        let between = revision.features().structured.then_some(STRUCTURED);
        Frame::Text { open, more: "", body: "", between, close: r#","isError":false}}"# }
    }

    /// Omits structured content, which clients validate against the output schema.
    pub(super) fn tool_failure(&self, id: &str, revision: Revision, failure: &Failure) -> Answer {
        let frame = Frame::Text {
            open: [OPEN, id, &self.openings(revision).call],
            more: "",
            body: "",
            between: None,
            close: r#","isError":true}}"#,
        };
        Answer::of(failure, frame).unwrap_or_else(|_| error(id, failure))
    }

    fn openings(&self, revision: Revision) -> &Openings {
        if revision.features().handshake { &self.plain } else { &self.typed }
    }
}

fn server_info(ServiceDef { name, title, doc, .. }: &ServiceDef, revision: Revision, version: &str) -> Value {
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

pub(super) fn pong(id: &str) -> Answer {
    join(&[OPEN, id, r#","result":{}}"#], b"", "")
}

pub(crate) fn error(id: &str, failure: &Failure) -> Answer {
    let data = json!(failure);
    let error = json!({"code": failure.def().jsonrpc, "message": data["message"], "data": data});
    join(&[OPEN, id, r#","error":"#], error.to_string().as_bytes(), "}")
}

fn join(head: &[&str; 3], middle: &[u8], tail: &str) -> Answer {
    let [a, b, c] = head.map(str::as_bytes);
    [a, b, c, middle, tail.as_bytes()].concat().into()
}
