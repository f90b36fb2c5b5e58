//! The commands on copies of the print shop's contract.

mod cases;
mod expansion;
mod facts;
mod generated;
mod input;
mod mistakes;
mod pairs;
mod program;
mod pull_request;
mod report;
mod scaffold;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;
use toolwarrant_contract::{GateAnswer, GateCommand, GateContext, execute};
use toolwarrant_reader::model::Contract;
use toolwarrant_reader::{Mode, generate, load};

struct Shop {
    home: TempDir,
}

impl Shop {
    fn new() -> Self {
        let home = TempDir::new().expect("a folder");
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services/print_shop/spec");
        copy(&from, &home.path().join("spec"));
        for file in ["spec/released.toml", "spec/accepted.toml", "CHANGELOG.md"] {
            let _ = fs::remove_file(home.path().join(file));
        }
        Self { home }
    }

    /// Makes the release once, and copies it.
    fn release_first() -> Self {
        static RELEASED: LazyLock<Shop> = LazyLock::new(|| {
            let shop = Shop::new();
            assert_eq!(shop.release("1.0.0").code, 0);
            shop
        });
        let home = TempDir::new().expect("a folder");
        copy(RELEASED.home.path(), home.path());
        Self { home }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.home.path().join(file)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("text")
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).expect("written");
    }

    fn contract(&self) -> Contract {
        load(&self.path("spec")).unwrap_or_else(|report| panic!("{report}"))
    }

    fn edit(&self, file: &str, old: &str, new: &str) {
        let text = self.read(file);
        assert!(text.contains(old), "{file} has no {old}");
        self.write(file, &text.replacen(old, new, 1));
    }

    fn break_it(&self) {
        let tool = "name = \"print_page\"\ntitle = \"Print a page\"\npermission = ";
        self.edit("spec/tools/printing.toml", &format!("{tool}\"print\""), &format!("{tool}\"service\""));
    }

    fn run(&self, command: &GateCommand) -> GateAnswer {
        let folder = self.path("spec").canonicalize().expect("a folder");
        let answer = execute(command, GateContext { folder: &folder, package: self.home.path(), today: "2026-11-23" });
        let home = self.home.path().canonicalize().expect("a folder");
        GateAnswer { text: answer.text.replace(&format!("{}/", home.display()), ""), ..answer }
    }

    fn check(&self) -> GateAnswer {
        self.run(&GateCommand::check())
    }

    fn release(&self, version: &str) -> GateAnswer {
        self.run(&GateCommand::Release { version: version.to_owned() })
    }

    fn accept(&self, fact: &[&str], reason: &str) -> GateAnswer {
        let fact = fact.iter().map(|&part| part.to_owned()).collect();
        self.run(&GateCommand::Accept { fact, reason: reason.to_owned() })
    }

    fn base(&self, revision: &str) -> GateAnswer {
        self.run(&compare(Some(revision), None, false))
    }

    fn against(&self, other: &str) -> GateAnswer {
        self.run(&compare(None, Some(other), false))
    }

    fn generate(&self) {
        generate(&self.path("spec"), Mode::Write).expect("generated");
    }

    fn git(&self, line: &str) -> bool {
        let mut git = Command::new("git");
        git.current_dir(self.home.path()).args(["-c", "user.name=Shop", "-c", "user.email=shop@example.com"]);
        git.args(line.split(' ')).output().expect("git runs").status.success()
    }

    fn init(&self) {
        self.generate();
        assert!(self.git("init --quiet --initial-branch=main"));
        self.commit();
    }

    fn commit(&self) {
        assert!(self.git("add --all") && self.git("commit --quiet --message=state"));
    }

    fn shallow(&self) -> Self {
        let clone = Self { home: TempDir::new().expect("a folder") };
        assert!(clone.git(&format!("clone --quiet --depth=1 file://{} .", self.home.path().display())));
        clone
    }
}

fn compare(base: Option<&str>, against: Option<&str>, json: bool) -> GateCommand {
    let [base, against] = [base, against].map(|name| name.map(str::to_owned));
    GateCommand::Check { base, against, json }
}

fn show(answer: &GateAnswer) -> String {
    format!("exit code {}\n{}", answer.code, answer.text)
}

#[track_caller]
fn assert_says(GateAnswer { code, text }: &GateAnswer, expected: u8, part: &str) {
    assert!(*code == expected && text.contains(part), "exit code {code}: {text}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for path in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let to = to.join(path.file_name().expect("a name"));
        if path.ends_with("target") {
            continue;
        } else if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, to).expect("a copy");
        }
    }
}
