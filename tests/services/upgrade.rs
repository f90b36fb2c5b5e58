//! A service whose contract changes between two builds: the tasks that the killed program left in
//! flight end as without the change.

use super::outside::{Lamps, outside};
use crate::harness::program::Program;
use driver::Start;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use toolwarrant_contract::{GateAnswer, GateCommand};

const LAMPS: &str = "spec/tools/lamps.toml";

/// How lamps behave, their number, and the end of a write on one.
const KINDS: [(&str, usize, &str); 3] =
    [("plain", 30, "success"), ("broken", 10, "failed_silent"), ("quiet", 10, "success")];

/// All commands are sent by then.
const PATIENCE: Duration = Duration::from_secs(120);

/// With the name that its contract has for the light of a lamp.
pub(super) struct Build {
    service: Lamps,
    name: &'static str,
    pub(super) light: &'static str,
    formerly: &'static str,
}

impl Build {
    /// Makes the lamps outlive the service.
    fn first(package: &Path) -> Self {
        let service = Lamps::copy(package, "first");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services/upgrade");
        for file in ["main.rs", "lamps.rs"] {
            fs::copy(sources.join(file), service.path("src").join(file)).expect("a copy");
        }
        service.name_contract();
        service.change(
            "spec/types.toml",
            "max_length = 8\ncharset = \"a-z\"",
            "max_length = 16\ncharset = \"a-z0-9-\"",
        );
        service.change(LAMPS, "deadline_seconds = 5", "deadline_seconds = 60");
        Self { service, name: "first", light: "light", formerly: "" }
    }

    fn rename(&self, package: &Path, name: &'static str, light: &'static str) -> Self {
        let Self { service: from, name: before, light: former, formerly } = self;
        let service = Lamps::copy(package, name);
        for file in ["src/main.rs", "src/lamps.rs", "spec/types.toml", LAMPS, "spec/service.toml", "spec/released.toml"]
        {
            fs::copy(from.path(file), service.path(file)).expect("a copy");
        }
        service.change("src/main.rs", &format!("contract!(\"{before}/"), &format!("contract!(\"{name}/"));
        service.change("src/lamps.rs", &format!("args.{former}.get()"), &format!("args.{light}.get()"));
        service.change(LAMPS, &format!("\n{former} = {{{formerly} "), &format!("\n{light} = {{ "));
        service.change(LAMPS, &format!("{former} = 0"), &format!("{light} = 0"));
        Self { service, name, light, formerly: "" }
    }

    pub(super) async fn program(&self) -> PathBuf {
        outside().await.program(self.name)
    }

    fn declare(&mut self, formerly: &'static str) {
        let (light, before) = (self.light, self.formerly);
        self.service.change(LAMPS, &format!("\n{light} = {{{before}"), &format!("\n{light} = {{{formerly}"));
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

/// Returns each id with the end of a write on it.
fn lamps() -> impl Iterator<Item = (String, &'static str)> {
    KINDS.into_iter().flat_map(|(kind, count, end)| (0..count).map(move |n| (format!("{kind}-{n}"), end)))
}

/// Returns once the program has an answer to each command or has given up on it.
async fn wait_until_sent(data: &Path) {
    let database = Connection::open_with_flags(data.join("lamps.db"), OpenFlags::SQLITE_OPEN_READ_ONLY);
    let database = database.expect("a database");
    let count = "SELECT count(*) FROM task WHERE json_extract(state, '$.phase') IN ('polling', 'verifying')";
    let (begin, wanted) = (Instant::now(), lamps().count());
    loop {
        let sent: u32 = database.query_row(count, [], |row| row.get(0)).expect("a number");
        if sent as usize == wanted {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{sent} of {wanted} commands are sent");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Kills the first build and starts the other in its folder. Returns the tasks by lamp, as they
/// ended.
async fn upgrade(from: &Build, to: &Build) -> BTreeMap<String, Value> {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let folder = home.path().join("lamps");
    fs::create_dir(&folder).expect("a folder");
    let mut server = Program::start_as(home.clone(), Start::new(from.program().await, home.path())).await;
    let operator = server.operator.clone();
    let run = async |line: String| operator.json(line.split(' ')).await.expect("JSON");
    run("app create evening --permission switch".to_owned()).await;
    run(format!("lamp assign evening {}", lamps().map(|(lamp, _)| lamp).collect::<Vec<_>>().join(" "))).await;
    server.keys = vec![operator.key("evening").await.expect("a key")];
    let mut tasks = BTreeMap::new();
    for (lamp, _) in lamps() {
        let task = server.call("dim_lamp", json!({"lamp_id": lamp, from.light: 40})).await.expect("a task");
        tasks.insert(lamp, task["task_id"].clone());
    }
    wait_until_sent(&server.data).await;
    server.kill().await;

    fs::write(folder.join("open"), "").expect("written");
    let keys = server.keys.clone();
    let mut server = Program::start_as(home.clone(), Start::new(to.program().await, home.path())).await;
    server.keys = keys;
    let mut ends = BTreeMap::new();
    for (lamp, task) in tasks {
        ends.insert(lamp, server.task(&task).await);
    }
    let sends = fs::read_to_string(folder.join("sends")).expect("the sends");
    assert_eq!(sends.lines().count(), lamps().count(), "each command is sent once");
    ends
}

/// Expects the gate to refuse each release without the former names.
pub(super) fn release_three(package: &Path) -> [Build; 3] {
    let first = Build::first(package);
    first.release("0.1.0", &[]);
    let mut second = first.rename(package, "second", "brightness");
    second.service.change("spec/service.toml", "0.1.0", "0.2.0");
    let GateAnswer { text, code } = second.check();
    let reason = "tasks of `dim_lamp` in flight cannot be read: `light` is no argument any more";
    assert!(code == 1 && text.contains("[form-unreadable]") && text.contains(reason), "{text}");
    second.declare(" formerly = \"light\",");
    second.release("0.2.0", &["tool.dim_lamp.argument.light"]);
    let mut third = second.rename(package, "third", "level");
    third.service.change("spec/service.toml", "0.2.0", "0.3.0");
    third.declare(" formerly = \"brightness\",");
    let GateAnswer { text, code } = third.check();
    assert!(code == 1 && text.contains("contract accept form-unreadable stored.dim_lamp.1"), "{text}");
    third.declare(" formerly = [\"brightness\", \"light\"],");
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
        assert_eq!(refunds, 10, "refunds of tasks with `{}`", former.light);
        for (lamp, end) in lamps() {
            assert_eq!(ends[&lamp]["status"], end, "{lamp} with `{}`: {}", former.light, ends[&lamp]);
        }
    }
}
