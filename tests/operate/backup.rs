//! A backup taken while the program serves, and the folder restored from it.

use super::audit::read_trail;
use super::full_disk::limit;
use crate::harness::Key;
use crate::harness::program::{Program, binary, json_of, key_of, operate, says, start, steady};
use crate::harness::signed::Signed;
use crate::harness::writes::{database, power, wait_for_phases};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tempfile::TempDir;
use tokio::process::Command;

fn empty_beside(data: &Path) -> (Arc<TempDir>, PathBuf) {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let folder = home.path().join("data");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("a mode");
    fs::copy(data.join("master.key"), folder.join("master.key")).expect("copied");
    (home, folder)
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> = names.map(|entry| entry.file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

fn journal(data: &Path) -> String {
    fs::read_to_string(data.join("simulated.jsonl")).expect("the journal")
}

async fn states(data: &Path, keys: [&Key; 3]) -> [String; 3] {
    let listed = json_of(data, "key list shop").await;
    keys.map(|key| {
        let row = listed.as_array().expect("keys").iter().find(|row| row["key_id"] == *key.id).expect("it is there");
        row["state"].as_str().expect("text").to_owned()
    })
}

#[tokio::test]
async fn a_backup_brings_back_what_was_there_and_neither_a_key_nor_a_command_by_itself() {
    let mut program = Program::start(&[]).await;
    let data = program.data.clone();
    operate(&data, "app create shop --permission device").await;
    operate(&data, "device assign shop --all").await;
    let (kept, gone, dead) = (key_of(&data, "shop").await, key_of(&data, "shop").await, key_of(&data, "shop").await);
    operate(&data, &format!("key revoke {}", dead.id)).await;
    let task = program.call("set_power", power(13, "restart")).await.expect("accepted");
    wait_for_phases(&data, &[(13, "polling")]).await;

    let place = TempDir::new().expect("a temporary folder");
    let file = place.path().join("one.tar");
    let taken = json_of(&data, &format!("backup {}", file.display())).await;
    let held: Vec<_> =
        taken["files"].as_array().expect("names").iter().map(|name| name.as_str().expect("text")).collect();
    assert_eq!((held[0], *held.last().expect("several")), ("cloudphone.db", "simulated.jsonl"), "{taken}");
    assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(names(place.path()), ["one.tar"], "no draft is left");
    let bytes = fs::read(&file).expect("a file");
    let key = fs::read(data.join("master.key")).expect("a key");
    assert!(!bytes.windows(32).any(|part| part == &key[..32]), "the master key is kept apart");

    // The backup does not know any of this.
    operate(&data, &format!("key revoke {}", gone.id)).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
    let signed = Signed::at(now, &kept, "POST", "/v1/devices/phone-0000018/power").body(json!({"action": "restart"}));
    assert_eq!(signed.try_send(program.address).await.expect("an answer").status, 202);
    program.stop().await;

    let (home, restored) = empty_beside(&data);
    let said = says(&restored, &format!("restore {}", file.display()), 0, "").await;
    insta::assert_snapshot!(steady(&said, &restored));
    let healthy = json_of(&restored, "doctor").await;
    assert_eq!((&healthy["healthy"], &healthy["faults"]), (&json!(true), &json!([])));
    let before = journal(&restored);
    assert_eq!(before.lines().count(), 2, "one command was taken: {before}");

    let mut program = Program::start_at(home, &[]).await;
    assert!(program.keys.is_empty());
    for key in [&kept, &gone, &dead] {
        assert_eq!(program.status(key).await, 401);
    }
    let states = async || states(&restored, [&kept, &gone, &dead]).await;
    assert_eq!(states().await, ["unconfirmed", "unconfirmed", "revoked"]);
    for command in ["key rotate", "key end-old"] {
        says(&restored, &format!("{command} {}", kept.id), 1, "has been off since a restore").await;
    }
    says(&restored, &format!("key confirm {} {}", kept.id, dead.id), 1, "does not wait for confirmation").await;
    operate(&restored, &format!("key revoke {}", gone.id)).await;
    let confirmed = json_of(&restored, "key confirm --all").await;
    assert_eq!(confirmed.as_array().expect("keys").len(), 3, "those of the demo are confirmed as well: {confirmed}");
    assert_eq!(states().await, ["live", "revoked", "revoked"]);
    assert_eq!([program.status(&kept).await, program.status(&gone).await], [200, 401]);

    // The write that was in flight has ended, and is neither sent again nor refunded. A request
    // signed before is not accepted again.
    program.keys.push(kept);
    let asked = json!({"task_id": task["task_id"], "wait_seconds": 50});
    let told = program.call("get_task", asked).await.expect("a task");
    assert_eq!((&told["status"], &told["refund"]), (&json!("timeout"), &Value::Null), "{told}");
    assert_eq!(signed.try_send(program.address).await.expect("an answer").status, 401);
    assert_eq!(journal(&restored), before);
    program.call("set_power", power(1, "restart")).await.expect("it goes on");
    program.stop().await;
    let listed = json_of(&restored, "key list shop").await;
    assert!(listed.as_array().expect("keys").iter().all(|row| row["state"] != "unconfirmed"), "{listed}");
    // A backup that a command takes by itself has its own act and the line of it.
    let own = place.path().join("own.tar");
    json_of(&restored, &format!("backup {}", own.display())).await;
    let (_home, again) = empty_beside(&restored);
    says(&again, &format!("restore {}", own.display()), 0, "").await;
    json_of(&again, "app create late --permission device").await;
    let trail = read_trail(&again);
    let acts: Vec<_> = trail.split(r#""act_id":""#).skip(1).map(|rest| rest.split('"').next()).collect();
    assert_eq!(acts.iter().collect::<HashSet<_>>().len(), acts.len(), "an act has one line: {trail}");
}

#[tokio::test]
async fn a_restored_folder_has_the_acts_the_last_uses_and_the_suspended_and_deleted_applications() {
    let program = Program::start(&[]).await;
    let data = program.data.clone();
    for app in ["shop", "off", "paused"] {
        json_of(&data, &format!("app create {app} --permission device")).await;
    }
    let (used, gone, held) = (key_of(&data, "shop").await, key_of(&data, "off").await, key_of(&data, "paused").await);
    assert_eq!(program.status(&used).await, 200);
    for line in ["app suspend paused --reason debts", "app delete off --yes", &format!("key suspend {}", used.id)] {
        json_of(&data, line).await;
    }
    let asked = ["acts", "app list", "app list --deleted", "key list shop"];
    let place = TempDir::new().expect("a temporary folder");
    json_of(&data, &format!("backup {}/one.tar", place.path().display())).await;
    let mut before = Vec::new();
    for line in asked {
        before.push(json_of(&data, line).await);
    }
    json_of(&data, "app resume paused").await;

    let (home, restored) = empty_beside(&data);
    json_of(&restored, &format!("restore {}/one.tar", place.path().display())).await;
    let mut program = Program::start_at(home, &[]).await;
    let statuses = async || {
        let mut found = Vec::new();
        for key in [&used, &gone, &held] {
            found.push(program.status(key).await);
        }
        found
    };
    let off = json_of(&restored, "key list --state unconfirmed").await.as_array().map(Vec::len);
    assert_eq!((statuses().await, off), (vec![401; 3], Some(4)), "with those of the demo");
    json_of(&restored, "key confirm --all").await;
    for (line, before) in asked.into_iter().zip(before) {
        let mut found = json_of(&restored, line).await;
        let since = ["restore", "key confirm"].map(Value::from);
        found.as_array_mut().expect("rows").retain(|row| !since.contains(&row["command"]));
        assert_eq!(found, before, "{line}");
    }
    let deleted = json_of(&restored, "app list --deleted").await;
    assert!(deleted[0]["name"].as_str().expect("text").starts_with("off (deleted 20"), "{deleted}");
    json_of(&restored, "app create off --permission stream").await;
    assert_eq!(statuses().await, [401, 401, 200], "the key of the suspended application is what it was");
    program.stop().await;
}

#[tokio::test]
async fn a_backup_is_whole_or_not_there_and_overwrites_nothing() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    // With the signal ignored, a write beyond the limit fails like one to a full disk.
    let start = start(&home).after(r#"trap "" XFSZ"#);
    let mut program = Program::start_as(home, start).await;
    let data = program.data.clone();
    let place = TempDir::new().expect("a temporary folder");
    let there = place.path().join("there");
    fs::write(&there, "mine").expect("written");
    let nowhere = place.path().join("nowhere/backup");
    for (file, expected) in [
        (there.as_path(), "exists; a backup does not overwrite files"),
        (&data.join("backup.tar"), "is in the data folder; a backup belongs elsewhere"),
        (&data.join("audit/backup.tar"), "is in the data folder; a backup belongs elsewhere"),
        (&nowhere, "No such file or directory"),
        (Path::new("/sys/backup"), "cannot write /sys/backup"),
    ] {
        says(&data, &format!("backup {}", file.display()), 1, expected).await;
    }
    assert_eq!(fs::read_to_string(&there).expect("text"), "mine");
    // First there is room for the copy of the database, but not for the backup file that contains
    // it; then for neither.
    let size = data.join("cloudphone.db").metadata().expect("a file").len();
    for bytes in [size + 2_000, 8_000] {
        limit(&program, Some(bytes));
        let (code, said) = operate(&data, &format!("backup {}/full.tar", place.path().display())).await;
        assert!(matches!(code, 1 | 5), "{said}");
        assert_eq!(names(place.path()), ["there"], "{bytes}");
    }
    limit(&program, None);
    // The path is relative to the folder of the command, not of the server.
    let mut taken = Command::new(binary());
    taken.args(["backup", "here.tar", "--data"]).arg(&data).current_dir(place.path()).kill_on_drop(true);
    assert!(taken.status().await.expect("the program runs").success());
    assert_eq!(names(place.path()), ["here.tar", "there"]);
    program.stop().await;
    says(&data, &format!("backup {}/offline.tar", place.path().display()), 0, "").await;
}

#[tokio::test]
async fn a_restore_is_refused_where_it_could_go_wrong_and_leaves_the_folder_as_it_was() {
    let mut program = Program::start(&[]).await;
    let data = program.data.clone();
    let place = TempDir::new().expect("a temporary folder");
    let file = place.path().join("backup.tar");
    json_of(&data, &format!("backup {}", file.display())).await;
    let restore = format!("restore {}", file.display());
    let refused = async |folder: &Path, line: &str, expected: &str| {
        let (code, said) = operate(folder, line).await;
        assert!([1, 5].contains(&code) && said.contains(expected), "{expected}: {said}");
    };
    refused(&data, &restore, "another cloudphone uses").await;
    program.stop().await;
    refused(&data, &restore, "needs a folder that is empty or contains only the master key").await;

    let (_home, empty) = empty_beside(&data);
    let whole = fs::read(&file).expect("a file");
    let broken = place.path().join("broken.tar");
    let expected = format!("cannot restore {}: it is not a backup, or it is damaged or truncated", broken.display());
    for bytes in [&whole[..whole.len() / 2], &[&whole[..], b"\0"].concat()[..]] {
        fs::write(&broken, bytes).expect("written");
        refused(&empty, &format!("restore {}", broken.display()), &expected).await;
        assert_eq!(names(&empty), ["master.key"], "it is examined before the folder is touched");
    }
    refused(&empty, &format!("restore {}/nothing", place.path().display()), "No such file").await;

    let (_other, keyless) = empty_beside(&data);
    fs::remove_file(keyless.join("master.key")).expect("removed");
    refused(&keyless, &restore, "a restore needs the master key, which is not part of a backup").await;
    let wrong = place.path().join("wrong.key");
    fs::write(&wrong, format!("{}\n", "ab".repeat(32))).expect("written");
    let with_wrong = format!("{restore} --master-key {}", wrong.display());
    refused(&keyless, &with_wrong, "the master key is not the one of this backup").await;
    assert_eq!(names(&keyless), ["lock"]);
    // The program does not start in a folder with an unfinished restore. The next restore starts
    // over.
    fs::create_dir(keyless.join("restoring")).expect("a folder");
    fs::write(keyless.join("cloudphone.db"), "half").expect("written");
    refused(&keyless, "--listen 127.0.0.1:0", "was interrupted, and files are missing").await;
    let with_key = format!("{restore} --master-key {}", data.join("master.key").display());
    says(&keyless, &with_key, 0, "").await;
    assert_eq!(names(&keyless), ["audit", "cloudphone.db", "lock", "master.key", "service", "simulated.jsonl"]);
    refused(&keyless, &with_key, "needs a folder that is empty").await;
    let keys =
        database(&keyless).query_row("SELECT count(latest_verifier) FROM api_key", [], |row| row.get::<_, u32>(0));
    assert_eq!(keys, Ok(0));
    // A copy that was put in place by hand still has its keys, so the restore refuses it.
    fs::copy(data.join("cloudphone.db"), empty.join("cloudphone.db")).expect("copied");
    refused(&empty, &restore, "contains cloudphone.db").await;
}

#[tokio::test]
async fn the_database_that_is_put_back_without_its_log_is_refused_by_name_and_the_doctor_says_it() {
    let mut program = Program::start(&[]).await;
    let data = program.data.clone();
    let earlier = data.with_file_name("earlier");
    program.call("set_power", power(5, "restart")).await.expect("accepted");
    program.stop().await;
    fs::copy(data.join("cloudphone.db"), &earlier).expect("copied");
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    std::os::unix::fs::symlink(&data, home.path().join("data")).expect("a link");
    let mut program = Program::start_at(home, &[]).await;
    operate(&data, "app create shop --permission device").await;
    program.kill().await;
    fs::copy(&earlier, data.join("cloudphone.db")).expect("put back");
    fs::remove_file(data.join("cloudphone.db-wal")).expect("removed");
    for line in ["--listen 127.0.0.1:0", "app list", "doctor"] {
        let (code, said) = operate(&data, line).await;
        let expected =
            ["may have lost data: it held everything until", "and the remaining data ends at", "command `restore`"];
        assert!(code == 1 && expected.iter().all(|part| said.contains(part)), "{line}: {said}");
    }
}
