//! The README's commands, run in their order and as written, in a new home folder.

use super::replicas::{adapt, until_listed};
use crate::harness::double::{Double, table};
use crate::harness::program::binary;
use driver::{KeyPair, Process};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;
use test_postgres::TestPostgres;
use tokio::process::Command;

/// Prepares a shell for a block. Other ports and an installed program are the only differences from
/// a reader's machine: they come from the environment.
fn shell(home: &Path, script: &str, variables: &[(&str, &str)]) -> Command {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = format!("{}:{}", home.join("bin").display(), std::env::var("PATH").expect("a PATH"));
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(repository).env("HOME", home).env("PATH", path).kill_on_drop(true);
    shell.envs(variables.iter().copied());
    shell
}

/// A shell and the programs that it runs. They end with the test.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

#[tokio::test]
async fn the_blocks_of_the_readme_work_in_their_order_and_leave_nothing_in_the_repository() {
    let home = TempDir::new().expect("a temporary folder");
    let bin = home.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    symlink(binary(), bin.join("cloudphone")).expect("a link");
    for name in ["cargo", "claude"] {
        let noted = format!("#!/bin/sh\necho \"$@\" > {}/{name}.said\n", home.path().display());
        fs::write(bin.join(name), noted).expect("written");
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let readme = include_str!("../../README.md");
    let blocks: Vec<_> = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or("")).collect();
    let [start, use_it, connect, outcome, operate] = blocks[..] else { panic!("there are {} blocks", blocks.len()) };
    // Without a terminal, the keys need the flag, as the README says.
    let served = [("CLOUDPHONE_LISTEN", "127.0.0.1:0"), ("CLOUDPHONE_DEMO", "true"), ("CLOUDPHONE_JSON", "true")];
    let mut shell_of_server = shell(home.path(), start, &served);
    shell_of_server.process_group(0);
    let mut server = Process::start(shell_of_server).expect("it starts");
    let _group = Group(Pid::from_raw(server.id().expect("it runs").try_into().expect("a process")).expect("a process"));
    let greeting = server.greeting().await.expect("a line of JSON");
    let url = greeting["url"].as_str().expect("a URL");
    let installed = fs::read_to_string(home.path().join("cargo.said")).expect("cargo was called");
    assert_eq!(installed.trim(), "install --locked --path server/cloudphone");

    // The second terminal stays open from block to block.
    let rest = [use_it, connect, outcome, operate].concat();
    let output = shell(home.path(), &rest, &[("CLOUDPHONE_URL", url)]).output().await.expect("a shell");
    let [said, complaints] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!((output.status.code(), &*complaints), (Some(0), ""), "{said}");
    let statuses: Vec<_> =
        said.lines().filter_map(|line| line.split("\"status\":\"").nth(1)?.split('"').next()).collect();
    assert_eq!(statuses, ["success", "failed_silent"], "{said}");
    assert!(said.contains("phone-0000003") && said.contains("REFUNDED AT"), "{said}");
    assert!(said.contains("phone-*, !phone-0000007") && said.contains("unpaid"), "{said}");
    let state = fs::read_to_string(home.path().join("cloudphone/state.toml")).expect("it was exported");
    assert!(state.contains("[application.\"shop\".sees]"), "{state}");
    let connected = fs::read_to_string(home.path().join("claude.said")).expect("claude was called");
    assert!(connected.starts_with("mcp add --transport http cloudphone http://127.0.0.1:8080/mcp"), "{connected}");
    let key = home.path().join("cloudphone/demo.key").metadata().expect("the key is in the folder of the reader");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    assert!(home.path().join("cloudphone/data/cloudphone.db").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_block_for_several_machines_starts_two_replicas_with_the_same_phones_and_keys() {
    let Some(server) = TestPostgres::start() else { return };
    let url = format!("'{}'", server.schema().await.expect("the server runs").url);
    let (home, double) = (TempDir::new().expect("a temporary folder"), Double::start(3, &[]).await);
    let callback = "echo-listen = \"127.0.0.1:0\"\necho-url = \"http://127.0.0.1:9\"\n";
    fs::write(home.path().join("cloudphone.toml"), callback.to_owned() + &table("vmos", &double, &home))
        .expect("written");
    let block = include_str!("../../README.md").split("```bash\n").nth(2).expect("a block").split("```").next();
    let free = "127.0.0.1:0";
    let changes =
        [("127.0.0.1:8082", free), ("127.0.0.1:8083", free), ("postgres://cloudphone@localhost/cloudphone", &url)];
    let variables = [("CLOUDPHONE_LISTEN", free), ("CLOUDPHONE_JSON", "true")];
    let mut shell = shell(home.path(), &adapt(block.expect("its end"), &changes), &variables);
    fs::create_dir(home.path().join("bin")).expect("a folder");
    symlink(binary(), home.path().join("bin/cloudphone")).expect("a link");
    shell.current_dir(home.path()).process_group(0);
    let mut shell = Process::start(shell).expect("it starts");
    let _group = Group(Pid::from_raw(shell.id().expect("it runs").try_into().expect("a process")).expect("a process"));
    let (mut said, mut addresses, mut key) = (String::new(), Vec::new(), None);
    while addresses.len() < 2 || key.is_none() {
        said += &shell.until("}").await.unwrap_or_else(|error| panic!("{error}: {said}"));
        let objects: Vec<Value> = serde_json::Deserializer::from_str(&said).into_iter().map_while(Result::ok).collect();
        let listens = objects.iter().filter_map(|object| object["listens"].as_str());
        addresses = listens.map(|address| address.parse().expect("an address")).collect();
        key = objects.iter().find_map(|object| KeyPair::read(object).ok());
    }
    for address in addresses {
        until_listed(address, key.as_ref().expect("a key"), 3).await;
    }
}

#[tokio::test]
async fn the_block_for_own_phones_serves_the_phone_that_the_adb_server_has() {
    let (home, double) = (TempDir::new().expect("a temporary folder"), Double::start(1, &[]).await);
    let serial = double.codes().await.swap_remove(0);
    let block = include_str!("../../README.md").split("```bash\n").nth(1).expect("a block").split("```").next();
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
