//! A service whose handlers break, wait, and forget the grants. No act that may have been done is
//! called undone, and no id leaves that the application may not see.

mod contract {
    toolwarrant::contract!("../../tests/services/notes/spec");
}

use crate::harness::revisions::ask;
use crate::harness::{Key, Server, Tenant, outcome, read, serve_service};
use crate::wire::authority::{TAKEN, take};
use crate::wire::hostile::{Log, listen};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tokio::sync::Semaphore;
use toolwarrant::Service;
use toolwarrant::contract::PermissionSet;
use toolwarrant::handler::{Call, Caller, Flag, Granted, Grants, Picture, Reply, Resource, Target, Unresolved};
use toolwarrant::rendered::{ListWriter, Rendered};
use toolwarrant::text::Untrusted;
use toolwarrant_core::revision::Revision;
use toolwarrant_core::toolsets::Toolsets;

/// A handler counts each change before it ends in its way.
struct Desk {
    changes: AtomicI64,
    changed: Semaphore,
    /// Each permit lets a held handler go on.
    open: Semaphore,
}

impl Resource<NoteId> for Desk {
    type View = ();
    type Capability = NoteCapability;

    async fn resolve(&self, _: &Caller, id: &NoteId) -> Result<(), Unresolved> {
        if id.as_str() == "n-0" { Err(Unresolved::NotFound) } else { Ok(()) }
    }

    fn flag((): &(), capability: NoteCapability) -> Flag {
        match capability {}
    }
}

impl Desk {
    async fn change(&self, note_id: NoteId, way: Way) -> Result<Reply<Change>, &'static str> {
        let changes = self.changes.fetch_add(1, Relaxed) + 1;
        self.changed.add_permits(1);
        match way {
            Way::Done => {}
            Way::Held => self.open.acquire().await.expect("it stays").forget(),
            Way::Broken => panic!("the pen broke"),
            Way::Lost => return Err("the paper of\u{1b}[31m n-2 is lost"),
        }
        Ok(Change { note_id, changes }.into())
    }
}

impl NotesTools for Desk {
    async fn append_line(
        &self,
        _: &Call<'_>,
        _: &Target<()>,
        AppendLineArgs { note_id, way, .. }: AppendLineArgs,
    ) -> Result<Reply<Change>, AppendLineError> {
        self.change(note_id, way).await.map_err(|why| AppendLineError::Internal(why.into()))
    }

    async fn rename(
        &self,
        _: &Call<'_>,
        _: &Target<()>,
        RenameArgs { note_id, way, .. }: RenameArgs,
    ) -> Result<Reply<Change>, RenameError> {
        self.change(note_id, way).await.map_err(|why| RenameError::Internal(why.into()))
    }

    async fn copy_note(
        &self,
        _: &Call<'_>,
        _: &Target<()>,
        CopyNoteArgs { note_id, way }: CopyNoteArgs,
    ) -> Result<Reply<Change>, CopyNoteError> {
        self.change(note_id, way).await.map_err(|why| CopyNoteError::Internal(why.into()))
    }

    async fn replace_note(
        &self,
        _: &Call<'_>,
        ReplaceNoteArgs { note_id, .. }: ReplaceNoteArgs,
    ) -> Result<Reply<Change>, ReplaceNoteError> {
        self.change(note_id, Way::Done).await.map_err(|why| ReplaceNoteError::Internal(why.into()))
    }

    async fn read_note(
        &self,
        _: &Call<'_>,
        ReadNoteArgs { note_id }: ReadNoteArgs,
    ) -> Result<Reply<Page>, ReadNoteError> {
        let text = Untrusted::clean("Milk, \"bread\"\u{202e} & \\ ink");
        Ok(Page { note_id, text, changes: self.changes.load(Relaxed) }.into())
    }

    async fn drop_note(
        &self,
        _: &Call<'_>,
        DropNoteArgs { note_id }: DropNoteArgs,
    ) -> Result<Reply<Change>, DropNoteError> {
        self.change(note_id, Way::Done).await.map_err(|why| DropNoteError::Internal(why.into()))
    }
}

/// Both have 16 x 16 pixels.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAHUlEQVR4nGNg4JfTtfGOyqxon7Z0y+FLDxlGtgAAibZwgRWTlC0AAAAASUVORK5CYII=";
const JPEG: &str = "/9j/4AAQSkZJRgABAgAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H////6/+b9//j/wgALCAAQABABAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/aAAgBAQAAAAE7Bs//xAAVEAEBAAAAAAAAAAAAAAAAAAAAAv/aAAgBAQABBQKUpS//xAAUEAEAAAAAAAAAAAAAAAAAAAAg/9oACAEBAAY/Ah//xAAUEAEAAAAAAAAAAAAAAAAAAAAg/9oACAEBAAE/IR//2gAIAQEAAAAQ/wD/xAAVEAEBAAAAAAAAAAAAAAAAAAAAQf/aAAgBAQABPxCEIQ//2Q==";

impl SketchesTools for Desk {
    async fn draw_sketch(
        &self,
        _: &Call<'_>,
        DrawSketchArgs { note_id, format }: DrawSketchArgs,
    ) -> Result<Reply<Sketch>, DrawSketchError> {
        let bytes = STANDARD.decode(if format == Format::Jpeg { JPEG } else { PNG }).expect("base64");
        let length = if format == Format::Torn { bytes.len() / 2 } else { bytes.len() };
        let sketch = Picture::read(&bytes[..length]).await.map_err(DrawSketchError::Internal)?;
        Ok(Sketch { note_id, sketch }.into())
    }
}

impl HallsTools for Desk {
    async fn show_hall(&self, call: &Call<'_>, args: ShowHallArgs) -> Result<Reply<Hall>, ShowHallError> {
        let ShowHallArgs { id, r#type: place, form } = args;
        let [mut shelf, mut desk] =
            [(); 2].map(|()| Shelf { shelf_id: shelf("s-1"), notes: vec![], newest_note: None });
        let mut returned = None;
        match place {
            Place::Shelf => shelf.shelf_id = self::shelf(id.as_str()),
            Place::Listed => shelf.notes = vec![NoteId::new("n-1").expect("an id"), id],
            Place::Optional => shelf.newest_note = Some(id),
            Place::Nested => desk.notes = vec![id],
            Place::Last => returned = Some(id),
        }
        let rest = Hall { shelves: Vec::new(), desk: Some(desk), last_returned: returned };
        Ok(match form {
            Form::Value => Hall { shelves: vec![shelf], ..rest }.into(),
            Form::Rendered => Rendered::of(&Hall { shelves: vec![shelf], ..rest }).reply(call),
            Form::Joined => {
                let mut joined = ListWriter::begin(call);
                joined.extend(&[&Rendered::of(&shelf)]);
                joined.finish(rest)
            }
        })
    }
}

fn shelf(id: &str) -> ShelfId {
    ShelfId::new(id).expect("an id")
}

/// The second key can only look at notes, but at all of them.
async fn serve(toolsets: &[&str]) -> (Server, [Key; 2], Arc<Desk>) {
    let [changed, open] = [(); 2].map(|()| Semaphore::new(0));
    let desk = Arc::new(Desk { changes: AtomicI64::new(0), changed, open });
    let handlers = Contract(Arc::clone(&desk));
    let few = Grants::nothing().with("note", Granted::some(["n-0", "n-1"])).with("shelf", Granted::some(["s-1"]));
    let editor = Tenant { grants: few, ..Tenant::with(PermissionSet(u64::MAX)) };
    let reader = Tenant { grants: Grants::everything(), ..Tenant::with(Permission::Look.bit()) };
    let tenants = vec![editor, reader];
    let (server, keys) = serve_service(toolsets, |_| Service::new(handlers), tenants).await;
    (server, [keys[0][0].clone(), keys[1][0].clone()], desk)
}

#[tokio::test]
async fn an_act_says_that_nothing_verifies_it_and_answers_with_its_result_in_every_revision() {
    let (server, [key, _], desk) = serve(&[]).await;
    for (n, revision) in (1..).zip(Revision::ALL) {
        let (_, listed) = ask(&server, &key, revision, "tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().expect("tools");
        for (name, destructive, idempotent, open_world) in
            [("append_line", false, false, false), ("rename", true, true, true), ("drop_note", true, false, false)]
        {
            let tool = tools.iter().find(|tool| tool["name"] == name).expect("listed");
            let hints = &tool["annotations"];
            let hints =
                ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(|hint| hints[hint].clone());
            assert_eq!(hints, [false, destructive, idempotent, open_world].map(Value::from), "{name}");
            let text = tool["description"].as_str().expect("text");
            assert!(text.contains("Acts at once, and nothing verifies the effect."), "{text}");
            assert_eq!(text.contains("do not repeat it"), !idempotent, "{text}");
            assert_eq!(text.contains("outcome_unknown"), !idempotent, "{text}");
        }
        let call = json!({"name": "append_line", "arguments": {"note_id": "n-1", "line": "Milk"}});
        let (_, answer) = ask(&server, &key, revision, "tools/call", call).await;
        let note = outcome(&answer).expect("a note");
        assert_eq!(note, json!({"note_id": "n-1", "changes": n}));
        let structured = revision.features().structured.then_some(note);
        assert_eq!(answer["result"].get("structuredContent").cloned(), structured);
    }
    assert_eq!(desk.changes.load(Relaxed), Revision::ALL.len() as i64);
}

#[tokio::test]
async fn a_signed_act_has_its_own_methods_and_a_nonce_does_it_once() {
    let (server, [key, _], desk) = serve(&[]).await;
    for (method, path, body) in [
        ("POST", "/v1/notes/n-1/lines", json!({"line": "Milk"})),
        ("PATCH", "/v1/notes/n-1", json!({"title": "Shopping"})),
        ("PUT", "/v1/notes/n-1", json!({"line": "Milk"})),
        ("DELETE", "/v1/notes/n-1", Value::Null),
    ] {
        let before = desk.changes.load(Relaxed);
        let signed = server.sign(&key, method, path);
        let signed = if body.is_null() { signed } else { signed.body(body) };
        let [first, again] = [server.v1(&signed).await, server.v1(&signed).await];
        assert_eq!((first.status, &first.body["changes"]), (200, &json!(before + 1)), "{method}: {first:?}");
        assert_eq!((again.status, &again.body["code"]), (401, &json!("unauthenticated")), "{method}: {again:?}");
        assert_eq!(desk.changes.load(Relaxed), before + 1, "{method}");
    }
    let refused = server.v1(&server.sign(&key, "GET", "/v1/notes/n-1/lines")).await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")));
    let plain =
        server.sign(&key, "PATCH", "/v1/notes/n-1").body(json!({"title": "A"})).header("content-type", "text/plain");
    assert_eq!(server.v1(&plain).await.status, 415);
}

#[tokio::test]
async fn an_act_whose_right_ends_meanwhile_was_carried_out_and_nobody_repeats_it() {
    for tool in ["append_line", "rename", "copy_note"] {
        for (what, _) in TAKEN {
            let (server, [key, _], desk) = serve(&[]).await;
            let arguments = json!({"note_id": "n-1", "line": "Milk", "title": "A", "way": "held"});
            let call = json!({"name": tool, "arguments": arguments});
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
            let request = server.post(&key).body(body.to_string());
            let answer = tokio::spawn(async move { read(request.send().await.expect("an answer")).await });
            desk.changed.acquire().await.expect("it comes").forget();
            take(&server, &key, what).await;
            desk.open.add_permits(1);
            let (status, answer) = answer.await.expect("no panic");
            // A bridge repeats a call with another key after status 401.
            assert_eq!(status, 200, "{what}: {answer}");
            let failure = outcome(&answer).expect_err("withheld");
            assert_eq!((&failure["code"], &failure["retryable"]), (&json!("forbidden"), &json!(false)), "{what}");
            let message = failure["message"].as_str().expect("text");
            assert!(message.contains("was carried out") && message.contains("Do not repeat it"), "{message}");
            let audit = server.audit().await;
            assert_eq!(audit.matches("\"outcome\":\"forbidden\"").count(), 1, "{audit}");
        }
    }
}

#[tokio::test]
async fn nobody_says_of_an_act_that_broke_that_nothing_was_done() {
    let (log, logged) = collect_log();
    let (server, [key, _], desk) = serve(&[]).await;
    let mut lost = String::new();
    for way in ["broken", "lost"] {
        let arguments = json!({"note_id": "n-1", "line": "Milk", "way": way});
        let failure = server.call(&key, "append_line", arguments.clone()).await.expect_err("a fault");
        assert_eq!((&failure["code"], &failure["retryable"]), (&json!("outcome_unknown"), &json!(false)), "{failure}");
        let message = failure["message"].as_str().expect("text");
        assert!(message.contains("Do not repeat it") && !message.contains("othing was done"), "{message}");
        let signed = server.sign(&key, "POST", "/v1/notes/n-1/lines").body(json!({"line": "Milk", "way": way}));
        let answer = server.v1(&signed).await;
        assert_eq!((answer.status, &answer.body["code"]), (500, &json!("outcome_unknown")), "{answer:?}");
        assert_eq!(answer.header("retry-after"), None);
        let again = json!({"note_id": "n-1", "title": "A", "way": way});
        let failure = server.call(&key, "rename", again).await.expect_err("a fault");
        assert_eq!((&failure["code"], &failure["retryable"]), (&json!("internal"), &json!(true)), "{failure}");
        assert_fixed(&failure);
        let copied = server.call(&key, "copy_note", json!({"note_id": "n-1", "way": way})).await;
        assert_fixed(&copied.expect_err("a fault, and the next copy is another one"));
        lost = failure["request_id"].as_str().expect("an id").to_owned();
    }
    drop(logged);
    let is_told = |line: &&str| line.contains("the paper of n-2 is lost") && line.contains(&lost);
    assert_eq!(log.text().lines().filter(is_told).count(), 1, "{}", log.text());
    assert_eq!(desk.changes.load(Relaxed), 8);
    let refused = server.call(&key, "append_line", json!({"note_id": "n-0", "line": "Milk"})).await;
    assert_eq!(refused.expect_err("no such note")["code"], "not_found");
    assert_eq!(desk.changes.load(Relaxed), 8, "a call that is refused before its handler changes nothing");
}

#[tokio::test]
async fn a_tool_of_a_toolset_that_is_off_is_unknown_and_one_that_is_on_needs_its_permission() {
    let path = "/v1/notes/sketch?note_id=n-1";
    for (toolsets, offered) in [(&[][..], false), (&["sketches"], true)] {
        let (server, [editor, reader], _) = serve(toolsets).await;
        for (key, may_edit) in [(&editor, true), (&reader, false)] {
            let is_told = offered && may_edit;
            let listed = server.list(key).await;
            assert_eq!(listed.iter().any(|tool| tool["name"] == "draw_sketch"), is_told);
            assert_eq!(listed.len(), 2 + usize::from(may_edit) * 5 + usize::from(is_told));
            let hello = server.rpc(key, "initialize", json!({"protocolVersion": "2025-06-18"})).await;
            let instructions = hello["result"]["instructions"].as_str().expect("text");
            assert_eq!(instructions.contains("draw_sketch"), is_told, "{instructions}");
            let params = json!({"name": "draw_sketch", "arguments": {"note_id": "n-1"}});
            let answer = server.rpc(key, "tools/call", params).await;
            let signed = server.v1(&server.sign(key, "GET", path)).await;
            match (offered, may_edit) {
                (true, true) => assert_eq!((&answer["result"]["isError"], signed.status), (&json!(false), 200)),
                (true, false) => {
                    assert_eq!(outcome(&answer).expect_err("refused")["code"], "forbidden");
                    assert_eq!((signed.status, &signed.body["code"]), (403, &json!("forbidden")));
                }
                (false, _) => {
                    assert_eq!(answer["error"]["data"]["code"], "unknown_tool", "{answer}");
                    assert_eq!((signed.status, &signed.body["code"]), (404, &json!("no_route")));
                }
            }
        }
        let openapi = server.http.get(server.url.replace("/mcp", "/v1/openapi.json")).send().await.expect("an answer");
        let (_, openapi) = read(openapi).await;
        assert_eq!(openapi["paths"].get("/v1/notes/sketch").is_some(), offered);
        assert!(!openapi["info"]["description"].to_string().contains("draw_sketch"), "it is for every server");
        assert!(openapi["paths"]["/v1/notes/{note_id}"]["patch"].is_object());
    }
    let unknown = Toolsets::find(&CATALOGUE, ["sketch"]).expect_err("unknown");
    assert_eq!(unknown, "there is no toolset `sketch`; there are sketches");
}

/// Hosts drop text and pictures that stand beside structured content.
#[tokio::test]
async fn a_body_is_a_block_of_its_own_in_every_revision_and_a_field_under_v1() {
    let (server, [key, _], _) = serve(&["sketches"]).await;
    let text = "Milk, \"bread\" & \\ ink";
    let blocks = [
        ("read_note", json!({}), json!({"note_id": "n-1", "changes": 0}), json!({"type": "text", "text": text})),
        (
            "draw_sketch",
            json!({}),
            json!({"note_id": "n-1"}),
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
        ),
        (
            "draw_sketch",
            json!({"format": "jpeg"}),
            json!({"note_id": "n-1"}),
            json!({"type": "image", "data": JPEG, "mimeType": "image/jpeg"}),
        ),
    ];
    for revision in Revision::ALL {
        let (_, listed) = ask(&server, &key, revision, "tools/list", json!({})).await;
        for (tool, arguments, rest, block) in &blocks {
            let mut tools = listed["result"]["tools"].as_array().into_iter().flatten();
            let shown = tools.find(|shown| shown["name"] == *tool).expect("listed");
            assert!(shown.get("outputSchema").is_none(), "{shown}");
            assert!(shown["description"].as_str().is_some_and(|text| text.contains("as a block of its own")));
            let mut arguments = arguments.clone();
            (arguments["note_id"], arguments["colour"]) = ("n-1".into(), "blue".into());
            let call = json!({"name": tool, "arguments": arguments});
            let (_, answer) = ask(&server, &key, revision, "tools/call", call).await;
            let result = &answer["result"];
            assert!(result.get("structuredContent").is_none() && result["isError"] == false, "{answer}");
            let content = result["content"].as_array().expect("blocks");
            let first = content[0]["text"].as_str().expect("text");
            assert_eq!(serde_json::from_str::<Value>(first).expect("JSON"), *rest, "{answer}");
            assert_eq!((&content[1], content.len()), (block, 3), "{answer}");
            assert!(content[2]["text"].to_string().contains("colour"), "{answer}");
        }
    }
    let page = server.v1(&server.sign(&key, "GET", "/v1/notes/n-1")).await;
    assert_eq!(page.body, json!({"note_id": "n-1", "text": text, "changes": 0}));
    let sketch = server.v1(&server.sign(&key, "GET", "/v1/notes/sketch?format=jpeg&note_id=n-1")).await;
    assert_eq!(sketch.body, json!({"note_id": "n-1", "sketch": JPEG}));
    let torn = server.call(&key, "draw_sketch", json!({"note_id": "n-1", "format": "torn"})).await;
    assert_eq!(torn.expect_err("it is torn")["code"], "internal");
}

fn collect_log() -> (Log, impl Sized) {
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    (log, listen(lines))
}

fn assert_fixed(failure: &Value) {
    assert_eq!(failure["code"], "internal", "{failure}");
    let keys: Vec<_> = failure.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["code", "message", "retryable", "retry_after_seconds", "request_id"], "{failure}");
    assert!(!failure.to_string().contains("n-2"), "{failure}");
}

/// An id that the caller sends itself proves nothing.
#[tokio::test]
async fn an_id_is_checked_in_every_place_of_a_result_and_in_every_form_of_it() {
    let (log, logged) = collect_log();
    let (server, [few, all], _) = serve(&[]).await;
    let mut refused = 0;
    for place in Place::ALL {
        for form in Form::ALL {
            let granted = if *place == Place::Shelf { "s-1" } else { "n-1" };
            // A note's id is no grant of the shelf with the same id.
            for (id, shown) in [(granted, true), ("n-2", false), ("s-2", false), ("n-1", granted == "n-1")] {
                let arguments = json!({"id": id, "type": place, "form": form});
                let name = arguments.to_string();
                server.call(&all, "showHall", arguments.clone()).await.expect("it sees everything");
                match server.call(&few, "showHall", arguments).await {
                    Ok(hall) => assert!(shown && hall.to_string().contains(id), "{name}: {hall}"),
                    Err(failure) if shown => panic!("{name}: {failure}"),
                    Err(failure) => {
                        assert_fixed(&failure);
                        refused += 1;
                    }
                }
            }
        }
    }
    for (place, at) in [("optional", "/shelves/0/newestNote"), ("last", "/last-returned")] {
        let [foreign, own] = ["n-2", "n-1"].map(|id| format!("/v1/hall?id={id}&type={place}&form=value"));
        let twin = server.v1(&server.sign(&few, "GET", &own)).await;
        assert_eq!(twin.body.pointer(at), Some(&json!("n-1")), "{twin:?}");
        let twin = server.v1(&server.sign(&few, "GET", &foreign)).await;
        assert_eq!(twin.status, 500, "{twin:?}");
        assert_fixed(&twin.body);
    }
    drop(logged);
    let why = "which is not granted to the application";
    assert_eq!(log.text().matches(why).count(), refused + 2, "{}", log.text());
    let audit = server.audit().await;
    assert_eq!(audit.matches("\"outcome\":\"internal\"").count(), refused + 2, "{audit}");
}
