//! Services in a package outside of this workspace, as an outside author would write them. One run
//! of cargo builds them all against this checkout: the files of `files/`, variants of them, and the
//! files of `tests/contract/ui`, which the compiler must refuse.

use super::upgrade::{Build, release_three};
use crate::house::root;
use kit::Start;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::OnceCell;
use toolwarrant_contract::{GateAnswer, GateCommand, GateContext, NewTool, execute, new_tool};

pub(crate) struct Outside {
    /// Each contract has another name for the text.
    pub(super) versions: [Build; 3],
    pub(crate) errors: Vec<Value>,
}

impl Outside {
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        target().join("debug").join(format!("files-{name}"))
    }
}

pub(crate) async fn outside() -> &'static Outside {
    static OUTSIDE: OnceCell<Outside> = OnceCell::const_new();
    OUTSIDE.get_or_init(build_all).await
}

async fn build_all() -> Outside {
    let home = TempDir::new().expect("a temporary folder");
    OutsideService::copy(home.path(), "served");
    let unread = OutsideService::copy(home.path(), "unread");
    unread.change("spec/service.toml", "id = \"ShareId\"", "id = \"ShareId\"\nstate = \"ShareState\"");
    unread.change(
        "spec/types.toml",
        "[type",
        "[type.ShareState]\nkind = \"enum\"\ndoc = \"Its state.\"\nvalues.on = \"Shared.\"\n\n[type",
    );
    add_tool(&unread);
    let versions = release_three(home.path());
    for (from, to) in [("services/print_shop/spec", "print_shop/spec"), ("contract/ui", "ui")] {
        copy(&root().join("tests").join(from), &home.path().join(to));
    }
    let services = entries(home.path()).into_iter().filter(|path| path.join("src").exists());
    let services = services.map(|path| (format!("files-{}", name(&path)), path.join("src/main.rs")));
    let refused = entries(&home.path().join("ui")).into_iter().filter(|path| path.is_file());
    let programs: BTreeSet<_> = services.chain(refused.map(|path| (name(&path), path))).collect();
    let from = root().join("tests/services/files");
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

/// A copy of the service of files.
pub(crate) struct OutsideService {
    pub(super) folder: PathBuf,
}

impl OutsideService {
    pub(crate) fn copy(package: &Path, name: &str) -> Self {
        let sample = Self { folder: package.join(name) };
        for part in ["spec", "src"] {
            copy(&root().join("tests/services/files").join(part), &sample.path(part));
        }
        sample.change("src/main.rs", "contract!(\"", &format!("contract!(\"{name}/"));
        sample
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

fn add_tool(files: &OutsideService) {
    let keys = ["locks", "change", "issue", "share", "Locks a share.", "when nobody may change it."];
    let [file, permission, effect, resource, summary, use_when] = keys.map(|key| Some(key.to_owned()));
    let mut tool = NewTool { name: "lock_share".into(), file, permission, effect, ..NewTool::default() };
    (tool.resource, tool.summary, tool.use_when) = (resource, summary, use_when);
    let written = new_tool(&files.folder, &files.path("spec"), &tool).expect("files");
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

pub(super) fn copy(from: &Path, to: &Path) {
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
async fn a_service_that_does_not_read_a_state_of_its_contract_does_not_start() {
    let home = TempDir::new().expect("a temporary folder");
    let start = Start::new(outside().await.program("unread"), home.path());
    let refused = start.ready().await.expect_err("a part is missing");
    assert!(format!("{refused:#}").contains("`share` has a state"), "{refused:#}");
}

/// The build fails if a program of this package does not compile.
#[tokio::test]
async fn a_new_tool_of_a_service_from_outside_compiles() {
    assert!(outside().await.program("unread").exists());
}

/// Every author must write this code, so it must not grow.
#[test]
fn a_service_from_outside_is_small() {
    let folder = root().join("tests/services/files");
    let lines = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("text");
        text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//")).count()
    };
    let count = |part: &str| files(&folder.join(part)).iter().map(lines).sum::<usize>();
    assert!(count("spec") + count("src") <= 320, "{} {}", count("spec"), count("src"));
    let main = fs::read_to_string(folder.join("src/main.rs")).expect("text");
    assert!(main.lines().skip_while(|line| !line.starts_with("fn main")).count() <= 15, "{main}");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("text");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").expect("dependencies");
    assert_eq!(dependencies.split("\n\n").next().expect("lines").lines().count(), 1, "{dependencies}");
}
