//! The commands of the README, and those for phones of one's own, run as written in a new folder.

use super::replicas::{adapt, until_listed};
use crate::harness::double::Double;
use crate::harness::program::binary;
use kit::{KeyPair, Process};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;
use tokio::process::Command;

/// Takes other ports and an installed program from the environment: only these differ from a
/// reader's machine.
fn shell(home: &Path, script: &str, variables: &[(&str, &str)]) -> Command {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = format!("{}:{}", home.join("bin").display(), std::env::var("PATH").expect("a PATH"));
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(repository).env("HOME", home).env("PATH", path).kill_on_drop(true);
    shell.envs(variables.iter().copied());
    shell
}

struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

#[tokio::test]
async fn the_commands_of_the_readme_print_what_it_shows_and_leave_nothing_in_the_repository() {
    let home = TempDir::new().expect("a temporary folder");
    let built = home.path().join("target/debug");
    fs::create_dir_all(&built).expect("a folder");
    symlink(binary(), built.join("cloudphone")).expect("a link");
    let bin = home.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let noted = format!("#!/bin/sh\necho \"$@\" > {}/claude.said\n", home.path().display());
    fs::write(bin.join("claude"), noted).expect("written");
    fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let readme = include_str!("../../README.md");
    let blocks = |fence: &'static str| {
        readme.split(fence).skip(1).map(|rest| rest.split("```").next().unwrap_or("")).collect::<Vec<_>>()
    };
    // CI builds and starts the program, and runs the tests, as the third block says.
    let [call, connect, _, use_it] = blocks("```sh\n")[..] else { panic!("there are other blocks") };
    let [answer] = blocks("```json\n")[..] else { panic!("there is one answer") };
    let served = [("CLOUDPHONE_LISTEN", "127.0.0.1:0"), ("CLOUDPHONE_DEMO", "true"), ("CLOUDPHONE_JSON", "true")];
    let mut shell_of_server = shell(home.path(), "exec target/debug/cloudphone", &served);
    shell_of_server.current_dir(home.path()).process_group(0);
    let mut server = Process::start(shell_of_server).expect("it starts");
    let _group = Group(Pid::from_raw(server.id().expect("it runs").try_into().expect("a process")).expect("a process"));
    let greeting = server.greeting().await.expect("a line of JSON");
    let url = greeting["url"].as_str().expect("a URL");

    let mut terminal =
        shell(home.path(), &[use_it, call, connect, "cloudphone refunds\n"].concat(), &[("CLOUDPHONE_URL", url)]);
    let output = terminal.current_dir(home.path()).output().await.expect("a shell");
    let [said, complaints] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!((output.status.code(), &*complaints), (Some(0), ""), "{said}");
    let printed: Value = serde_json::from_str(said.lines().next().expect("a line")).expect("an object");
    assert_shows(&printed, &serde_json::from_str(answer).expect("an object"));
    assert!(said.contains("REFUNDED AT"), "{said}");
    let connected = fs::read_to_string(home.path().join("claude.said")).expect("claude was called");
    assert_eq!(connected, format!("mcp add cloudphone -- {}/target/debug/cloudphone stdio\n", home.path().display()));
    let key = home.path().join("demo.key").metadata().expect("the key is in the folder of the reader");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    assert!(home.path().join("data/cloudphone.db").exists());
}

fn assert_shows(printed: &Value, shown: &Value) {
    match shown.as_object() {
        Some(members) => members.iter().for_each(|(name, shown)| assert_shows(&printed[name], shown)),
        None => assert_eq!(printed, shown),
    }
}

#[tokio::test]
async fn the_block_for_own_phones_serves_the_phone_that_the_adb_server_has() {
    let (home, double) = (TempDir::new().expect("a temporary folder"), Double::start(1, &[]).await);
    let serial = double.codes().await.swap_remove(0);
    let block =
        include_str!("../../docs/own-phones.md").split("```bash\n").nth(1).expect("a block").split("```").next();
    let server = format!("kind = \"adb\"\\nserver = \"{}\"\\n", double.adb());
    let block = adapt(block.expect("its end"), &[(r#"kind = "adb"\n"#, &server), ("SERIAL >", &format!("{serial} >"))]);
    let bin = home.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    symlink(binary(), bin.join("cloudphone")).expect("a link");
    fs::write(bin.join("adb"), "#!/bin/sh\n[ \"$*\" = devices ]\n").expect("written");
    fs::set_permissions(bin.join("adb"), fs::Permissions::from_mode(0o755)).expect("a mode");
    let variables = [("CLOUDPHONE_LISTEN", "127.0.0.1:0"), ("CLOUDPHONE_DEMO", "true"), ("CLOUDPHONE_JSON", "true")];
    let mut shell = shell(home.path(), &block, &variables);
    shell.current_dir(home.path()).process_group(0);
    let mut shell = Process::start(shell).expect("it starts");
    let _group = Group(Pid::from_raw(shell.id().expect("it runs").try_into().expect("a process")).expect("a process"));
    let greeting = shell.greeting().await.expect("a line of JSON");
    let address = greeting["listens"].as_str().expect("an address").parse().expect("an address");
    let key = KeyPair::read(&greeting["keys"][0]).expect("a key");
    until_listed(address, &key, 1).await;
}
