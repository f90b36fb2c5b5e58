//! A service whose contract changes between two builds: the tasks that the killed program left in
//! flight end as without the change.

use super::outside::{OutsideService, copy, outside};
use crate::harness::program::Program;
use crate::house::root;
use kit::Start;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolwarrant_contract::{GateAnswer, GateCommand};

const TOOLS: &str = "spec/tools/files.toml";

/// How shares behave, their number, and the end of a write in one.
const KINDS: [(&str, usize, &str); 3] =
    [("plain", 30, "success"), ("broken", 10, "failed_silent"), ("quiet", 10, "success")];

/// All commands are sent by then.
const PATIENCE: Duration = Duration::from_secs(120);

/// With the name that its contract has for the text to write.
pub(super) struct Build {
    service: OutsideService,
    name: &'static str,
    text: &'static str,
    formerly: &'static str,
}

impl Build {
    fn first(package: &Path) -> Self {
        let service = OutsideService::copy(package, "first");
        fs::copy(root().join("tests/services/upgrade/slow.rs"), service.path("src/slow.rs")).expect("a copy");
        service.change("src/main.rs", "mod files;", "mod files;\nmod slow;");
        service.change("src/main.rs", ", files))", ", Arc::new(slow::Slow(files))))");
        service.change(TOOLS, "deadline_seconds = 5", "deadline_seconds = 60");
        Self { service, name: "first", text: "text", formerly: "" }
    }

    fn rename(&self, package: &Path, name: &'static str, text: &'static str) -> Self {
        let Self { service: from, name: before, text: former, formerly } = self;
        let service = OutsideService { folder: package.join(name) };
        copy(&from.folder, &service.folder);
        service.change("src/main.rs", &format!("contract!(\"{before}/"), &format!("contract!(\"{name}/"));
        service.change("src/files.rs", &format!("args.{former}"), &format!("args.{text}"));
        service.change(TOOLS, &format!("\n{former} = {{{formerly} "), &format!("\n{text} = {{ "));
        service.change(TOOLS, &format!(" {former} = \""), &format!(" {text} = \""));
        Self { service, name, text, formerly: "" }
    }

    async fn program(&self) -> PathBuf {
        outside().await.program(self.name)
    }

    fn declare(&mut self, formerly: &'static str) {
        let (text, before) = (self.text, self.formerly);
        self.service.change(TOOLS, &format!("\n{text} = {{{before}"), &format!("\n{text} = {{{formerly}"));
        self.formerly = formerly;
    }

    fn carry_out(&self, command: GateCommand) {
        let GateAnswer { text, code } = self.service.contract(&command);
        assert_eq!(code, 0, "{text}");
    }

    fn check(&self) -> GateAnswer {
        self.service.contract(&GateCommand::check())
    }

    /// Accepts that clients must use the new name.
    fn release(&self, version: &str, accepted: &[&str]) {
        for fact in accepted {
            self.carry_out(GateCommand::Accept { fact: vec![(*fact).to_owned()], reason: "Renamed.".to_owned() });
        }
        self.carry_out(GateCommand::Release { version: version.to_owned() });
    }
}

/// Returns each id with the end of a write in it.
fn shares() -> impl Iterator<Item = (String, &'static str)> {
    KINDS.into_iter().flat_map(|(kind, count, end)| (0..count).map(move |n| (format!("{kind}-{n}"), end)))
}

/// Returns once the program has an answer to each command or has given up on it.
async fn wait_until_sent(data: &Path) {
    let database = Connection::open_with_flags(data.join("files.db"), OpenFlags::SQLITE_OPEN_READ_ONLY);
    let database = database.expect("a database");
    let count = "SELECT count(*) FROM task WHERE json_extract(state, '$.phase') IN ('polling', 'verifying')";
    let (begin, wanted) = (Instant::now(), shares().count());
    loop {
        let sent: u32 = database.query_row(count, [], |row| row.get(0)).expect("a number");
        if sent as usize == wanted {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{sent} of {wanted} commands are sent");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Kills the first build and starts the other in its folder. Returns the tasks by share, as
/// they ended.
async fn upgrade(from: &Build, to: &Build) -> BTreeMap<String, Value> {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let folder = home.path().join("shares");
    shares().for_each(|(share, _)| fs::create_dir_all(folder.join(share)).expect("a folder"));
    let mut server = Program::start_as(home.clone(), Start::new(from.program().await, home.path())).await;
    let operator = server.operator.clone();
    let run = async |line: String| operator.json(line.split(' ')).await.expect("JSON");
    run("app create editor --permission change".to_owned()).await;
    run(format!("share assign editor {}", shares().map(|(share, _)| share).collect::<Vec<_>>().join(" "))).await;
    server.keys = vec![operator.key("editor").await.expect("a key")];
    let mut tasks = BTreeMap::new();
    for (share, _) in shares() {
        let write = json!({"share_id": share, "name": "today.md", from.text: "milk"});
        let task = server.call("write_file", write).await.expect("a task");
        tasks.insert(share, task["task_id"].clone());
    }
    wait_until_sent(&server.data).await;
    server.kill().await;

    fs::write(folder.join("open"), "").expect("written");
    let keys = server.keys.clone();
    let mut server = Program::start_as(home.clone(), Start::new(to.program().await, home.path())).await;
    server.keys = keys;
    let mut ends = BTreeMap::new();
    for (share, task) in tasks {
        ends.insert(share, server.task(&task).await);
    }
    let sends = fs::read_to_string(folder.join("sends")).expect("the sends");
    assert_eq!(sends.lines().count(), shares().count(), "each command is sent once");
    ends
}

/// Expects the gate to refuse each release without the former names.
pub(super) fn release_three(package: &Path) -> [Build; 3] {
    let first = Build::first(package);
    first.release("0.1.0", &[]);
    let mut second = first.rename(package, "second", "content");
    second.service.change("spec/service.toml", "0.1.0", "0.2.0");
    let GateAnswer { text, code } = second.check();
    let reason = "tasks of `write_file` in flight cannot be read: `text` is no argument any more";
    assert!(code == 1 && text.contains("[form-unreadable]") && text.contains(reason), "{text}");
    second.declare(" formerly = \"text\",");
    second.release("0.2.0", &["tool.write_file.argument.text"]);
    let mut third = second.rename(package, "third", "words");
    third.service.change("spec/service.toml", "0.2.0", "0.3.0");
    third.declare(" formerly = \"content\",");
    let GateAnswer { text, code } = third.check();
    assert!(code == 1 && text.contains("contract accept form-unreadable stored.write_file.1"), "{text}");
    third.declare(" formerly = [\"content\", \"text\"],");
    let text = third.check().text;
    assert!(!text.contains("[form-unreadable]"), "{text}");
    [first, second, third]
}

#[tokio::test]
async fn tasks_of_each_former_contract_end_as_without_the_upgrade() {
    let builds = &outside().await.versions;
    for former in builds {
        let ends = upgrade(former, &builds[2]).await;
        let refunds = ends.values().filter(|task| !task["refund"].is_null()).count();
        assert_eq!(refunds, 10, "refunds of tasks with `{}`", former.text);
        for (share, end) in shares() {
            assert_eq!(ends[&share]["status"], end, "{share} with `{}`: {}", former.text, ends[&share]);
        }
    }
}
