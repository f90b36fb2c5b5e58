//! A service in a package outside this workspace, as an outside author would write it. The tests
//! copy `outside/`, build it against this checkout, start it and operate it. They also spoil it, to
//! check the messages for its author.

use crate::harness::program::Program;
use crate::house::root;
use driver::Start;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::process::Command;
use toolwarrant_contract::{GateAnswer, GateCommand, GateContext, NewTool, execute, new_tool};

/// A copy of the service outside this repository.
pub(crate) struct Outside {
    home: TempDir,
    /// The name of the package, one per test: in a shared target folder, cargo distinguishes
    /// packages by name and not by path.
    package: String,
}

impl Outside {
    /// Copies the service with this checkout as its one dependency, and with the versions locked in
    /// this workspace.
    pub(crate) fn copy(test: &str) -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let from = root().join("tests/services/outside");
        for file in files(&from) {
            let to = home.path().join(file.strip_prefix(&from).expect("a file below"));
            fs::create_dir_all(to.parent().expect("its folder")).expect("a folder");
            fs::copy(file, to).expect("a copy");
        }
        fs::copy(root().join("Cargo.lock"), home.path().join("Cargo.lock")).expect("a copy");
        let outside = Self { home, package: format!("lamps-{test}") };
        outside.change("Cargo.toml", "name = \"lamps\"", &format!("name = \"{}\"", outside.package));
        outside.change(
            "Cargo.toml",
            "../../../server/toolwarrant/service",
            &root().join("server/toolwarrant/service").display().to_string(),
        );
        outside
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.home.path().join(file)
    }

    pub(crate) fn change(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).expect("a file of the copy");
        assert!(text.contains(from), "{file} has no {from}");
        fs::write(self.path(file), text.replacen(from, to, 1)).expect("written");
    }

    /// Builds it without a network. Returns the texts of the compiler's errors.
    pub(crate) async fn build(&self) -> Vec<String> {
        self.errors().await.iter().map(|said| text(&said["message"]["message"]).to_owned()).collect()
    }

    /// Builds it like [`Self::build`], and returns the errors as cargo prints them.
    pub(crate) async fn errors(&self) -> Vec<Value> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--offline", "--keep-going", "--message-format=json", "--target-dir"]).arg(target());
        // Cargo's variables for this program would make it build libraries again, there and here.
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            build.env_remove(name);
        }
        let output = build.current_dir(self.home.path()).env("CARGO_PROFILE_DEV_DEBUG", "0").output();
        let output = output.await.expect("cargo runs");
        let lines = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let of_the_service =
            |said: &Value| said["package_id"].as_str().is_some_and(|package| package.contains("lamps"));
        // The final count of errors has no place in the code.
        let error = |said: &Value| said["message"]["level"] == "error" && said["message"]["spans"] != json!([]);
        let errors: Vec<_> = lines.filter(|said: &Value| of_the_service(said) && error(said)).collect();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), errors.is_empty(), "{log}");
        errors
    }

    pub(crate) fn program(&self) -> PathBuf {
        target().join("debug").join(&self.package)
    }

    /// Carries out a command on its contract.
    pub(crate) fn contract(&self, command: &GateCommand) -> GateAnswer {
        let folder = self.path("spec");
        execute(command, GateContext { folder: &folder, package: self.home.path(), today: "2026-11-23" })
    }
}

/// Returns the target folder of this workspace, where most libraries are built already.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder")
}

/// Returns every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

#[tokio::test]
async fn a_service_from_outside_is_built_served_and_operated() {
    let lamps = Outside::copy("served");
    assert_eq!(lamps.build().await, Vec::<String>::new());
    let home = Arc::new(TempDir::new_in(lamps.home.path()).expect("a folder"));
    let start = Start::new(lamps.program(), home.path());
    let mut server = Program::start_as(home, start).await;

    let operator = server.operator.clone();
    let json = async |line: &str| operator.json(line.split(' ')).await.expect("JSON");
    json("app create evening --permission switch").await;
    let assigned = json("lamp assign evening desk").await;
    assert!(
        assigned["note"].as_str().is_some_and(|note| note.contains("nothing checked that these exist")),
        "{assigned}"
    );
    server.keys = vec![operator.key("evening").await.expect("a key")];
    let call = async |tool, arguments| server.call(tool, arguments).await;
    let task = call("dim_lamp", json!({"lamp_id": "desk", "light": 40})).await.expect("a task");
    let end = server.task(&task["task_id"]).await;
    assert_eq!((&end["status"], &end["evidence"]["observed"]), (&json!("success"), &json!("40 percent")), "{end}");
    assert_eq!(call("get_lamp", json!({"lamp_id": "desk"})).await.expect("a lamp")["light"], 40);
    assert_eq!(call("get_lamp", json!({"lamp_id": "door"})).await.expect_err("not granted")["code"], "not_found");
    let tasks = json("task list").await["tasks"].take();
    assert_eq!((&tasks[0]["lamp_id"], &tasks[0]["status"]), (&json!("desk"), &json!("success")));
    assert_eq!(json("doctor").await["healthy"], true);
}

#[tokio::test]
async fn a_service_with_tasks_and_without_an_executor_does_not_start() {
    let lamps = Outside::copy("idle");
    lamps.change("src/main.rs", ".executor(lamps)", "");
    assert_eq!(lamps.build().await, Vec::<String>::new());
    let home = TempDir::new_in(lamps.home.path()).expect("a folder");
    let refused = Start::new(lamps.program(), home.path()).ready().await.expect_err("nobody carries its tasks out");
    assert!(format!("{refused:#}").contains("`dim_lamp` makes tasks"), "{refused:#}");
}

#[tokio::test]
async fn each_mistake_in_a_contract_is_reported_once_without_follow_up_errors() {
    let lamps = Outside::copy("mistakes");
    // These mistakes remove names that other modules of the service import; the compiler must not
    // report those imports.
    lamps.change("spec/service.toml", "implies = [\"look\"]", "implies = [\"lock\"]");
    lamps.change("spec/types.toml", "\"Percent\"", "\"Procent\"");
    lamps.change("spec/tools/lamps.toml", "probe = \"light\"", "probe = \"lihgt\"");
    let three = lamps.build().await;
    assert_eq!(three.len(), 3, "{three:#?}");
    let known = ["look", "Percent", "light"];
    for known in known {
        let told = |error: &&String| error.contains(&format!("did you mean `{known}`?"));
        assert_eq!(three.iter().filter(told).count(), 1, "{known}: {three:#?}");
    }

    // Modules that import everything by a glob must get no error about a tool and a type that
    // cannot be read.
    let lamps = Outside::copy("mistakes");
    lamps.change("src/lamps.rs", "use crate::contract::{Command, DimLampArgs, DimLampError, GetLampArgs, GetLampError, Lamp, LampCapabilities};\nuse crate::contract::{LampCapability, LampId, LampsTools, Percent};", "use crate::contract::*;");
    lamps.change("spec/types.toml", "kind = \"integer\"", "kind = \"numer\"");
    lamps.change("spec/tools/lamps.toml", "effect = \"task\"", "effect = \"foo\"");
    let two = lamps.build().await;
    assert_eq!(two.len(), 2, "{two:#?}");

    let lamps = Outside::copy("mistakes");
    fs::write(lamps.path("spec/types.toml"), "this is [[[ no TOML\n").expect("written");
    let garbage = lamps.build().await;
    assert!(garbage.len() == 1 && garbage[0].contains("[syntax]"), "{garbage:#?}");
}

#[tokio::test]
async fn a_tool_file_that_is_not_listed_is_reported_with_the_line_to_write() {
    let lamps = Outside::copy("unlisted");
    fs::write(lamps.path("spec/tools/shades.toml"), "# To come.\n").expect("written");
    let errors = lamps.build().await;
    assert_eq!(errors.len(), 1, "{errors:#?}");
    insta::assert_snapshot!(errors[0], @r#"
    [unlisted-file]: the file `spec/tools/shades.toml` is not listed
     --> spec/service.toml:6:9
      |
    6 | tools = ["lamps", "tasks"]
      |         ^^^^^^^^^^^^^^^^^^
      |
    help: write `tools = ["lamps", "tasks", "shades"]`, or remove the file
    "#);
}

#[tokio::test]
async fn a_new_tool_of_a_service_from_outside_compiles() {
    let lamps = Outside::copy("new-tool");
    let keys = ["shades", "switch", "issue", "lamp", "Pulls the shade of a lamp.", "when it dazzles."];
    let [file, permission, effect, resource, summary, use_when] = keys.map(|key| Some(key.to_owned()));
    let mut tool = NewTool { name: "pull_shade".into(), file, permission, effect, ..NewTool::default() };
    (tool.resource, tool.summary, tool.use_when) = (resource, summary, use_when);
    let written = new_tool(lamps.home.path(), &lamps.path("spec"), &tool).expect("files");
    assert_eq!(written.len(), 4, "{written:?}");
    assert_eq!(lamps.build().await, Vec::<String>::new());
}

/// Limits the size of the smallest service, so that the code which every author must write does not
/// grow.
#[test]
fn a_service_from_outside_is_small() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services/outside");
    let count = |ending: &str| -> usize {
        let all = files(&folder).into_iter().filter(|path| path.extension().is_some_and(|known| known == ending));
        all.map(|path| fs::read_to_string(path).expect("text").lines().count()).sum()
    };
    let main = fs::read_to_string(folder.join("src/main.rs")).expect("text");
    let main = main.lines().skip_while(|line| !line.starts_with("fn main")).count();
    assert!(count("rs") <= 120 && count("toml") <= 120 && main <= 15, "{} {} {main}", count("rs"), count("toml"));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("text");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").expect("dependencies");
    assert_eq!(dependencies.split("\n\n").next().expect("lines").lines().count(), 1, "{dependencies}");
}
