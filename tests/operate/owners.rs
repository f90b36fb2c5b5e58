//! A data folder of one user, and commands of root and of other users on it.

use crate::harness::program::{Program, binary, start};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::process::Command;

/// The user of the service, and another one. They need no name on this machine.
const SERVICE: u32 = 61_234;
const OTHER: u32 = 61_235;

const ROOT: u32 = 0;

/// Runs one command as a user. Returns the exit code, and the whole output.
async fn run_as(user: u32, data: &Path, line: &str) -> (i32, String) {
    let mut command = Command::new(binary());
    command.args(line.split(' ')).arg("--data").arg(data).uid(user).gid(user).kill_on_drop(true);
    let output = command.output().await.expect("the program runs");
    let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("text");
    (output.status.code().expect("an exit code"), text)
}

/// Makes a home with a data folder of the service, where its server has run.
async fn make_used_home() -> Arc<TempDir> {
    let is_root = rustix::process::geteuid().is_root();
    assert!(is_root, "this test cannot run: it starts the program as several users, which only root can do");
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).expect("a mode");
    let data = home.path().join("data");
    fs::create_dir(&data).expect("a folder");
    fs::set_permissions(&data, Permissions::from_mode(0o700)).expect("a mode");
    chown(&data, Some(SERVICE), Some(SERVICE)).expect("another owner");
    serve_as_service(&home).await;
    home
}

/// Starts a server as the user of the service, and stops it.
async fn serve_as_service(home: &Arc<TempDir>) {
    let id = SERVICE.to_string();
    let as_service = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
    let mut program = Program::start_as(home.clone(), start(home).through(&as_service)).await;
    if !program.keys.is_empty() {
        program.call("list_devices", serde_json::json!({})).await.expect("a page");
    }
    program.stop().await;
}

/// Returns everything in a folder that does not belong to `user`, the folder included.
fn list_of_others(user: u32, folder: &Path) -> Vec<PathBuf> {
    let inside = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let below = inside.flat_map(|path| if path.is_dir() { list_of_others(user, &path) } else { vec![path] });
    let of_other = |path: &PathBuf| path.symlink_metadata().expect("a file").uid() != user;
    below.chain([folder.to_owned()]).filter(of_other).collect()
}

#[tokio::test]
async fn commands_of_root_keep_the_owner_of_every_file_and_the_server_starts_again() {
    let home = make_used_home().await;
    let data = home.path().join("data");
    let backups = home.path().join("backups");
    fs::create_dir(&backups).expect("a folder");
    chown(&backups, Some(SERVICE), Some(SERVICE)).expect("another owner");
    let backup = format!("backup {}/one.tar", backups.display());
    for line in ["app create shop --permission device", "app list", "task list", "audit verify", &backup, "doctor"] {
        let (code, said) = run_as(ROOT, &data, line).await;
        assert_eq!((code, list_of_others(SERVICE, &data)), (0, vec![]), "{line}: {said}");
        assert!(said.contains("as the owner of the data folder"), "{line}: {said}");
    }
    assert_eq!(list_of_others(SERVICE, &backups), [""; 0].map(PathBuf::from));
    // A server of root keeps the owner as well.
    Program::start_at(home.clone(), &[]).await.stop().await;
    assert_eq!(list_of_others(SERVICE, &data), [""; 0].map(PathBuf::from));
    serve_as_service(&home).await;
}

#[tokio::test]
async fn a_command_of_root_follows_no_link_in_the_folder_of_another_user() {
    let home = make_used_home().await;
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
    let (code, said) = run_as(ROOT, &linked, "app create one --permission device").await;
    assert!(code == 1 && fs::read_dir(&private).expect("a folder").count() == 0, "{said}");
}

#[tokio::test]
async fn a_refusal_to_open_names_the_file_its_owner_and_the_command_that_gives_it_back() {
    let home = make_used_home().await;
    let data = home.path().join("data");
    let day = fs::read_dir(data.join("audit")).expect("a trail").next().expect("a day").expect("a file").path();
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
        let (code, said) = run_as(SERVICE, &data, "--listen 127.0.0.1:0").await;
        assert!(code == 1 && said.contains("Permission denied") && said.contains(&expected), "{expected}: {said}");
        for user in [ROOT, SERVICE] {
            let (code, said) = run_as(user, &data, "doctor").await;
            assert!(code == 1 && said.contains(&format!("{shown} belongs to the user root (0)")), "{user}: {said}");
        }
        let repaired = Command::new("chown").arg("-R").arg(SERVICE.to_string()).arg(&file).status().await;
        assert!(repaired.expect("chown").success());
    }
    serve_as_service(&home).await;
}

#[tokio::test]
async fn another_user_is_refused_with_the_name_of_the_owner_and_changes_nothing() {
    let home = make_used_home().await;
    let data = home.path().join("data");
    fs::set_permissions(&data, Permissions::from_mode(0o777)).expect("a mode");
    for name in ["service", "cloudphone.db", "cloudphone.watermark", "lock", "master.key"] {
        fs::set_permissions(data.join(name), Permissions::from_mode(0o666)).expect("a mode");
    }
    for line in ["app list", "app create mine --permission device", "doctor", "--listen 127.0.0.1:0"] {
        let (code, said) = run_as(OTHER, &data, line).await;
        let expected = format!("belongs to the user {SERVICE}, and this program runs as the user {OTHER}");
        assert!(code == 1 && said.contains(&expected), "{line}: {said}");
        assert_eq!(list_of_others(SERVICE, &data), [""; 0].map(PathBuf::from), "{line}");
    }
}

#[tokio::test]
async fn root_restores_into_a_folder_that_it_makes_for_the_user_of_the_service() {
    let home = make_used_home().await;
    let data = home.path().join("data");
    let (backup, key) = (home.path().join("backup.tar"), home.path().join("master.key"));
    chown(home.path(), Some(SERVICE), Some(SERVICE)).expect("another owner");
    let (code, said) = run_as(SERVICE, &data, &format!("backup {}", backup.display())).await;
    assert_eq!(code, 0, "{said}");
    chown(home.path(), Some(ROOT), Some(ROOT)).expect("another owner");
    fs::copy(data.join("master.key"), &key).expect("copied");
    // Both files are root's alone, as after a copy from another machine.
    chown(&backup, Some(ROOT), Some(ROOT)).expect("another owner");
    chown(&key, Some(ROOT), Some(ROOT)).expect("another owner");
    fs::rename(&data, home.path().join("before")).expect("moved");
    let line = format!("restore {} --master-key {}", backup.display(), key.display());
    let (code, said) = run_as(ROOT, &data, &format!("{line} --owner nobody-here")).await;
    assert!(code == 1 && said.contains("this machine has no user nobody-here; give its number"), "{said}");
    symlink(home.path().join("before"), &data).expect("a link");
    let (code, said) = run_as(ROOT, &data, &format!("{line} --owner {SERVICE}")).await;
    assert!(code == 1 && said.contains("Permission denied"), "{said}");
    fs::remove_file(&data).expect("removed");
    let (code, said) = run_as(ROOT, &data, &format!("{line} --owner {SERVICE}")).await;
    assert!(code == 0 && said.contains(&format!("the user {SERVICE}")), "{said}");
    assert_eq!(list_of_others(SERVICE, &data), [""; 0].map(PathBuf::from));
    serve_as_service(&home).await;
}
