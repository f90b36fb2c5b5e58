//! A service with each form of arguments and results, at the boundary.

mod contract {
    toolwarrant::contract!("../../tests/services/forms/spec");
}

use crate::harness::shop::Mute;
use crate::harness::{Key, Server, Tenant, serve};
use crate::services::library::collect_log;
use contract::*;
use serde_json::json;
use std::sync::Arc;
use toolwarrant::contract::{Nullable, PermissionSet};
use toolwarrant::handler::{Call, Caller, Flag, Reply, Resource, Target, Unresolved};
use toolwarrant::text::{UntrustedJson, UntrustedMap};

struct Notes;

impl Resource<NoteId> for Notes {
    type View = NoteId;
    type Capability = NoteCapability;

    async fn resolve(&self, _: &Caller, id: &NoteId) -> Result<NoteId, Unresolved> {
        Ok(id.clone())
    }

    fn flag(_: &NoteId, NoteCapability::Edit: NoteCapability) -> Flag {
        Flag::Offered
    }
}

impl NotesTools for Notes {
    async fn preview_note(
        &self,
        _: &Call<'_>,
        note: &Target<NoteId>,
        args: PreviewNoteArgs,
    ) -> Result<Reply<Note>, PreviewNoteError> {
        let PreviewNoteArgs { edits, weights, extra, outline: _, footer, weight, since: _, note_id: _ } = args;
        let internal = |why: toolwarrant::contract::NotAllowed| PreviewNoteError::Internal(why.to_string().into());
        let content: String = edits.iter().map(|edit| edit.new_text.as_str()).collect();
        let labels = weights.iter().flat_map(|weights| weights.get());
        let labels = labels.map(|(name, weight)| (name.clone(), weight.get().to_string().into()));
        let extra = extra.as_ref().map_or("{}", Extra::as_str);
        let note = Note {
            note_id: (**note).clone(),
            content: (content + footer.as_ref().map_or("", Lines::as_str)).into(),
            labels: Some(UntrustedMap::new(labels).map_err(internal)?),
            extra: UntrustedJson::new(extra).map_err(internal)?,
            weight,
            capabilities: NoteCapabilities { edit: true },
        };
        Ok(note.into())
    }

    async fn patch_note(
        &self,
        _: &Call<'_>,
        _: &Target<NoteId>,
        args: PatchNoteArgs,
    ) -> Result<Command, PatchNoteError> {
        match args.icon {
            Some(Nullable::Null) => Err(PatchNoteError::Internal("the icon was null".into())),
            None | Some(Nullable::Value(_)) => Ok(Command::PatchNote(args)),
        }
    }
}

async fn notes() -> (Server, Key) {
    let tenants = vec![Tenant::with(PermissionSet(u64::MAX))];
    let (server, keys) = serve(|_| (Contract(Arc::new(Notes)), Arc::new(Mute)), tenants).await;
    (server, keys[0][0].clone())
}

#[tokio::test]
async fn each_form_has_a_schema_that_is_written_out() {
    let (server, key) = notes().await;
    let listed = server.rpc(&key, "tools/list", json!({})).await;
    let schemas = listed["result"]["tools"].as_array().expect("tools").iter().filter(|tool| tool["name"] != "get_task");
    let schemas: Vec<_> = schemas
        .map(|tool| json!({"name": tool["name"], "input": tool["inputSchema"], "output": tool["outputSchema"]}))
        .collect();
    insta::assert_snapshot!("schemas", serde_json::to_string_pretty(&schemas).expect("JSON"));
}

#[tokio::test]
async fn each_form_reaches_a_handler_and_a_client_and_no_log_and_no_audit() {
    let (log, logged) = collect_log();
    let (server, key) = notes().await;
    let body = json!({
        "edits": [{"oldText": "hunter1", "newText": "hunter2\n\u{202e}"}],
        "weights": {"hunter3": 0.25},
        "extra": {"hunter4": [1.5, null]},
        "footer": "hunter5\n",
        "since": "2026-12-31T18:00:00Z",
    });
    let expected = json!({
        "note_id": "n-1",
        "content": "hunter2\n⟨U+202E⟩hunter5\n",
        "labels": {"hunter3": "0.25"},
        "extra": {"hunter4": [1.5, null]},
        "weight": 0.5,
        "capabilities": {"edit": true},
        "altered": 1,
    });
    let mut arguments = body.clone();
    arguments["note_id"] = "n-1".into();
    assert_eq!(server.call(&key, "preview_note", arguments.clone()).await, Ok(expected.clone()));
    let twin = server.v1(&server.sign(&key, "POST", "/v1/notes/n-1/previews").body(body)).await;
    assert_eq!((twin.status, twin.body), (200, expected));
    arguments["edits"][0]["newText"] = json!({"hunter6": 1});
    let refused = server.call(&key, "preview_note", arguments).await.expect_err("no text");
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("`edits[0].newText`")), "{refused}");
    for (body, status) in [(json!({"icon": null}), 500), (json!({"icon": "hunter7", "edits": null}), 202)] {
        let patch = server.sign(&key, "PUT", "/v1/notes/n-2").body(body);
        assert_eq!(server.v1(&patch).await.status, status);
    }
    drop(logged);
    let audit = server.audit().await;
    assert!(audit.contains(r#""footer":{"characters":8,"sha256":""#), "{audit}");
    assert!(!audit.contains("hunter") && !log.text().contains("hunter"), "{audit}\n{}", log.text());
}
