//! Assigns cores: servers run on one, the load on another. If `taskset` or a second core is
//! missing, processes are not bound, and a line reports it.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const SERVERS: &str = "0";
const LOAD: &str = "1";

static BINDS: LazyLock<bool> = LazyLock::new(|| {
    let several = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let binds = several && succeeds(&["-c", LOAD, "true"]);
    if !binds {
        println!("(not bound to cores: that takes `taskset` and two cores; CPU times hold, waits are worse)\n");
    }
    binds
});

pub(crate) fn keep_for_the_load() {
    if *BINDS {
        succeeds(&["-c", "-p", LOAD, &std::process::id().to_string()]);
    }
}

pub(crate) fn command_for_server(program: impl AsRef<OsStr>) -> Command {
    if !*BINDS {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["-c", SERVERS]).arg(program);
    command
}

fn succeeds(arguments: &[&str]) -> bool {
    let status = Command::new("taskset").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
