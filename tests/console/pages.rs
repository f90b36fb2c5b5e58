//! The pages of the console: each is there, for each service, and shows what a command answers.

use super::browser::Browser;
use crate::harness::program::{Program, WATCHED, json_of};
use crate::harness::writes::open_database;
use crate::house::root;
use serde_json::json;
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;

const PAGES: [&str; 14] = [
    "/",
    "/tasks",
    "/tasks?status=failed_silent&since=24h",
    "/refunds?app=demo",
    "/applications",
    "/applications/demo",
    "/keys?app=demo&state=live",
    "/audit?outcome=ok",
    "/acts?by=root",
    "/doctor?examine=on",
    "/verify?examine=on",
    "/act/app/create",
    "/act/app/delete?app=demo",
    "/act/key/create?app=demo",
];

#[tokio::test]
async fn every_page_of_the_phones_shows_what_the_command_under_it_answers() {
    let program = Program::start(WATCHED).await;
    let write = json!({"device_id": "phone-0000001", "scheme": "http", "host": "203.0.113.7", "port": 3128});
    let task = program.call("set_proxy", write).await.expect("a task");
    let task = task["task_id"].as_str().expect("an id");
    let browser = Browser::enter(&program, "--operate").await;
    let key = json_of(&program.data, "key list").await[0]["key_id"].as_str().expect("an id").to_owned();
    let of_task = format!("/tasks/{task}");
    let of_key = format!("/keys/{key}");
    let more = [
        &of_task,
        &of_key,
        "/fleet/device",
        "/fleet/device?state=running&offers=proxy",
        "/fleet/device?as=table",
        "/fleet/device/phone-0000013",
        "/act/device/assign?app=demo",
    ];
    for path in PAGES.into_iter().chain(more) {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(answer.body.ends_with("</html>") && !answer.body.contains("role=\"alert\""), "{path}: {}", answer.body);
    }
    assert!(browser.get("/").await.body.contains("Devices that cannot be read"));
    let named = browser.get("/fleet/device?text=PHONE%2013").await.body;
    assert!(named.contains("phone-0000013") && !named.contains("phone-0000012"), "{named}");
    let page = browser.get("/fleet/device?as=table&state=unknown").await.body;
    assert!(page.contains("phone-0000004") && page.contains("Unreadable since"), "{page}");
    assert!(!page.contains("phone-0000001"), "{page}");
    let page = browser.get(&of_task).await.body;
    for part in ["<svg", "set_proxy on phone-0000001", &format!("cloudphone task show {task}"), "203.0.113.7"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for (id, place) in [(task, &*of_task), (&key, &of_key), ("phone-0000013", "/fleet/device/phone-0000013")] {
        let answer = browser.get(&format!("/find?id=%20{id}")).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some(place)), "{id}");
    }
    for (path, status) in [
        ("/nothing", 404),
        ("/tasks/task_0", 404),
        ("/fleet/printer", 404),
        ("/tasks?since=soon", 400),
        ("/fleet/device/demo", 404),
    ] {
        assert_eq!(browser.get(path).await.status, status, "{path}");
    }
    let page = browser.get("/keys").await.body;
    assert!(page.contains("<option>revoked") && !page.contains("<option>booting"), "the states of keys: {page}");
    let page = browser.get("/tasks?since=2026-01-02").await.body;
    assert!(page.contains("<option selected>2026-01-02"), "the next search keeps it: {page}");
    let page = browser.get("/tasks?since=soon").await.body;
    assert!(page.contains("role=\"alert\"") && page.contains("soon"), "{page}");
}

#[tokio::test]
async fn refunds_are_summed_whole_and_the_tabs_of_a_long_history_say_that_there_are_more() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let data = home.path().join("data");
    json_of(&data, "app create shop --permission device").await;
    let db = open_database(&data);
    let rows = "WITH RECURSIVE n(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 20001)";
    db.execute_batch(&format!(
        "INSERT INTO ledger (task_id, application, kind, at) {rows} SELECT randomblob(16), 'app_1', 'refund', n FROM n;
         INSERT INTO task (id, application, fingerprint, tool, resource, target, created_at, version, terminal, status, state)
             {rows} SELECT randomblob(16), 'app_1', zeroblob(32), 'set_power', 'device', 'x', n, 1, 1, 'success', '{{}}' FROM n"
    ))
    .expect("rows");
    drop(db);
    let program = Program::start_at(home, &[]).await;
    let page = Browser::enter(&program, "").await.get("/refunds?since=1970-01-01").await.body;
    assert!(page.contains(">20001<") && page.contains("Success <b>10000+</b>"), "{page}");
    let whole = json_of(&data, "task count").await;
    assert_eq!(whole, json!({"tasks": {"success": 20_001}}));
}

#[tokio::test]
async fn a_window_gets_the_main_part_of_a_page_that_has_changed_until_its_session_ends() {
    let program = Program::start(WATCHED).await;
    let browser = Browser::enter(&program, "").await;
    let tag_of = |body: &str| {
        let (_, rest) = body.split_once("data-tag=\"").expect("a tag");
        rest.split('"').next().expect("a tag").to_owned()
    };
    let tag = tag_of(&browser.get("/acts").await.body);
    let ask = async || browser.send("GET /acts", &format!("x-shown: {tag}\r\n"), "").await;
    assert_eq!(ask().await.status, 204);
    json_of(&program.data, "app create another --permission stream").await;
    let answer = ask().await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with("<main id=\"main\" data-tag="), "{}", answer.body);
    assert!(answer.body.contains("app create") && tag_of(&answer.body) != tag, "{}", answer.body);
    let sessions = json_of(&program.data, "console list").await;
    let _other = Browser::enter(&program, "").await;
    json_of(&program.data, &format!("console end {}", sessions[0]["session"].as_str().expect("an id"))).await;
    assert_eq!(ask().await.status, 401);
}

/// Stands in names, labels, reasons and queries.
const HOSTILE: &str = "\"><script>alert(1)</script>'&{{7*7}}";

#[tokio::test]
async fn hostile_text_is_shown_and_is_never_markup() {
    let program = Program::start(WATCHED).await;
    let browser = Browser::enter(&program, "--operate").await;
    let encoded: String = HOSTILE.bytes().map(|byte| format!("%{byte:02X}")).collect();
    browser.act("/act/app/label?app=demo", &format!("app=demo&labels=owner={encoded}")).await;
    let reason = crate::harness::program::operator(&program.data);
    let (code, _) =
        reason.run(["app", "rate", "demo", "298", "--reason", HOSTILE, "--as", HOSTILE]).await.expect("it runs");
    assert_eq!(code, 0);
    let paths =
        ["/applications", "/applications/demo", "/acts", "/audit", "/tasks?app=X", "/find?id=X", "/tasks/X", "/keys/X"];
    let more = [
        "/applications/X",
        "/fleet/device?prefix=X&app=X&state=X",
        "/fleet/device/X",
        "/act/key/create?app=X",
        "/X",
        "/acts?by=X",
    ];
    for path in paths.into_iter().chain(more) {
        let answer = browser.get(&path.replace('X', &encoded)).await;
        let text = &answer.body;
        assert!(!text.contains("<script>") && !text.contains(HOSTILE), "{path}: {text}");
        assert_eq!(text.matches("<script").count(), 1, "{path}: the console's own");
    }
    assert!(browser.get("/acts").await.body.contains("&#60;script&#62;alert(1)"));
}

#[test]
fn no_template_has_a_style_a_script_or_a_value_that_is_not_escaped() {
    let console = root().join("server/toolwarrant/console/src");
    let mut folders = vec![console.clone()];
    let mut templates = 0;
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("text");
            let is_template = path.extension().is_some_and(|kind| kind == "html" || kind == "svg");
            templates += usize::from(is_template);
            let banned: &[&str] = match is_template {
                true => &["|safe", "| safe", "escape=", "style=", "<style", "<script>", "javascript:"],
                false => &["HtmlSafe for", "escape = \"none\""],
            };
            for word in banned {
                let own = word == &"HtmlSafe for" && path.ends_with("markup.rs");
                assert!(own || !text.contains(word), "{}: {word}", path.display());
            }
        }
    }
    assert!(templates > 10);
    let script = fs::metadata(root().join("server/toolwarrant/console/assets/console.js")).expect("a file").len();
    assert!(script <= 16 * 1024, "{script} bytes of script");
}
