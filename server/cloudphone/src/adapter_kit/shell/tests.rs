//! Scripts in the real `/bin/sh`, and changes to an output on its way.

use super::*;
use async_trait::async_trait;
use proptest::prelude::*;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A phone with this machine's shell, and only the programs in one folder. `way` changes the
/// output.
pub(crate) struct LocalShell {
    pub(crate) programs: PathBuf,
    pub(crate) way: fn(String) -> String,
    pub(crate) ran: Mutex<Vec<String>>,
}

impl LocalShell {
    pub(crate) fn new(programs: &Path) -> Self {
        Self { programs: programs.to_owned(), way: |output| output, ran: Mutex::default() }
    }
}

#[async_trait]
impl Shell for LocalShell {
    async fn run(&self, _: &DeviceId, script: &str) -> Result<String, Unreachable> {
        self.ran.lock().unwrap().push(script.to_owned());
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).env_clear().env("PATH", &self.programs).stdin(Stdio::null());
        // The end of the shell counts, even if what it has started goes on.
        let run = move || {
            let mut output = tempfile::tempfile().expect("a file");
            command.stdout(output.try_clone().expect("a file")).stderr(Stdio::null());
            command.status().expect("a shell");
            output.rewind().expect("its start");
            let mut text = String::new();
            output.read_to_string(&mut text).map(|_| text).expect("text")
        };
        Ok((self.way)(tokio::task::spawn_blocking(run).await.expect("it runs")))
    }
}

pub(crate) fn phone() -> DeviceId {
    DeviceId::new("cloud-1").unwrap()
}

async fn run_with(way: fn(String) -> String, script: &str) -> Result<String, String> {
    let shell = LocalShell { way, ..LocalShell::new(Path::new("/nowhere")) };
    let ran = run_whole(&shell, &Random::from_seed(1), &phone(), script).await;
    ran.map_err(|Unreachable(why)| why.as_str().to_owned())
}

#[tokio::test]
async fn a_script_that_runs_to_its_end_returns_its_output_whatever_its_status_is() {
    for (script, output) in [
        ("echo a", "a"),
        ("printf a", "a"),
        (":", ""),
        ("exit 7", ""),
        ("false", ""),
        ("echo a;echo b >&2;echo c", "a\nb\nc"),
        ("cd /;PATH=;set -e;false;echo never", ""),
        ("kill -9 $$;echo a", ""),
        ("missing-program", "/bin/sh: 1: missing-program: not found"),
        (": &", ""),
        ("echo '0<';echo '0>0.'", "0<\n0>0."),
        ("f() { echo \"$1\"; };f b|| echo c", "b"),
    ] {
        let ran = run_with(|output| output, script).await;
        match script {
            // The shell that prints the second mark is killed too.
            "kill -9 $$;echo a" => assert_eq!(ran, Err("the output of a command is not whole".to_owned())),
            _ => assert_eq!(ran.as_deref(), Ok(output), "{script}"),
        }
    }
}

#[tokio::test]
async fn an_output_that_is_cut_lost_replaced_or_followed_by_something_is_an_unknown_outcome() {
    let ways: [fn(String) -> String; 10] = [
        |_| String::new(),
        |_| "Success".to_owned(),
        |output| output[..output.len() - 2].to_owned(),
        |output| output[..output.len() - 3].to_owned(),
        |output| output[..output.len() / 2].to_owned(),
        |output| output[4..].to_owned(),
        |output| output.lines().skip(1).collect(),
        |output| output.trim_end().to_owned() + "and more",
        |output| output.replace('>', "> "),
        |output| output.replace("0.", "-1."),
    ];
    for (n, way) in ways.into_iter().enumerate() {
        assert_eq!(
            run_with(way, "echo hello world").await,
            Err("the output of a command is not whole".to_owned()),
            "{n}"
        );
    }
    let kept: [fn(String) -> String; 5] = [
        |output| output.replace('\n', "\r\n"),
        |output| output.trim().to_owned(),
        |output| format!("sh: hi\n{output}"),
        |output| format!("Success\n{output}"),
        |output| format!("{output}\nSuccess"),
    ];
    for way in kept {
        assert_eq!(run_with(way, "echo hello").await.as_deref(), Ok("hello"));
    }
}

#[tokio::test]
async fn a_command_that_is_echoed_is_not_its_output() {
    let shell = LocalShell::new(Path::new("/nowhere"));
    run_whole(&shell, &Random::from_seed(1), &phone(), "echo a").await.unwrap();
    let [command] = &shell.ran.lock().unwrap()[..] else { panic!("one command") };
    let nonce = hex::encode(&Random::from_seed(1).bytes::<8>().unwrap());
    assert!(command.contains(&nonce), "the seed draws the nonce");
    assert_eq!(between(&nonce, command), None);
    assert_eq!(between(&nonce, &command.repeat(2)), None);
}

#[tokio::test]
async fn a_command_or_an_output_that_platforms_would_cut_is_refused() {
    let long = format!("echo {}", "x".repeat(COMMAND_MAX));
    assert_eq!(run_with(|output| output, &long).await, Err("a command is longer than platforms take".to_owned()));
    let print = |n: usize| format!("printf %0{n}d 0");
    assert!(run_with(|output| output, &print(OUTPUT_MAX)).await.is_ok());
    assert!(run_with(|output| output, &print(OUTPUT_MAX + 1)).await.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_quoted_value_is_one_word_with_any_content(
        values in proptest::collection::vec(
            prop_oneof!["[^\\x00]{0,20}", "['\"\\\\$`;&|<>(){}!*?~#\\n \\-]{0,20}"],
            1..4,
        ),
    ) {
        let words: Vec<_> = values.iter().map(|value| quote(value)).collect();
        let script = format!("printf '%s\\0' {}", words.join(" "));
        let output = Command::new("/bin/sh").arg("-c").arg(script).output().expect("a shell");
        let read: Vec<_> = output.stdout.split_inclusive(|byte| *byte == 0).collect();
        let wanted: Vec<_> = values.iter().map(|value| [value.as_bytes(), b"\0"].concat()).collect();
        prop_assert_eq!(read, wanted);
    }
}
