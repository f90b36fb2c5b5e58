//! The files of an installation, with the programs that read them.

use crate::harness::program::{binary, operator};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

fn files(home: &TempDir) -> PathBuf {
    let folder = home.path().join("files");
    run(Command::new(binary()).arg("files").arg(&folder));
    folder
}

fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it runs");
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {said}");
    said
}

#[tokio::test]
async fn the_files_of_an_installation_are_written_once() {
    let home = TempDir::new().expect("a temporary folder");
    let (folder, operator) = (home.path().join("files"), operator(home.path()));
    insta::assert_snapshot!(operator.files(&folder).await.expect("files"));
    let again = operator.files(&folder).await.expect_err("it is not empty").to_string();
    assert!(again.contains("is not empty; name a new folder"), "{again}");
}

#[test]
fn systemd_takes_the_unit_and_finds_little_that_is_open() {
    if kit::lacks("systemd-analyze") {
        return;
    }
    let home = TempDir::new().expect("a temporary folder");
    let unit = files(&home).join("cloudphone.service");
    let text = fs::read_to_string(&unit).expect("a file");
    fs::write(&unit, text.replace("/usr/bin/cloudphone", &binary().display().to_string())).expect("a file");
    let verified = run(Command::new("systemd-analyze").arg("verify").arg(&unit));
    assert!(!verified.contains("cloudphone.service"), "{verified}");
    // In tenths.
    run(Command::new("systemd-analyze").args(["security", "--offline=true", "--threshold=20"]).arg(&unit));
}

#[test]
fn each_shell_completes_commands() {
    let home = TempDir::new().expect("a temporary folder");
    let completions = files(&home).join("completions");
    let complete = |shell: &str, flag: &str, file: &str, script: &str| {
        let file = completions.join(file).display().to_string();
        let completed = run(Command::new(shell).args([flag, "-c", &script.replace("FILE", &file)]));
        assert!(completed.contains("create"), "{shell}: {completed}");
    };
    let bash = "source FILE; COMP_WORDS=(cloudphone app cr); COMP_CWORD=2; _cloudphone cloudphone cr app; echo ${COMPREPLY[@]}";
    complete("bash", "--norc", "cloudphone.bash", bash);
    let values = fs::read_to_string(completions.join("_cloudphone")).expect("a file");
    assert!(values.contains(r":ADDRESS\:PORT:"), "a bare colon ends the name of a value");
    if !kit::lacks("zsh") {
        let zsh = "autoload -U compinit; compinit -u -D; source FILE; whence -f _cloudphone__subcmd__app_commands";
        complete("zsh", "-f", "_cloudphone", zsh);
    }
    if !kit::lacks("fish") {
        complete("fish", "--no-config", "cloudphone.fish", "source FILE; complete -C 'cloudphone app cr'");
    }
}
