//! Programs of this machine that an operator names for what a platform cannot do, such as switching
//! a phone on.
//!
//! A program gets its arguments as the operator wrote them, without a shell, and those of the
//! client as JSON on its standard input only. The beginning of its standard error is logged. A
//! program that did not start has done nothing; the outcome of one that this server had to end is
//! unknown. One that changes something goes on when this server stops. Start at
//! [`RunningPrograms::act`].

use crate::phones::port::Unreachable;
use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use std::collections::HashMap;
use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use toolwarrant::Clock;
use toolwarrant::base::{ignore_poison, way::walk_to};
use toolwarrant::tasks::{Leave, Sent, TaskId};
use toolwarrant::text::{Remark, Secret};

const ACT_WITHIN: Duration = Duration::from_secs(60);
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// Programs that run longer count as pending. A send must not take longer than 10 seconds.
const PENDING_AFTER: Duration = Duration::from_secs(5);

const ANSWER_MAX: u64 = 4 << 10;

const OPERATION: &str = "program";

/// From this number on, pending programs that have ended are forgotten.
const PENDING_MAX: usize = 1_024;

const LOST: &str = "the server was stopped while its program ran";

/// The whole environment of a program.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostProgram {
    path: PathBuf,
    arguments: Vec<ProgramArgument>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ProgramArgument {
    Text(String),
    Serial,
    Name,
}

#[derive(Clone, Copy, Debug)]
pub struct ProgramTarget<'a> {
    /// Must not begin with `-`.
    pub serial: &'a str,
    /// The operator's name of the phone, never the phone's own.
    pub name: Option<&'a str>,
}

const NOT_ABSOLUTE: &str =
    "expected the absolute path of a program and its arguments, like [\"/usr/bin/docker\", \"start\", \"{name}\"]";
const PLACEHOLDER: &str = "an argument is plain text, or `{serial}` or `{name}` as a whole, because there is no shell";

impl HostProgram {
    /// Checks the words of a program. Other users must not be able to change or replace its file.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        let path = words.first().map(PathBuf::from).filter(|path| path.is_absolute()).ok_or(NOT_ABSOLUTE)?;
        check_file(&path)?;
        let argument = |text: &String| match &**text {
            "{serial}" => Ok(ProgramArgument::Serial),
            "{name}" => Ok(ProgramArgument::Name),
            text if text.contains("{serial}") || text.contains("{name}") => Err(PLACEHOLDER),
            // Two brackets are meant for the program.
            text if text.starts_with('{') && !text.starts_with("{{") => Err(PLACEHOLDER),
            text => Ok(ProgramArgument::Text(text.to_owned())),
        };
        Ok(Self { arguments: words[1..].iter().map(argument).collect::<Result<_, _>>()?, path })
    }

    /// Returns the output of a program that exits with status 0 in time.
    pub async fn ask(&self, target: ProgramTarget<'_>, clock: &Clock) -> Result<String, Unreachable> {
        let mut running = self.start(target, [Stdio::null(), Stdio::piped()]).map_err(Unreachable)?;
        let mut answer = Vec::new();
        let end = async {
            if let Some(output) = running.child.stdout.take() {
                output.take(ANSWER_MAX).read_to_end(&mut answer).await?;
            }
            running.child.wait().await
        };
        match clock.before(clock.now().plus(ANSWER_WITHIN), end).await {
            Some(Ok(status)) if status.success() => Ok(String::from_utf8_lossy(&answer).into_owned()),
            Some(Ok(status)) => Err(Unreachable(format!("{self} ended with {status}{}", blame_sandbox(status)).into())),
            Some(Err(error)) => Err(Unreachable(format!("{self}: {error}").into())),
            None => Err(Unreachable(format!("{self} did not end in time").into())),
        }
    }

    #[must_use]
    pub fn find_obstacle(&self, target: ProgramTarget<'_>) -> Option<String> {
        let lacks_name = target.name.is_none() && self.arguments.contains(&ProgramArgument::Name);
        match check_file(&self.path) {
            Err(why) => Some(why),
            Ok(()) => lacks_name.then(|| format!("`names` has no name of {}, which {self} needs", target.serial)),
        }
    }

    fn start(&self, target: ProgramTarget<'_>, [input, output]: [Stdio; 2]) -> Result<RunningProgram, Remark> {
        if let Some(obstacle) = self.find_obstacle(target) {
            return Err(obstacle.into());
        }
        let argument = |argument: &ProgramArgument| match argument {
            ProgramArgument::Text(text) => text.clone(),
            ProgramArgument::Serial => target.serial.to_owned(),
            ProgramArgument::Name => target.name.unwrap_or_default().to_owned(),
        };
        let mut command = Command::new(&self.path);
        command.args(self.arguments.iter().map(argument)).env_clear().env("PATH", PATH).current_dir("/");
        command.stdin(input).stdout(output).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| format!("{self}: {error}"))?;
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(log_errors(self.to_string(), target.serial.to_owned(), errors));
        }
        Ok(RunningProgram { child, is_kept: false })
    }
}

impl fmt::Display for HostProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

fn check_file(path: &Path) -> Result<(), String> {
    if !path.metadata().is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0) {
        return Err(format!("`{}` is not a file that can be executed{}", path.display(), explain_absence(path)));
    }
    // In a folder with the sticky bit, users replace only what is theirs.
    let is_ours = |about: &Metadata| [0, geteuid().as_raw()].contains(&about.uid());
    let may_write = |about: &Metadata| !about.is_symlink() && about.mode() & 0o022 != 0;
    let is_sticky = |about: &Metadata| about.is_dir() && about.mode() & 0o1000 != 0;
    let shared = |(_, about): &(PathBuf, Metadata)| !is_ours(about) || (may_write(about) && !is_sticky(about));
    let Some((at, _)) = walk_to(path).into_iter().find(shared) else { return Ok(()) };
    Err(format!(
        "other users can change `{}` or what is in it; it must belong to root or to the user of this program, who alone \
         may write to it",
        at.display()
    ))
}

/// Returns the reason why the server may not see a file that others see.
fn explain_absence(path: &Path) -> &'static str {
    match ["/home", "/root", "/run/user"].iter().any(|folder| path.starts_with(folder)) {
        true => ", or the sandbox of a service hides it, as docs/operate.md says",
        false => "",
    }
}

/// A program that runs. Dropping it kills all processes of its group, unless it has ended or is
/// kept.
struct RunningProgram {
    child: Child,
    /// True if the program changes something, which a stop of this server must not interrupt.
    is_kept: bool,
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let group = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group.filter(|_| !self.is_kept) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct RunningPrograms(Arc<Mutex<HashMap<TaskId, watch::Receiver<Option<Sent>>>>>);

impl RunningPrograms {
    /// Runs a program with the client's input. After [`PENDING_AFTER`] the result is pending, and
    /// [`Self::look_up`] has its end.
    pub async fn act(
        &self,
        program: &HostProgram,
        target: ProgramTarget<'_>,
        (task, input): (TaskId, Secret<String>),
        (leave, clock): (Leave, &Clock),
    ) -> Sent {
        if let Err(why) = leave.confirm() {
            return Sent::NotSent(why);
        }
        let mut running = match program.start(target, [Stdio::piped(), Stdio::null()]) {
            Ok(running) => running,
            Err(why) => return Sent::NotSent(why),
        };
        let (tell, mut told) = watch::channel(None);
        let (name, phone) = (program.to_string(), target.serial.to_owned());
        let (until, time) = (clock.now().plus(ACT_WITHIN), clock.clone());
        running.is_kept = true;
        tokio::spawn(async move {
            let end = async {
                // A program need not read its input.
                if let Some(mut stdin) = running.child.stdin.take() {
                    let _ = stdin.write_all(input.expose().as_bytes()).await;
                }
                running.child.wait().await
            };
            let ended = time.before(until, end).await;
            running.is_kept = false;
            drop(running);
            let sent = interpret(&name, ended);
            if sent != Sent::Ok {
                tracing::warn!(phone, %sent, "a program did not do what it is for");
            }
            tell.send_replace(Some(sent));
        });
        let end = async { told.wait_for(Option::is_some).await.ok().and_then(|sent| sent.clone()) };
        match clock.before(clock.now().plus(PENDING_AFTER), end).await {
            Some(sent) => sent.unwrap_or_else(|| Sent::NoAnswer(LOST.into())),
            None => {
                let mut pending = self.lock();
                if pending.len() >= PENDING_MAX {
                    pending.retain(|_, told| told.borrow().is_none());
                }
                pending.insert(task, told);
                Sent::Pending(OPERATION.to_owned())
            }
        }
    }

    /// Returns the outcome of a task's program; unknown after a restart of this server.
    #[must_use]
    pub fn look_up(&self, task: TaskId) -> Sent {
        let mut pending = self.lock();
        let Some(told) = pending.get(&task) else { return Sent::NoAnswer(LOST.into()) };
        let Some(sent) = told.borrow().clone() else { return Sent::Pending(OPERATION.to_owned()) };
        pending.remove(&task);
        sent
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, watch::Receiver<Option<Sent>>>> {
        ignore_poison(self.0.lock())
    }
}

/// Logs the beginning of standard error. Reads the rest, too, so that the program, and what it
/// leaves running, is not held up.
async fn log_errors(program: String, phone: String, mut errors: ChildStderr) {
    let (mut bytes, mut logged) = ([0; 1 << 10], 0);
    while let Ok(count @ 1..) = errors.read(&mut bytes).await {
        if logged < ANSWER_MAX {
            let said = Remark::clean(&String::from_utf8_lossy(&bytes[..count]));
            tracing::warn!(program, phone, said = said.as_str(), "a program prints an error");
        }
        logged = logged.saturating_add(count as u64);
    }
}

fn interpret(program: &str, ended: Option<io::Result<ExitStatus>>) -> Sent {
    match ended {
        Some(Ok(status)) => match status.code() {
            Some(0) => Sent::Ok,
            Some(code) => {
                tracing::info!(program, code, "a program failed");
                Sent::Err(format!("the operator's program ended with status {code}").into())
            }
            None => Sent::NoAnswer(format!("{program} was ended: {status}{}", blame_sandbox(status)).into()),
        },
        Some(Err(error)) => Sent::NoAnswer(format!("{program}: {error}").into()),
        None => Sent::NoAnswer(format!("{program} did not end in time, and was ended").into()),
    }
}

/// Returns advice about the signals with which a sandbox, or a program in one, ends a process.
fn blame_sandbox(status: ExitStatus) -> &'static str {
    let ends = [Signal::SYS, Signal::TRAP].map(Signal::as_raw);
    match status.signal() {
        Some(signal) if ends.contains(&signal) => {
            "; if the server is a service, the sandbox of its unit may have ended it: docs/operate.md says what that forbids"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
