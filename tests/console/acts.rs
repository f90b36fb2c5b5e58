//! Acts in the console: each is a command, and is judged as one.

use super::browser::{Browser, OWN, form_id};
use crate::harness::program::{Program, WATCHED, json_of, key_of, says};
use serde_json::{Value, json};

/// The acts on the application `shop` and on a key, with their fields.
const ACTS: [(&str, &str); 17] = [
    ("app/grant", "app=shop&permissions=stream"),
    ("app/revoke", "app=shop&permissions=stream"),
    ("app/label", "app=shop&labels=owner=Ada%20L%0D%0Acontact=x"),
    ("app/rate", "app=shop&requests_per_minute=299"),
    ("app/suspend", "app=shop&reason=too%20many%20calls"),
    ("app/resume", "app=shop"),
    ("device/assign", "app=shop&ids=phone-0000001%0Aphone-0000002"),
    ("device/unassign", "app=shop&ids=phone-0000001"),
    ("key/create", "app=shop&expires=90"),
    ("key/rotate", "key=KEY&grace=7d"),
    ("key/end-old", "key=KEY"),
    ("key/expire", "key=KEY&at=12h"),
    ("key/suspend", "key=KEY"),
    ("key/resume", "key=KEY"),
    ("key/label", "key=KEY&labels=owner=Ada"),
    ("key/revoke", "key=KEY"),
    ("app/delete", "app=shop"),
];

#[tokio::test]
async fn every_act_is_done_by_an_operator_and_refused_and_recorded_for_a_viewer() {
    let program = Program::start(WATCHED).await;
    let [viewer, operator] = [Browser::enter(&program, "").await, Browser::enter(&program, "--operate").await];
    let create = "name=shop&permission=device&permission=stream";
    assert_eq!(viewer.get("/act/app/create").await.status, 403);
    assert_eq!(operator.act("/act/app/create", create).await.0, 200);
    let key = key_of(&program.data, "shop").await.id;
    let acts = async || json_of(&program.data, "acts --limit 1000").await.as_array().cloned().expect("acts");
    let mut count = acts().await.len();
    for (act, fields) in ACTS {
        let (path, fields) = (format!("/act/{act}"), fields.replace("KEY", &key));
        let refused = viewer.post(&path, &fields, OWN).await;
        assert_eq!(refused.status, 403, "{act}: {}", refused.body);
        let refused = json_of(&program.data, "audit list --limit 1").await;
        let refused = &refused["lines"][0];
        let command = json!(act.replace('/', " "));
        assert_eq!((&refused["outcome"], &refused["command"]), (&json!("not_allowed"), &command));
        assert_eq!(refused["operator"]["channel"], "console");
        let (status, page) = operator.act(&path, &fields).await;
        let done = acts().await;
        // The refused one has made none.
        assert_eq!((status, done.len()), (200, count + 1), "{act}: {page}");
        let reason = if act == "app/suspend" { json!("too many calls") } else { json!(null) };
        assert_eq!(done[0]["reason"], reason, "{act}");
        assert_eq!((&done[0]["channel"], &done[0]["command"]), (&json!("console"), &command));
        count = done.len();
    }
    assert_eq!(json_of(&program.data, "audit verify").await["sound"], true);
}

#[tokio::test]
async fn a_form_is_taken_once_and_says_a_mistake_in_words_at_its_field() {
    let program = Program::start(WATCHED).await;
    let browser = Browser::enter(&program, "--operate").await;
    let keys = async || json_of(&program.data, "key list").await.as_array().map_or(0, Vec::len);
    let before = keys().await;
    let form = form_id(&browser.get("/act/key/create?app=demo").await.body);
    let sent = format!("app=demo&form-id={form}");
    assert_eq!(browser.post("/act/key/create", &sent, OWN).await.status, 200);
    assert_eq!(browser.post("/act/key/create", &sent, OWN).await.status, 409);
    assert_eq!(browser.post("/act/key/create", "app=demo", OWN).await.status, 409, "a form without its id");
    assert_eq!(keys().await, before + 1);
    let other = Browser::enter(&program, "--operate").await;
    let form = form_id(&other.get("/act/key/create?app=demo").await.body);
    let sent = format!("app=demo&form-id={form}");
    assert_eq!(browser.post("/act/key/create", &sent, OWN).await.status, 409, "the form of another session");

    for (act, fields, status, words) in [
        ("app/create", "name=x", 400, "role=\"alert\">Choose at least one</p>"),
        ("app/create", "permission=device", 400, "aria-invalid"),
        ("app/create", "name=x&permission=device&assign=none", 404, "There is no device `none`"),
        ("app/create", "name=demo&permission=device", 400, "aria-invalid"),
        ("app/create", "name=x&permission=device&key=on&expires=2020-01-01", 400, "The end of a key must be"),
        ("device/assign", "app=demo&ids=phone-0000001&all=on", 400, "does not go together"),
        ("app/rate", "app=demo&requests_per_minute=many", 400, "`many` cannot be taken: invalid digit"),
        ("app/grant", "app=demo&permissions=fly", 400, "fly"),
        ("app/show", "app=demo", 404, "no such page"),
        ("app/suspend", "app=--help", 404, "There is no application `--help`"),
        ("key/revoke", "key=cpk_0", 404, "cpk_0"),
        ("backup/inside", "file=x", 404, "no such page"),
    ] {
        let form = form_id(&browser.get("/act/key/create").await.body);
        let answer = browser.post(&format!("/act/{act}"), &format!("{fields}&form-id={form}"), OWN).await;
        assert_eq!(answer.status, status, "{act}: {}", answer.body);
        assert!(answer.body.contains(words), "{act}: {}", answer.body);
    }
    assert_eq!(json_of(&program.data, "app list --deleted").await, json!([]));
    let fields = "name=new&permission=device&assign=phone-0000001&assign=phone-0000002&key=on&expires=90";
    let (status, page) = browser.act("/act/app/create", fields).await;
    let key = key_of_page(&page);
    assert!(status == 200 && page.contains("&#34;Authorization&#34;: &#34;Bearer "), "{page}");
    assert!(page.contains("the key ends at"), "{page}");
    let made = json_of(&program.data, "app show new").await;
    assert_eq!(
        (&made["devices"], &made["keys"][0]["key_id"]),
        (&json!(["phone-0000001", "phone-0000002"]), &json!(key))
    );
}

/// Returns the id of a new key, which the page has with its secret.
fn key_of_page(page: &str) -> &str {
    let (_, field) = page.split_once("<input value=\"").expect("a key");
    field.split(':').next().expect("an id")
}

#[tokio::test]
async fn an_operator_calls_tools_that_read_or_issue_as_an_application_and_the_trail_names_both() {
    let mut program = Program::start(WATCHED).await;
    let [viewer, operator] = [Browser::enter(&program, "").await, Browser::enter(&program, "--operate").await];
    let app = json_of(&program.data, "app show demo").await["id"].clone();
    let latest = async || json_of(&program.data, "audit list --limit 2").await["lines"].take();
    let of_target = "/fleet/device/phone-0000001";
    let seen = viewer.get(&format!("{of_target}?app=demo")).await;
    assert!(seen.status == 200 && seen.body.contains("Proxy schemes"), "{}", seen.body);
    let lines = latest().await;
    let (call, asked) = (&lines[0], &lines[1]);
    assert_eq!((&call["application"], &call["tool"], &call["outcome"]), (&app, &json!("get_device"), &json!("ok")));
    assert_eq!(
        (&asked["command"], &asked["object"], &asked["request_id"]),
        (&json!("app call"), &app, &call["request_id"])
    );
    assert_eq!(asked["operator"]["channel"], "console");
    let found = json_of(&program.data, &format!("find {}", call["request_id"].as_str().expect("an id"))).await;
    assert_eq!(found["lines"].as_array().map_or(0, Vec::len), 2, "{found}");

    let issue = "/act/app/call?tool=create_session&";
    assert!(!viewer.get(of_target).await.body.contains("create_session"));
    assert!(operator.get(of_target).await.body.contains(&issue.replace('&', "&#38;")));
    let fields = "app=demo&tool=create_session&arguments=%7B%22device_id%22%3A%22phone-0000001%22%7D";
    assert_eq!(viewer.post("/act/app/call", fields, OWN).await.status, 403);
    let (status, page) = operator.act("/act/app/call", fields).await;
    assert!(status == 200 && page.contains("/screen#") && page.contains("rel=\"noreferrer\""), "{page}");
    let acts = json_of(&program.data, "acts --limit 1").await;
    let lines = latest().await;
    let is_of_act = |line: &Value| line["request_id"] == acts[0]["act_id"];
    assert!(acts[0]["object"] == app && lines.as_array().is_some_and(|lines| lines.iter().any(is_of_act)), "{lines}");

    json_of(&program.data, "app create idle --permission device").await;
    for (fields, words) in [
        ("app=demo&tool=set_power", "changes something"),
        ("app=demo&tool=fly", "no tool `fly`"),
        ("app=demo&tool=get_device&arguments=%7B", "no JSON object"),
        ("app=demo&tool=list_devices&arguments=%22hunter2%22", "no JSON object"),
        ("app=&tool=list_devices", "no application"),
        ("app=demo&tool=get_device&arguments=%7B%22device_id%22%3A%22none%22%7D", "Not_found: "),
        ("app=idle&tool=list_devices", "no live key"),
    ] {
        let (status, page) = operator.act("/act/app/call", fields).await;
        assert!((400..500).contains(&status) && page.contains(words), "{fields}: {page}");
    }
    let trail = json_of(&program.data, "audit list --operator root --limit 8").await.to_string();
    assert!(!trail.contains("hunter2") && trail.contains("app call"), "{trail}");
    let idle = json_of(&program.data, "app show idle").await["id"].clone();
    let lines = json_of(&program.data, "audit list --limit 20").await["lines"].take();
    let called = |line: &&Value| line["object"] == idle && line["command"] == "app call" && line["outcome"] == "ok";
    assert_eq!(lines.as_array().expect("lines").iter().find(called), None, "a refused call is not told as made");
    program.stop().await;
    says(&program.data, "app call demo list_devices", 5, "no server runs here").await;
}
