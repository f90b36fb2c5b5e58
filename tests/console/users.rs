//! Several users of the console: one who leaves a group, and two who share a browser.

use super::browser::{Browser, OWN};
use crate::harness::program::{Program, json_of};
use crate::operate::owners::{OPERATE, OTHER, SERVICE, VIEW, make_used_home, run_as_member, serve_groups_through};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A server whose machine asks a directory for the groups of a user.
struct Shared {
    home: Arc<TempDir>,
    program: Program,
    sockets: PathBuf,
}

impl Shared {
    /// Returns `None` if this machine does not allow that.
    async fn start() -> Option<Self> {
        let home = make_used_home().await?;
        let folder = home.path().join("bin");
        fs::create_dir(&folder).expect("a folder");
        let script = format!("#!/bin/sh\n[ \"$1\" = -G ] && exec cat {}/groups-of-\"$3\"\n", home.path().display());
        fs::write(folder.join("id"), script).expect("written");
        fs::set_permissions(folder.join("id"), Permissions::from_mode(0o755)).expect("a mode");
        let path = format!("PATH={}:{}", folder.display(), std::env::var("PATH").expect("a path"));
        let (program, sockets) = serve_groups_through(&home, &["env", &path]).await;
        Some(Self { home, program, sockets })
    }

    fn set_groups(&self, groups: Option<String>) {
        let file = self.home.path().join(format!("groups-of-{OTHER}"));
        match groups {
            Some(groups) => fs::write(&file, groups).expect("written"),
            None => fs::remove_file(&file).expect("removed"),
        }
    }

    async fn link(&self, group: u32, flags: &str) -> (i32, Value) {
        run_as_member(OTHER, group, &self.sockets, "", format!("console {flags}").trim_end()).await
    }
}

#[tokio::test]
async fn a_user_who_leaves_a_group_has_no_more_of_it_in_a_session_that_is_open() {
    let Some(shared) = Shared::start().await else { return };
    let both = format!("{OTHER} {OPERATE} {VIEW}\n");
    shared.set_groups(Some(both.clone()));
    let operator = Browser::enter_by(&shared.link(OPERATE, "--operate").await.1).await;
    let viewer = Browser::enter_by(&shared.link(VIEW, "").await.1).await;
    let count = async || json_of(&shared.program.data, "acts --limit 1000").await.as_array().map_or(0, Vec::len);
    let form = operator.get("/act/app/label?app=demo").await.body;
    for (groups, act) in [(both.clone(), 200), (format!("{OTHER} {VIEW}"), 403), (format!("{OPERATE}"), 200)] {
        shared.set_groups(Some(groups.clone()));
        let before = count().await;
        assert_eq!([operator.get("/tasks").await.status, viewer.get("/tasks").await.status], [200, 200], "{groups}");
        let form = match act {
            403 => super::browser::form_id(&form),
            _ => super::browser::form_id(&operator.get("/act/app/label?app=demo").await.body),
        };
        let fields = format!("app=demo&labels=owner=Ada&form-id={form}");
        let answer = operator.post("/act/app/label", &fields, OWN).await;
        assert_eq!(
            (answer.status, count().await),
            (act, before + usize::from(act == 200)),
            "{groups}: {}",
            answer.body
        );
        if act == 403 {
            assert!(answer.body.contains("may only read here"), "{}", answer.body);
            assert!(answer.body.contains("· view"), "{}", answer.body);
            let line = &json_of(&shared.program.data, "audit list --limit 1").await["lines"][0];
            let seen = [&line["operator"]["uid"], &line["command"], &line["outcome"]];
            assert_eq!(seen, [&json!(OTHER), &json!("app label"), &json!("not_allowed")]);
        }
    }
    // A user without a group, and one whom the machine does not know any more.
    for groups in [Some(format!("{OTHER}")), None] {
        shared.set_groups(Some(both.clone()));
        let more = Browser::enter_by(&shared.link(VIEW, "").await.1).await;
        assert_eq!(more.get("/tasks").await.status, 200);
        shared.set_groups(groups);
        let answer = more.send("GET /tasks", "x-shown: 0\r\n", "").await;
        assert!(answer.status == 401 && answer.body.contains("names no group of yours"), "{}", answer.body);
        shared.set_groups(Some(both.clone()));
        assert_eq!(more.get("/tasks").await.status, 401, "the session has ended");
    }
    assert_eq!([operator.get("/tasks").await.status, viewer.get("/tasks").await.status], [200, 200]);
}

#[tokio::test]
async fn a_link_of_another_user_begins_a_session_in_a_browser_in_use_only_after_a_question() {
    let Some(shared) = Shared::start().await else { return };
    shared.set_groups(Some(format!("{OPERATE}")));
    let own = Browser::enter(&shared.program, "--operate").await;
    let (_, code) = Browser::at_link(&shared.link(OPERATE, "--operate").await.1);
    for confirmed in ["", "&user=", &format!("&user={SERVICE}"), "&user=on"] {
        let answer = own.post("/in", &format!("code={code}&to=/keys{confirmed}"), OWN).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (200, None), "{confirmed}");
        for part in [format!("You are {SERVICE} here. Go on as {OTHER}?"), code.clone(), "value=\"/keys\"".to_owned()] {
            assert!(answer.body.contains(&part), "{part}: {}", answer.body);
        }
    }
    assert_eq!(own.act("/act/app/label?app=demo", "app=demo&labels=owner=Ada").await.0, 200);
    let latest = async || json_of(&shared.program.data, "acts --limit 1").await[0]["uid"].clone();
    assert_eq!(latest().await, SERVICE);
    let mut next = own.clone();
    let answer = next.post("/in", &format!("code={code}&to=/keys&user={OTHER}"), OWN).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/keys")), "{}", answer.body);
    next.keep_cookie(&answer);
    assert_eq!(next.act("/act/app/label?app=demo", "app=demo&labels=owner=Bea").await.0, 200);
    assert_eq!(latest().await, OTHER);

    // The browser of a session that has ended is asked too, and one without a session or of the
    // same user is not.
    json_of(&shared.program.data, "console end --all").await;
    let mut fresh = own.clone();
    fresh.cookie.clear();
    for (browser, status) in [(&own, 200), (&fresh, 303), (&next, 303)] {
        let (at, code) = Browser::at_link(&shared.link(OPERATE, "--operate").await.1);
        let browser = Browser { cookie: browser.cookie.clone(), ..at };
        assert_eq!(browser.post("/in", &format!("code={code}"), OWN).await.status, status);
    }
}
