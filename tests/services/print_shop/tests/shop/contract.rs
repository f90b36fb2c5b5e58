//! The contract as its maintainer changes it, with the program alone.

use crate::process::program;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Runs a command on the contract in a folder. Returns the exit code, and the whole output.
async fn run(spec: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = program();
    command.arg("contract").args(arguments).arg("--spec").arg(spec);
    let output = command.output().await.expect("the program runs");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text")).concat();
    (output.status.code(), text)
}

fn edit(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).expect("text");
    assert!(text.contains(old), "{} has no {old}", path.display());
    fs::write(path, text.replacen(old, new, 1)).expect("written");
}

#[tokio::test]
async fn a_contract_is_released_broken_accepted_and_released_again_with_the_program_alone() {
    let home = TempDir::new().expect("a temporary folder");
    let spec = home.path().join("spec");
    fs::create_dir_all(spec.join("tools")).expect("a folder");
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec");
    let tools = ["printers", "printing", "trays", "floor", "jobs"].map(|tool| format!("tools/{tool}.toml"));
    let files = ["service.toml", "types.toml", "errors.toml", "reserved.toml"].map(str::to_owned);
    for file in files.iter().chain(&tools) {
        fs::copy(own.join(file), spec.join(file)).expect("a copy");
    }

    assert_eq!(run(&spec, &["check"]).await.0, Some(2));
    assert_eq!(run(&spec, &["release", "1.0.0"]).await.0, Some(0));
    assert_eq!(run(&spec, &["check"]).await.0, Some(0));

    let tool = "name = \"print_page\"\ntitle = \"Print a page\"\npermission = ";
    edit(&spec.join("tools/printing.toml"), &format!("{tool}\"print\""), &format!("{tool}\"service\""));
    let (code, said) = run(&spec, &["check"]).await;
    assert!(code == Some(1) && said.contains("breaking[permission-raised]"), "{said}");
    let accept = ["accept", "tool.print_page.permission", "--reason", "Pages cost paper."];
    assert_eq!(run(&spec, &accept).await.0, Some(0));
    assert_eq!(run(&spec, &["release", "1.0.0"]).await.0, Some(1));
    edit(&spec.join("service.toml"), "version = \"1.0.0\"", "version = \"2.0.0\"");
    assert_eq!(run(&spec, &["check"]).await.0, Some(0));
    let (code, said) = run(&spec, &["release", "2.0.0"]).await;
    assert_eq!(code, Some(0), "{said}");
    let log = fs::read_to_string(home.path().join("CHANGELOG.md")).expect("a changelog");
    assert!(log.contains("## 2.0.0 - 20") && log.contains("Pages cost paper."), "{log}");
    assert!(!spec.join("accepted.toml").exists());
    assert_eq!(run(&spec, &["check"]).await.0, Some(0));

    edit(&spec.join("service.toml"), "service-printshop", "service-other");
    let (code, said) = run(&spec, &["check"]).await;
    assert!(code == Some(1) && said.contains("and this program is `service-printshop`"), "{said}");
}
