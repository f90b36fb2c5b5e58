//! Programs of this machine that an operator names for what a platform cannot do, such as switching
//! a phone on.
//!
//! A program gets its arguments as the operator wrote them, without a shell. The arguments of the
//! client are JSON on its standard input, and nowhere else. The beginning of its standard error is
//! logged. A program that did not start has done nothing; the outcome of one that this server had
//! to end is unknown. One that changes something goes on when this server stops. Start at [`RunningPrograms::act`].

use crate::phones::port::Unreachable;
use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;
use toolwarrant::Clock;
use toolwarrant::base::ignore_poison;
use toolwarrant::tasks::{Leave, Sent, TaskId};
use toolwarrant::text::{Remark, Secret};

/// The longest time for a program that changes something, and for one that answers a question.
const ACT_WITHIN: Duration = Duration::from_secs(60);
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// The time after which a running program counts as pending. A send must not take longer than 10
/// seconds.
const PENDING_AFTER: Duration = Duration::from_secs(5);

/// The most bytes that are read of an answer.
const ANSWER_MAX: u64 = 4 << 10;

/// The operation of a program that still runs.
const OPERATION: &str = "program";

/// The number of pending programs from which those that have ended are forgotten.
const PENDING_MAX: usize = 1_024;

/// The reason why the outcome of a program is unknown.
const LOST: &str = "the server was stopped while its program ran";

/// The folders in which a program finds others. Its environment has nothing else.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program and its arguments.
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

/// The phone that a program is about.
#[derive(Clone, Copy, Debug)]
pub struct ProgramTarget<'a> {
    /// The platform's address of the phone. It must not begin with `-`.
    pub serial: &'a str,
    /// The operator's name of the phone, and never the phone's own.
    pub name: Option<&'a str>,
}

/// The error for words that are not a [`HostProgram`].
#[derive(Debug, Error)]
pub enum NoHostProgram {
    /// There is no path, or it depends on the current folder.
    #[error(
        "expected the absolute path of a program and its arguments, like [\"/usr/bin/docker\", \"start\", \"{{name}}\"]"
    )]
    NotAbsolute,
    /// The file is missing, or cannot be executed.
    #[error("`{}` is not a file that can be executed", .0.display())]
    NotExecutable(PathBuf),
    /// Other users can change the file.
    #[error(
        "`{}` can be changed by other users; it must belong to root or to the user of this program: run `chmod go-w` on it",
        .0.display()
    )]
    Shared(PathBuf),
    /// A placeholder is part of an argument.
    #[error("an argument is plain text, or `{{serial}}` or `{{name}}` as a whole, because there is no shell")]
    Placeholder,
}

impl HostProgram {
    /// Checks the words of a program. Its file must exist and be executable, and other users must not
    /// be able to change it.
    ///
    /// # Errors
    /// The word that cannot be used.
    pub fn parse(words: &[String]) -> Result<Self, NoHostProgram> {
        let Some((path, arguments)) = words.split_first() else { return Err(NoHostProgram::NotAbsolute) };
        let path = PathBuf::from(path);
        if !path.is_absolute() {
            return Err(NoHostProgram::NotAbsolute);
        }
        check_file(&path)?;
        let argument = |text: &String| match &**text {
            "{serial}" => Ok(ProgramArgument::Serial),
            "{name}" => Ok(ProgramArgument::Name),
            text if text.contains("{serial}") || text.contains("{name}") => Err(NoHostProgram::Placeholder),
            // Two brackets are meant for the program.
            text if text.starts_with('{') && !text.starts_with("{{") => Err(NoHostProgram::Placeholder),
            text => Ok(ProgramArgument::Text(text.to_owned())),
        };
        Ok(Self { arguments: arguments.iter().map(argument).collect::<Result<_, _>>()?, path })
    }

    /// Runs the program for a phone, to answer a question. Returns what it prints.
    ///
    /// # Errors
    /// It did not run, or did not exit with status 0 in time.
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
            Some(Ok(status)) => Err(Unreachable(format!("{self} ended with {status}").into())),
            Some(Err(error)) => Err(Unreachable(format!("{self}: {error}").into())),
            None => Err(Unreachable(format!("{self} did not end in time").into())),
        }
    }

    /// Returns the reason why the program cannot run for a phone, as far as it is known.
    #[must_use]
    pub fn find_obstacle(&self, target: ProgramTarget<'_>) -> Option<String> {
        let lacks_name = target.name.is_none() && self.arguments.contains(&ProgramArgument::Name);
        match check_file(&self.path) {
            Err(why) => Some(why.to_string()),
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

fn check_file(path: &Path) -> Result<(), NoHostProgram> {
    let about = path.metadata().ok().filter(|about| about.is_file() && about.mode() & 0o111 != 0);
    let about = about.ok_or_else(|| NoHostProgram::NotExecutable(path.to_owned()))?;
    let is_ours = [0, geteuid().as_raw()].contains(&about.uid());
    if is_ours && about.mode() & 0o022 == 0 { Ok(()) } else { Err(NoHostProgram::Shared(path.to_owned())) }
}

/// A program that runs. If it has not ended when this is dropped, it is killed with all processes
/// of its group, unless it is kept.
struct RunningProgram {
    child: Child,
    /// True if the program changes something, which a stop of this server must not interrupt.
    is_kept: bool,
}

impl RunningProgram {
    /// Sends its input, and waits for its end. A program need not read its input.
    async fn tell(&mut self, input: &[u8]) -> io::Result<ExitStatus> {
        if let Some(mut stdin) = self.child.stdin.take() {
            let _ = stdin.write_all(input).await;
        }
        self.child.wait().await
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let group = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group.filter(|_| !self.is_kept) {
            // A group without processes needs no end.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The programs that change something and still run, by task.
#[derive(Clone, Debug, Default)]
pub struct RunningPrograms(Arc<Mutex<HashMap<TaskId, watch::Receiver<Option<Sent>>>>>);

impl RunningPrograms {
    /// Runs a program for a task, with what the client sent. If it takes long, the result is
    /// pending, and [`Self::look_up`] has its end.
    pub async fn act(
        &self,
        program: &HostProgram,
        target: ProgramTarget<'_>,
        (task, input): (TaskId, Secret<Vec<u8>>),
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
            let ended = time.before(until, running.tell(input.expose())).await;
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

    /// Returns the outcome of the program that runs for a task. After a restart of this server it
    /// is unknown.
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

/// Logs the beginning of what a program prints on standard error. Reads the rest, too, so that
/// nothing that the program leaves running is held up.
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

/// Interprets the end of a program; `None` if it did not end in time.
fn interpret(program: &str, ended: Option<io::Result<ExitStatus>>) -> Sent {
    match ended {
        Some(Ok(status)) => match status.code() {
            Some(0) => Sent::Ok,
            Some(code) => Sent::Err(format!("{program} ended with status {code}").into()),
            None => Sent::NoAnswer(format!("{program} was ended: {status}").into()),
        },
        Some(Err(error)) => Sent::NoAnswer(format!("{program}: {error}").into()),
        None => Sent::NoAnswer(format!("{program} did not end in time, and was ended").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;
    use toolwarrant::Timestamp;

    const TARGET: ProgramTarget<'_> = ProgramTarget { serial: "127.0.0.1:5555", name: Some("Anna; reboot") };

    /// Returns a clock on which no program of a busy machine takes too long.
    fn still() -> Clock {
        Clock::manual(Timestamp(1))
    }

    /// Writes a program in another process, and returns it with these arguments. A program that
    /// this process had open for writing could not be run while another test starts one.
    fn write(folder: &TempDir, script: &str, arguments: &[&str]) -> HostProgram {
        let path = folder.path().join("program");
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 700 "$0""#;
        let written = std::process::Command::new("/bin/sh").arg("-c").arg(write).arg(&path).arg(script).status();
        assert!(written.unwrap().success());
        let words: Vec<_> = [path.to_str().unwrap()].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        HostProgram::parse(&words).unwrap()
    }

    async fn act(programs: &RunningPrograms, program: &HostProgram, not_after: Timestamp, clock: &Clock) -> Sent {
        let input = Secret::new(br#"{"password":"HUNTER2"}"#.to_vec());
        let task = TaskId::new(Timestamp(0), [1; 10]);
        programs.act(program, TARGET, (task, input), (Leave::until(not_after, clock), clock)).await
    }

    #[test]
    fn a_program_is_an_absolute_path_of_an_executable_file_and_placeholders_are_whole_arguments() {
        let parse = |words: &[&str]| HostProgram::parse(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        assert!(matches!(parse(&[]), Err(NoHostProgram::NotAbsolute)));
        assert!(matches!(parse(&["sh"]), Err(NoHostProgram::NotAbsolute)));
        for missing in ["/nowhere", "/etc/passwd", "/bin"] {
            assert!(matches!(parse(&[missing]), Err(NoHostProgram::NotExecutable(_))), "{missing}");
        }
        let folder = TempDir::new().unwrap();
        let program = write(&folder, "true", &[]);
        for (mode, is_allowed) in [(0o755, true), (0o757, false), (0o775, false), (0o500, true)] {
            fs::set_permissions(&program.path, Permissions::from_mode(mode)).unwrap();
            let parsed = parse(&[program.path.to_str().unwrap()]);
            assert_eq!((parsed.is_ok(), program.find_obstacle(TARGET).is_none()), (is_allowed, is_allowed), "{mode:o}");
            assert!(is_allowed || matches!(parsed, Err(NoHostProgram::Shared(_))));
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(&program.path, Some(61_234), None).unwrap();
            assert!(program.find_obstacle(TARGET).is_some_and(|why| why.contains("must belong to root")));
        }
        for part in ["-s{serial}", "{name}s", "{nmae}"] {
            assert!(matches!(parse(&["/bin/sh", part]), Err(NoHostProgram::Placeholder)), "{part}");
        }
        assert!(parse(&["/bin/sh", "{serial}", "{name}", "{{.State.Running}}"]).is_ok());
    }

    #[tokio::test]
    async fn a_program_gets_its_arguments_whole_its_input_alone_and_a_clean_environment() {
        let folder = TempDir::new().unwrap();
        let script = "for word in \"$@\"; do echo \"<$word>\"; done; pwd; env | grep -v -e ^PWD -e ^_ -e ^SHLVL; cat";
        let program = write(&folder, script, &["{serial}", "a b", "{name}"]);
        let answer = program.ask(TARGET, &still()).await.unwrap();
        assert_eq!(answer, format!("<127.0.0.1:5555>\n<a b>\n<Anna; reboot>\n/\nPATH={PATH}\n"));
        let nameless = ProgramTarget { name: None, ..TARGET };
        assert!(program.ask(nameless, &still()).await.is_err());
        let told = folder.path().join("told");
        let program = write(&folder, &format!("cat > {}", told.display()), &[]);
        let clock = still();
        assert_eq!(act(&RunningPrograms::default(), &program, clock.now().plus(ACT_WITHIN), &clock).await, Sent::Ok);
        assert_eq!(fs::read_to_string(told).unwrap(), r#"{"password":"HUNTER2"}"#);
    }

    #[tokio::test]
    async fn only_an_exit_status_is_a_report_and_a_program_that_did_not_start_did_nothing() {
        let (folder, clock, programs) = (TempDir::new().unwrap(), still(), RunningPrograms::default());
        let soon = clock.now().plus(ACT_WITHIN);
        let failed = act(&programs, &write(&folder, "exit 3", &[]), soon, &clock).await;
        assert!(matches!(failed, Sent::Err(_)), "{failed:?}");
        let killed = act(&programs, &write(&folder, "kill -9 $$", &[]), soon, &clock).await;
        assert!(matches!(killed, Sent::NoAnswer(_)), "{killed:?}");
        let mark = folder.path().join("mark");
        let marks = write(&folder, &format!("touch {}", mark.display()), &[]);
        assert!(matches!(act(&programs, &marks, Timestamp(0), &clock).await, Sent::NotSent(_)));
        fs::remove_file(folder.path().join("program")).unwrap();
        assert!(matches!(act(&programs, &marks, soon, &clock).await, Sent::NotSent(_)));
        fs::write(folder.path().join("program"), "#!/nowhere\n").unwrap();
        fs::set_permissions(folder.path().join("program"), Permissions::from_mode(0o700)).unwrap();
        assert!(matches!(act(&programs, &marks, soon, &clock).await, Sent::NotSent(_)));
        assert!(!mark.exists());
    }

    #[test]
    fn a_program_that_changes_something_goes_on_when_the_server_stops_and_one_that_answers_does_not() {
        let (folder, clock) = (TempDir::new().unwrap(), still());
        let at = |name: &str| folder.path().join(name);
        for (name, goes_on) in [("act", true), ("ask", false)] {
            let (begun, go, done) =
                (at(&format!("{name}-begun")), at(&format!("{name}-go")), at(&format!("{name}-done")));
            let script = format!(
                "exec 9> {done}; flock 9; echo > {begun}; until [ -e {go} ]; do sleep 0.01; done; echo done > {done}",
                done = done.display(),
                begun = begun.display(),
                go = go.display()
            );
            let program = write(&folder, &script, &[]);
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let time = clock.clone();
            runtime.spawn(async move {
                match goes_on {
                    true => drop(act(&RunningPrograms::default(), &program, time.now().plus(ACT_WITHIN), &time).await),
                    false => drop(program.ask(TARGET, &time).await),
                }
            });
            while !begun.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            drop(runtime);
            fs::write(go, "").unwrap();
            let ended = std::process::Command::new("flock").args(["--wait", "120"]).arg(&done).arg("true").status();
            assert!(ended.unwrap().success());
            assert_eq!(fs::read_to_string(done).unwrap(), if goes_on { "done\n" } else { "" }, "{name}");
        }
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_is_pending_and_at_last_ended_with_its_group() {
        let (folder, clock) = (TempDir::new().unwrap(), Clock::manual(Timestamp(0)));
        let (held, programs) = (folder.path().join("held"), RunningPrograms::default());
        // The child holds a lock of the file until it ends.
        let script = format!("flock {} sleep 600 & echo > {}.begun; wait", held.display(), held.display());
        let program = write(&folder, &script, &[]);
        let task = TaskId::new(Timestamp(0), [1; 10]);
        let acting = act(&programs, &program, Timestamp(0), &clock);
        let moving = async {
            while !folder.path().join("held.begun").exists() || !held.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            clock.advance(PENDING_AFTER);
        };
        assert_eq!(tokio::join!(acting, moving).0, Sent::Pending(OPERATION.to_owned()));
        assert_eq!(programs.look_up(task), Sent::Pending(OPERATION.to_owned()));
        clock.advance(ACT_WITHIN);
        let end = loop {
            match programs.look_up(task) {
                Sent::Pending(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                end => break end,
            }
        };
        assert!(matches!(&end, Sent::NoAnswer(why) if why.as_str().contains("in time")), "{end:?}");
        assert!(Command::new("flock").args(["--wait", "120"]).arg(&held).arg("true").status().await.unwrap().success());
        assert!(matches!(programs.look_up(task), Sent::NoAnswer(why) if why.as_str() == LOST));
    }
}
