//! Services in a package outside of this workspace, as an outside author would write them. One run
//! of cargo builds them all against this checkout: the lamps of `outside/`, variants of them, and
//! the files of `tests/contract/ui`, which the compiler must refuse.

use super::upgrade::{Build, release_three};
use crate::harness::program::Program;
use crate::house::root;
use driver::Start;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::OnceCell;
use toolwarrant_contract::{GateAnswer, GateCommand, GateContext, NewTool, execute, new_tool};

pub(crate) struct Outside {
    /// Each contract has another name for the light.
    pub(super) versions: [Build; 3],
    pub(crate) errors: Vec<Value>,
}

impl Outside {
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        target().join("debug").join(format!("lamps-{name}"))
    }
}

pub(crate) async fn outside() -> &'static Outside {
    static OUTSIDE: OnceCell<Outside> = OnceCell::const_new();
    OUTSIDE.get_or_init(build_all).await
}

async fn build_all() -> Outside {
    let home = TempDir::new().expect("a temporary folder");
    Lamps::copy(home.path(), "served");
    let unread = Lamps::copy(home.path(), "unread");
    unread.change("spec/service.toml", "id = \"LampId\"", "id = \"LampId\"\nstate = \"LampState\"");
    unread.change(
        "spec/types.toml",
        "[type",
        "[type.LampState]\nkind = \"enum\"\ndoc = \"Its state.\"\nvalues.on = \"Lit.\"\n\n[type",
    );
    add_tool(&Lamps::copy(home.path(), "new-tool"));
    Lamps { folder: home.path().join("files") }.take("files");
    let versions = release_three(home.path());
    for (from, to) in [("services/print_shop/spec", "print_shop/spec"), ("contract/ui", "ui")] {
        copy(&root().join("tests").join(from), &home.path().join(to));
    }
    let services = entries(home.path()).into_iter().filter(|path| path.join("src").exists());
    let services = services.map(|path| (format!("lamps-{}", name(&path)), path.join("src/main.rs")));
    let refused = entries(&home.path().join("ui")).into_iter().filter(|path| path.is_file());
    let programs: BTreeSet<_> = services.chain(refused.map(|path| (name(&path), path))).collect();
    let from = root().join("tests/services/outside");
    let manifest = fs::read_to_string(from.join("Cargo.toml")).expect("text");
    let service = root().join("server/toolwarrant/service");
    let mut manifest = manifest.replace("../../../server/toolwarrant/service", &service.display().to_string());
    // With the features of this workspace's tests, most libraries are built already.
    let features = root().join("tests/shared_features");
    manifest =
        manifest.replace("\n[workspace]", &format!("shared-features = {{ path = {features:?} }}\n\n[workspace]"));
    for (name, path) in programs {
        let path = path.strip_prefix(home.path()).expect("a file of the package");
        manifest += &format!("\n[[bin]]\nname = {name:?}\npath = {path:?}\n");
    }
    fs::write(home.path().join("Cargo.toml"), manifest).expect("written");
    fs::copy(root().join("Cargo.lock"), home.path().join("Cargo.lock")).expect("a copy");
    Outside { versions, errors: build(home.path()).await }
}

async fn build(package: &Path) -> Vec<Value> {
    // Files that stay the same are not written again, so cargo builds only programs that differ.
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside");
    let _ = fs::create_dir_all(&home);
    let wanted = files(package);
    for stale in
        files(&home).into_iter().filter(|path| !package.join(path.strip_prefix(&home).expect("inside")).exists())
    {
        fs::remove_file(stale).expect("removed");
    }
    for file in wanted {
        let (to, text) = (home.join(file.strip_prefix(package).expect("inside")), fs::read(&file).expect("a file"));
        if fs::read(&to).ok().as_ref() != Some(&text) {
            fs::create_dir_all(to.parent().expect("its folder")).expect("a folder");
            fs::write(to, text).expect("written");
        }
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--offline", "--keep-going", "--message-format=json", "--target-dir"]).arg(target());
    // Cargo's variables for this program would make it build libraries again, there and here.
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    {
        build.env_remove(name);
    }
    build.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("RUSTC_BOOTSTRAP");
    let output = build.current_dir(&home).env("CARGO_PROFILE_DEV_DEBUG", "0").output().await.expect("cargo runs");
    let lines = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    // The final count of errors has no place in the code.
    let is_error = |said: &Value| said["message"]["level"] == "error" && said["message"]["spans"] != json!([]);
    let errors: Vec<_> = lines.filter(is_error).collect();
    let is_foreign = |said: &&Value| !said["target"]["src_path"].as_str().is_some_and(|path| path.contains("/ui/"));
    let foreign: Vec<_> = errors.iter().filter(is_foreign).map(|said| &said["message"]["rendered"]).collect();
    assert!(foreign.is_empty() && !errors.is_empty(), "{foreign:#?}\n{}", String::from_utf8_lossy(&output.stderr));
    errors
}

pub(crate) struct Lamps {
    folder: PathBuf,
}

impl Lamps {
    pub(crate) fn copy(package: &Path, name: &str) -> Self {
        let lamps = Self { folder: package.join(name) };
        lamps.take("outside");
        lamps
    }

    fn take(&self, service: &str) {
        for part in ["spec", "src"] {
            copy(&root().join("tests/services").join(service).join(part), &self.path(part));
        }
        self.name_contract();
    }

    pub(crate) fn name_contract(&self) {
        self.change("src/main.rs", "contract!(\"", &format!("contract!(\"{}/", name(&self.folder)));
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    pub(crate) fn change(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).expect("a file of the copy");
        assert!(text.contains(from), "{file} has no {from}");
        fs::write(self.path(file), text.replacen(from, to, 1)).expect("written");
    }

    pub(crate) fn contract(&self, command: &GateCommand) -> GateAnswer {
        let folder = self.path("spec");
        execute(command, GateContext { folder: &folder, package: &self.folder, today: "2026-11-23" })
    }
}

fn add_tool(lamps: &Lamps) {
    let keys = ["shades", "switch", "issue", "lamp", "Pulls the shade of a lamp.", "when it dazzles."];
    let [file, permission, effect, resource, summary, use_when] = keys.map(|key| Some(key.to_owned()));
    let mut tool = NewTool { name: "pull_shade".into(), file, permission, effect, ..NewTool::default() };
    (tool.resource, tool.summary, tool.use_when) = (resource, summary, use_when);
    let written = new_tool(&lamps.folder, &lamps.path("spec"), &tool).expect("files");
    assert_eq!(written.len(), 4, "{written:?}");
}

/// Returns this workspace's folder, where most libraries are built already.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let to = to.join(file.strip_prefix(from).expect("a file below"));
        fs::create_dir_all(to.parent().expect("its folder")).expect("a folder");
        fs::copy(file, to).expect("a copy");
    }
}

fn name(path: &Path) -> String {
    path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned()
}

#[tokio::test]
async fn a_service_from_outside_is_built_served_and_operated() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let start = Start::new(outside().await.program("served"), home.path());
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
    insta::assert_snapshot!(operator.files(&operator.data.with_file_name("files")).await.expect("files"));
}

#[tokio::test]
async fn a_service_that_does_not_read_a_state_of_its_contract_does_not_start() {
    let home = TempDir::new().expect("a temporary folder");
    let start = Start::new(outside().await.program("unread"), home.path());
    let refused = start.ready().await.expect_err("a part is missing");
    assert!(format!("{refused:#}").contains("`lamp` has a state"), "{refused:#}");
}

/// The build fails if a program of this package does not compile.
#[tokio::test]
async fn a_new_tool_of_a_service_from_outside_compiles() {
    assert!(outside().await.program("new-tool").exists());
}

/// Every author must write this code, so it must not grow.
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
