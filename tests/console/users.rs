//! Several users of the console: one who leaves a group, and two who share a browser.

use super::browser::{Browser, OWN, form_id};
use crate::harness::program::{Program, json_of};
use crate::operate::owners::{OPERATE, OTHER, SERVICE, VIEW, make_used_home, run_as_member, serve_groups_through};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A server on a machine that asks a directory for the groups of a user.
struct SharedMachine {
    program: Program,
    sockets: PathBuf,
}

impl SharedMachine {
    /// Returns `None` if this machine does not allow that.
    async fn start() -> Option<Self> {
        let home = make_used_home().await?;
        let id = home.path().join("id");
        fs::write(&id, format!("#!/bin/sh\ncat {}/groups-of-\"$3\"\n", home.path().display())).expect("written");
        fs::set_permissions(&id, Permissions::from_mode(0o755)).expect("a mode");
        let path = format!("PATH={}:{}", home.path().display(), std::env::var("PATH").expect("a path"));
        let (program, sockets) = serve_groups_through(&home, &["env", &path]).await;
        Some(Self { program, sockets })
    }

    fn set_groups(&self, groups: &[u32]) {
        let text: Vec<_> = groups.iter().map(u32::to_string).collect();
        fs::write(self.sockets.with_file_name(format!("groups-of-{OTHER}")), text.join(" ")).expect("written");
    }

    async fn enter(&self, group: u32, flags: &str) -> Browser {
        Browser::enter_by(&run_as_member(OTHER, group, &self.sockets, "", &format!("console{flags}")).await.1).await
    }
}

#[tokio::test]
async fn a_user_who_leaves_a_group_has_no_more_of_it_in_a_session_that_is_open() {
    let Some(shared) = SharedMachine::start().await else { return };
    let (data, both) = (&shared.program.data, [OTHER, OPERATE, VIEW]);
    shared.set_groups(&both);
    let browsers = [shared.enter(OPERATE, " --operate").await, shared.enter(VIEW, "").await];
    let form = browsers[0].get("/act/app/label?app=demo").await.body;
    let fields = format!("app=demo&labels=owner=Ada&form-id={}", form_id(&form));
    let read = async || [browsers[0].get("/tasks").await.status, browsers[1].get("/tasks").await.status];
    for (groups, page, act, words) in [
        (&[OTHER, VIEW][..], 200, 403, "may only read here"),
        (&[OTHER], 401, 401, "names no group of yours"),
        (&[], 401, 401, "names no group of yours"),
    ] {
        shared.set_groups(groups);
        assert_eq!(read().await, [page; 2], "{groups:?}");
        let answer = browsers[0].post("/act/app/label", &fields, OWN).await;
        assert!(answer.status == act && answer.body.contains(words), "{groups:?}: {}", answer.body);
        let window = browsers[1].send("GET /tasks", "x-shown: 0\r\n", "").await;
        assert_eq!(window.status, page, "{groups:?}");
        assert_eq!(json_of(data, "acts --limit 1").await[0]["command"], "console", "{groups:?}");
    }
    let line = &json_of(data, "audit list --outcome not_allowed").await["lines"][0];
    assert_eq!([&line["operator"]["uid"], &line["command"]], [&json!(OTHER), &json!("app label")]);
    for groups in [&[OPERATE][..], &both] {
        shared.set_groups(groups);
        assert_eq!(read().await, [200; 2], "a member of the operate group may read too");
        assert_eq!(browsers[0].act("/act/app/label?app=demo", "app=demo&labels=owner=Ada").await.0, 200);
    }
}

#[tokio::test]
async fn a_link_of_another_user_begins_a_session_in_a_browser_in_use_only_after_a_question() {
    let Some(shared) = SharedMachine::start().await else { return };
    shared.set_groups(&[OPERATE]);
    let own = Browser::enter(&shared.program, "--operate").await;
    let link =
        async || Browser::at_link(&run_as_member(OTHER, OPERATE, &shared.sockets, "", "console --operate").await.1);
    let label = async |browser: &Browser| {
        assert_eq!(browser.act("/act/app/label?app=demo", "app=demo&labels=owner=Ada").await.0, 200);
        json_of(&shared.program.data, "acts --limit 1").await[0]["uid"].clone()
    };
    let (_, code) = link().await;
    for confirmed in ["", "&user=", &format!("&user={SERVICE}"), "&user=on"] {
        let answer = own.post("/in", &format!("code={code}&to=/keys{confirmed}"), OWN).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (200, None), "{confirmed}");
        for part in [&format!("You are {SERVICE} here. Go on as {OTHER}?"), &code, "value=\"/keys\""] {
            assert!(answer.body.contains(part), "{part}: {}", answer.body);
        }
    }
    assert_eq!(label(&own).await, SERVICE);
    let mut next = own.clone();
    let answer = next.post("/in", &format!("code={code}&to=/keys&user={OTHER}"), OWN).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/keys")), "{}", answer.body);
    next.keep_cookie(&answer);
    assert_eq!(label(&next).await, OTHER);

    // A browser whose session has ended, a new one, and one of the same user.
    json_of(&shared.program.data, "console end --all").await;
    for (cookie, status) in [(&*own.cookie, 200), ("", 303), (&next.cookie, 303)] {
        let (at, code) = link().await;
        let browser = Browser { cookie: cookie.to_owned(), ..at };
        assert_eq!(browser.post("/in", &format!("code={code}"), OWN).await.status, status, "{cookie}");
    }
}
