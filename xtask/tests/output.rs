//! The output of the maintainer's commands, and readers that do not read all of it.

use std::process::{Command, Stdio};

#[test]
fn a_reader_that_has_gone_ends_a_command_without_a_panic() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let mut child = command.arg("lines").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(141), ""));
}
