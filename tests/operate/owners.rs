//! A data folder of one user, and commands of root and of other users on it.

use super::audit::newest;
use crate::harness::program::{Program, binary, json_of, send, start};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;
use tokio::process::Command;

/// They need no name on this machine.
pub(crate) const SERVICE: u32 = 61_234;
pub(crate) const OTHER: u32 = 61_235;

const ROOT: u32 = 0;

const NO_PATHS: [PathBuf; 0] = [];

/// The first may change something, the second may only read.
pub(crate) const OPERATE: u32 = 61_236;
pub(crate) const VIEW: u32 = 61_237;

async fn run_as(user: u32, data: &Path, line: &str) -> (i32, String) {
    let mut command = Command::new(binary());
    command.args(line.split(' ')).arg("--data").arg(data).uid(user).gid(user).kill_on_drop(true);
    let output = command.output().await.expect("the program runs");
    let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    (output.status.code().expect("an exit code"), text)
}

/// Expects the exit code, and these parts of what the program prints.
async fn says_as(user: u32, data: &Path, line: &str, code: i32, parts: &[&str]) {
    let (found, said) = run_as(user, data, line).await;
    assert!(found == code && parts.iter().all(|part| said.contains(part)), "{user}: {line}: {parts:?}: {found} {said}");
}

/// Returns `None` if this machine does not allow that.
pub(crate) async fn make_used_home() -> Option<Arc<TempDir>> {
    let is_open = |folder: &Path| folder.metadata().is_ok_and(|about| about.mode() & 0o001 != 0);
    if !rustix::process::geteuid().is_root() {
        println!("left out: only root can start a program as several users");
        return None;
    }
    if !binary().ancestors().skip(1).all(is_open) {
        println!("left out: other users cannot enter the folder of the program");
        return None;
    }
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("a mode");
    let data = home.path().join("data");
    fs::create_dir(&data).expect("a folder");
    fs::set_permissions(&data, Permissions::from_mode(0o700)).expect("a mode");
    chown(&data, Some(SERVICE), Some(SERVICE)).expect("another owner");
    serve_as_service(&home).await;
    Some(home)
}

async fn serve_as_service(home: &Arc<TempDir>) {
    let id = SERVICE.to_string();
    let as_service = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
    let mut program = Program::start_as(home.clone(), start(home).through(&as_service)).await;
    if !program.keys.is_empty() {
        program.call("list_devices", serde_json::json!({})).await.expect("a page");
    }
    program.stop().await;
}

fn list_of_others(user: u32, folder: &Path) -> Vec<PathBuf> {
    let inside = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let below = inside.flat_map(|path| if path.is_dir() { list_of_others(user, &path) } else { vec![path] });
    let of_other = |path: &PathBuf| path.symlink_metadata().expect("a file").uid() != user;
    below.chain([folder.to_owned()]).filter(of_other).collect()
}

#[tokio::test]
async fn commands_of_root_keep_the_owner_of_every_file_and_the_server_starts_again() {
    let Some(home) = make_used_home().await else { return };
    let data = home.path().join("data");
    let backups = home.path().join("backups");
    fs::create_dir(&backups).expect("a folder");
    chown(&backups, Some(SERVICE), Some(SERVICE)).expect("another owner");
    let backup = format!("backup {}/one.tar", backups.display());
    for line in ["app create shop --permission device", "app list", "task list", "audit verify", &backup, "doctor"] {
        says_as(ROOT, &data, line, 0, &["as the owner of the data folder"]).await;
        assert_eq!(list_of_others(SERVICE, &data), NO_PATHS, "{line}");
    }
    assert_eq!(list_of_others(SERVICE, &backups), NO_PATHS);
    // A server of root keeps the owner as well.
    Program::start_at(home.clone(), &[]).await.stop().await;
    assert_eq!(list_of_others(SERVICE, &data), NO_PATHS);
    serve_as_service(&home).await;
}

#[tokio::test]
async fn a_command_of_root_follows_no_link_in_the_folder_of_another_user() {
    let Some(home) = make_used_home().await else { return };
    let data = home.path().join("data");
    let of_root = home.path().join("of-root");
    fs::write(&of_root, "root's").expect("written");
    fs::set_permissions(&of_root, Permissions::from_mode(0o600)).expect("a mode");
    type Link = fn(&Path, &Path) -> std::io::Result<()>;
    let links: [Link; 2] = [|to, at| symlink(to, at), |to, at| fs::hard_link(to, at)];
    for name in
        ["lock", "service", "cloudphone.watermark", "cloudphone.watermark.new", "cloudphone.db-wal", "simulated.jsonl"]
    {
        for link in links {
            let place = data.join(name);
            let aside = fs::rename(&place, home.path().join("aside")).is_ok();
            link(&of_root, &place).expect("a link");
            for line in ["app create one --permission device", "app list", "doctor"] {
                run_as(ROOT, &data, line).await;
                let about = of_root.symlink_metadata().expect("a file");
                assert_eq!(fs::read_to_string(&of_root).expect("text"), "root's", "{name}: {line}");
                assert_eq!((about.uid(), about.mode() & 0o777), (ROOT, 0o600), "{name}: {line}");
            }
            let _ = fs::remove_file(&place);
            if aside {
                fs::rename(home.path().join("aside"), &place).expect("moved back");
            }
        }
    }
    // The folder itself is a link of the user to a folder of root.
    let private = home.path().join("private");
    fs::create_dir(&private).expect("a folder");
    fs::set_permissions(&private, Permissions::from_mode(0o700)).expect("a mode");
    let linked = home.path().join("linked");
    symlink(&private, &linked).expect("a link");
    std::os::unix::fs::lchown(&linked, Some(SERVICE), Some(SERVICE)).expect("another owner");
    says_as(ROOT, &linked, "app create one --permission device", 1, &[]).await;
    assert_eq!(fs::read_dir(&private).expect("a folder").count(), 0);
}

#[tokio::test]
async fn root_uses_no_folder_of_its_own_that_another_user_can_replace() {
    let Some(home) = make_used_home().await else { return };
    let [users, near] = ["users", "near"].map(|name| home.path().join(name));
    let deep = users.join("kept");
    for folder in [&users, &deep, &deep.join("data"), &users.join("data")] {
        fs::create_dir(folder).expect("a folder");
    }
    chown(&users, Some(SERVICE), Some(SERVICE)).expect("another owner");
    symlink(users.join("data"), &near).expect("a link");
    for data in [users.join("data"), deep.join("data"), near, deep.join("new")] {
        let [shown, users] = [&data, &users].map(|path| path.display());
        let why = format!("root does not use {shown}, because {users} belongs to the user {SERVICE}; run this as that");
        says_as(ROOT, &data, "app create one --permission device", 1, &[&why]).await;
        assert_eq!(fs::read_dir(&data).map_or(0, Iterator::count), 0, "{shown}");
    }
    // A new folder belongs to the owner of the one around it.
    says_as(ROOT, &users.join("new"), "app create one --permission device", 0, &[]).await;
    assert_eq!(list_of_others(SERVICE, &users.join("new")), NO_PATHS);
}

#[tokio::test]
async fn a_refusal_to_open_names_the_file_its_owner_and_the_command_that_gives_it_back() {
    let Some(home) = make_used_home().await else { return };
    let data = home.path().join("data");
    let day = newest(&data);
    let wal = data.join("cloudphone.db-wal");
    for file in [data.join("cloudphone.watermark"), data.join("cloudphone.db"), data.join("lock"), wal, day] {
        // A database that was closed has no log.
        if !file.exists() {
            fs::write(&file, "").expect("written");
        }
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a mode");
        chown(&file, Some(ROOT), Some(ROOT)).expect("another owner");
        let shown = file.display();
        let expected = format!(
            "{shown} belongs to the user root (0), and this program runs as the user {SERVICE}: run `chown -R {SERVICE} {shown}` as root"
        );
        says_as(SERVICE, &data, "--listen 127.0.0.1:0", 1, &["Permission denied", &expected]).await;
        for user in [ROOT, SERVICE] {
            says_as(user, &data, "doctor", 1, &[&format!("{shown} belongs to the user root (0)")]).await;
        }
        let repaired = Command::new("chown").arg("-R").arg(SERVICE.to_string()).arg(&file).status().await;
        assert!(repaired.expect("chown").success());
    }
    serve_as_service(&home).await;
}

#[tokio::test]
async fn another_user_is_refused_with_the_name_of_the_owner_and_changes_nothing() {
    let Some(home) = make_used_home().await else { return };
    let data = home.path().join("data");
    fs::set_permissions(&data, Permissions::from_mode(0o777)).expect("a mode");
    for name in ["service", "cloudphone.db", "cloudphone.watermark", "lock", "master.key"] {
        fs::set_permissions(data.join(name), Permissions::from_mode(0o666)).expect("a mode");
    }
    for line in ["app list", "app create mine --permission device", "doctor", "--listen 127.0.0.1:0"] {
        let expected = format!("belongs to the user {SERVICE}, and this program runs as the user {OTHER}");
        says_as(OTHER, &data, line, 1, &[&expected]).await;
        assert_eq!(list_of_others(SERVICE, &data), NO_PATHS, "{line}");
    }
    let key = home.path().join("key");
    fs::write(&key, "key_1:secret_1").expect("written");
    for (owner, mode, code, part) in
        [(ROOT, 0o440, 0, "X-Api-Key: key_1"), (ROOT, 0o444, 1, "run `chown "), (SERVICE, 0o440, 1, "run `chown ")]
    {
        chown(&key, Some(owner), Some(OTHER)).expect("another owner");
        fs::set_permissions(&key, Permissions::from_mode(mode)).expect("a mode");
        let line = format!("sign GET /v1/devices --key-file {}", key.display());
        says_as(OTHER, home.path(), &line, code, &[part]).await;
    }
}

#[tokio::test]
async fn root_restores_into_a_folder_that_it_makes_for_the_user_of_the_service() {
    let Some(home) = make_used_home().await else { return };
    let data = home.path().join("data");
    let (backup, key) = (home.path().join("backup.tar"), home.path().join("master.key"));
    chown(home.path(), Some(SERVICE), Some(SERVICE)).expect("another owner");
    says_as(SERVICE, &data, &format!("backup {}", backup.display()), 0, &[]).await;
    chown(home.path(), Some(ROOT), Some(ROOT)).expect("another owner");
    fs::copy(data.join("master.key"), &key).expect("copied");
    // Both files are root's alone, as after a copy from another machine.
    chown(&backup, Some(ROOT), Some(ROOT)).expect("another owner");
    chown(&key, Some(ROOT), Some(ROOT)).expect("another owner");
    fs::rename(&data, home.path().join("before")).expect("moved");
    let line = format!("restore {} --master-key {}", backup.display(), key.display());
    let unknown = "this machine has no user nobody-here; give its number";
    says_as(ROOT, &data, &format!("{line} --owner nobody-here"), 1, &[unknown]).await;
    symlink(home.path().join("before"), &data).expect("a link");
    let line = format!("{line} --owner {SERVICE}");
    says_as(ROOT, &data, &line, 1, &["Permission denied"]).await;
    fs::remove_file(&data).expect("removed");
    says_as(ROOT, &data, &line, 0, &[&format!("the user {SERVICE}")]).await;
    assert_eq!(list_of_others(SERVICE, &data), NO_PATHS);
    serve_as_service(&home).await;
}

pub(crate) async fn serve_groups(home: &Arc<TempDir>) -> (Program, PathBuf) {
    serve_groups_through(home, &[]).await
}

pub(crate) async fn serve_groups_through(home: &Arc<TempDir>, way: &[&str]) -> (Program, PathBuf) {
    let sockets = home.path().join("sockets");
    fs::create_dir(&sockets).expect("a folder");
    chown(&sockets, Some(SERVICE), Some(SERVICE)).expect("another owner");
    let [id, operate, view] = [SERVICE, OPERATE, VIEW].map(|id| id.to_string());
    let groups = format!("{operate},{view}");
    let as_service = [way, &["setpriv", "--reuid", &id, "--regid", &id, "--groups", &groups]].concat();
    let folder = sockets.to_str().expect("text");
    let flags = ["--operator-sockets", folder, "--operate-group", &operate, "--view-group", &view];
    (Program::start_as(home.clone(), start(home).through(&as_service).flags(&flags)).await, sockets)
}

/// Sets `sudo_user` as `sudo` would.
pub(crate) async fn run_as_member(user: u32, group: u32, folder: &Path, sudo_user: &str, line: &str) -> (i32, Value) {
    let mut command = Command::new(binary());
    command.args(line.split(' ')).arg("--json").env("SUDO_USER", sudo_user).env("CLOUDPHONE_OPERATOR_SOCKETS", folder);
    let output = command.current_dir(folder).uid(user).gid(group).kill_on_drop(true).output().await;
    let output = output.expect("the program runs");
    (output.status.code().expect("an exit code"), serde_json::from_slice(&output.stdout).expect("one JSON document"))
}

fn send_as(user: u32, group: u32, socket: PathBuf, request: Value) -> io::Result<Value> {
    // The user of a thread is its own, and the system reads it when the thread connects.
    let send = move || {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        set_thread_groups(&[group])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
        send(&socket, &request)
    };
    thread::spawn(send).join().expect("no panic")
}

/// Returns the latest act, the newest line of an operator, and the number of acts.
async fn latest(data: &Path) -> (Value, Value, usize) {
    let mut acts = json_of(data, "acts --limit 10000").await;
    let lines = json_of(data, "audit list --limit 10000").await;
    let line = lines["lines"].as_array().expect("lines").iter().find(|line| !line["operator"].is_null());
    let count = acts.as_array().expect("acts").len();
    (acts[0].take(), line.cloned().unwrap_or_default(), count)
}

#[tokio::test]
async fn the_operator_of_an_act_is_the_user_that_the_system_names_and_a_claim_is_no_more() {
    let Some(home) = make_used_home().await else { return };
    let (mut program, sockets) = serve_groups(&home).await;
    let data = program.data.display().to_string();
    let (other, service) = (OTHER.to_string(), SERVICE.to_string());
    let direct = format!(" --socket {}/operate.sock", sockets.display());
    let owners = format!(" --data {data}");
    // A machine has no name for most of these users, and always one for root.
    for (user, group, sudo_user, way, uid, name, channel) in [
        (OTHER, OPERATE, "", "", OTHER, &*other, "operate_socket"),
        (OTHER, OPERATE, "ada", &*direct, OTHER, &other, "operate_socket"),
        (ROOT, ROOT, "ada", &direct, ROOT, "root", "operate_socket"),
        (ROOT, ROOT, "ada", &owners, SERVICE, &service, "owner_socket"),
    ] {
        let line = format!("app suspend demo --as eve --reason debts{way}");
        let (code, answer) = run_as_member(user, group, &sockets, sudo_user, &line).await;
        assert_eq!(code, 0, "{answer}");
        let (act, line, _) = latest(&program.data).await;
        assert_eq!((&act["act_id"], &line["act_id"]), (&answer["act_id"], &answer["act_id"]));
        let mut operator = line["operator"].clone();
        let mut claims = operator["claims"].take();
        // This machine may record who logged in.
        claims.as_object_mut().expect("claims").remove("login_uid");
        let role = if channel == "owner_socket" { "owner" } else { "operate" };
        let verified = json!({"role": role, "name": name, "uid": uid, "channel": channel, "claims": null});
        assert_eq!((&operator, &act["by"], &act["uid"]), (&verified, &json!(name), &json!(uid)));
        let mut expected = json!({"as": "eve", "reason": "debts"});
        if !sudo_user.is_empty() {
            expected["sudo_user"] = sudo_user.into();
        }
        assert_eq!(claims, expected);
    }

    // The server cuts what a client sends, and believes nothing of it.
    let long = "x".repeat(600);
    let claims =
        json!({"sudo_user": "a\n\u{1b}[2Jb", "as": long, "reason": "é\u{7}".repeat(600), "uid": 0, "role": "owner"});
    let command = json!({"app": {"resume": {"app": "demo"}}});
    let request = json!({"program": "cloudphone", "command": command, "claims": claims});
    let answer = send_as(OTHER, OPERATE, sockets.join("operate.sock"), request).expect("an answer");
    assert!(answer["Ok"]["json"]["act_id"].is_string(), "{answer}");
    let (_, line, _) = latest(&program.data).await;
    let operator = &line["operator"];
    assert_eq!((&operator["uid"], &operator["role"]), (&json!(OTHER), &json!("operate")));
    for claim in ["sudo_user", "as", "reason"] {
        let text = operator["claims"][claim].as_str().expect("text");
        assert!(text.chars().count() <= 500 && !text.chars().any(char::is_control), "{claim}: {text}");
    }
    program.stop().await;
}

#[tokio::test]
async fn a_reader_changes_nothing_past_the_command_line_either_and_a_stranger_is_told_which_group_to_join() {
    let Some(home) = make_used_home().await else { return };
    let (mut program, sockets) = serve_groups(&home).await;
    let data = program.data.clone();
    let [operate, view] = ["operate.sock", "view.sock"].map(|name| sockets.join(name));
    let suspend = json!({"app": {"suspend": {"app": "demo"}}});
    let request = json!({"program": "cloudphone", "command": suspend.clone(), "claims": {}});
    assert_eq!(run_as_member(OTHER, VIEW, &sockets, "", "app list").await.0, 0);
    let (_, _, before) = latest(&data).await;
    let answer = send_as(OTHER, VIEW, view.clone(), request.clone()).expect("an answer");
    assert_eq!(answer["Err"]["code"], "not_allowed", "{answer}");
    let (_, line, count) = latest(&data).await;
    let seen = [&line["operator"]["uid"], &line["operator"]["channel"], &line["command"], &line["outcome"]];
    assert_eq!(json!(seen), json!([OTHER, "view_socket", "app suspend", "not_allowed"]));
    assert_eq!(count, before, "no act");
    for _ in 0..200 {
        send_as(OTHER, VIEW, view.clone(), request.clone()).expect("an answer");
    }
    // The loop may cross a minute, which begins with further lines.
    let refused = json_of(&data, "audit list --outcome not_allowed --limit 10000").await;
    assert!(refused["lines"].as_array().is_some_and(|lines| lines.len() <= 2 * 60 + 1), "{refused}");
    let unknown = json!({"target": {"resource": "x".repeat(1_000), "command": {"set": {"app": "demo", "terms": []}}}});
    let request = json!({"program": "cloudphone", "command": unknown, "claims": {}});
    let answer = send_as(OTHER, VIEW, view.clone(), request).expect("an answer");
    assert_eq!(answer["Err"]["code"], "refused", "nothing of it is in a line: {answer}");
    let request = json!({"program": "cloudphone", "command": suspend, "claims": {}});
    assert_eq!(json_of(&data, "app show demo").await["suspended_at"], Value::Null);

    // Refused commands of a minute have a line that comes later.
    let lines = async || {
        let listed = json_of(&data, "audit list --limit 10000").await;
        let lines = listed["lines"].as_array().expect("lines").iter();
        let others: Vec<_> = lines.filter(|line| line["outcome"] != "not_allowed").cloned().collect();
        (latest(&data).await.2, others)
    };
    let before = lines().await;
    for (group, socket) in [(OTHER, &operate), (OTHER, &view), (VIEW, &operate)] {
        let refused = send_as(OTHER, group, socket.clone(), request.clone()).expect_err("the system refuses");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
    for way in [String::new(), format!(" --socket {}", view.display())] {
        for command in ["app list", "app create mine --permission device"] {
            let (code, answer) = run_as_member(OTHER, OTHER, &sockets, "", &format!("{command}{way}")).await;
            let said = answer["error"]["message"].as_str().expect("text");
            let expected = format!("{} (group {VIEW}); join a group and log in again", view.display());
            assert!(code == 6 && said.contains(&expected), "{command}{way}: {answer}");
        }
    }
    assert_eq!(lines().await, before);
    program.stop().await;
}

#[tokio::test]
async fn a_group_that_does_not_exist_or_that_the_server_is_no_member_of_ends_the_start_by_name() {
    let Some(home) = make_used_home().await else { return };
    let data = home.path().join("data");
    chown(home.path(), Some(SERVICE), Some(SERVICE)).expect("another owner");
    for (flag, group, expected) in [
        ("--operate-group", "nobody-here", "this machine has no group `nobody-here`, which --operate-group names"),
        ("--view-group", "4294967295", "this machine has no group `4294967295`, which --view-group names"),
        ("--operate-group", "61236", "operate.sock to the group `61236`: Operation not permitted"),
        ("--view-group", "root", "view.sock to the group `root`: Operation not permitted"),
    ] {
        let line = format!("--listen 127.0.0.1:0 --operator-sockets {} {flag} {group}", home.path().display());
        says_as(SERVICE, &data, &line, 1, &[expected]).await;
        let left = fs::read_dir(home.path()).expect("a folder").flatten();
        assert!(left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().ends_with(".sock")), "{flag}");
    }
}

#[tokio::test]
async fn root_that_cannot_become_the_owner_says_so_to_programs_as_well() {
    let Some(home) = make_used_home().await else { return };
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-setuid", "--inh-caps", "-setuid"]).arg(binary());
    let output = command.args(["app", "list", "--json", "--data"]).arg(home.path().join("data")).output().await;
    let output = output.expect("the program runs");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let said = answer["error"]["message"].as_str().expect("text");
    assert!(output.status.code() == Some(1) && said.contains(&format!("belongs to the user {SERVICE}")), "{answer}");
}
