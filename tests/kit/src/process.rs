//! A running program: its output, its signals, and the system's figures about it.

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{self, SignalKind};

/// A drop kills the process and waits until it is gone.
#[derive(Debug)]
pub struct Process {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub fn start(command: impl Into<Command>) -> Result<Self> {
        let mut command = command.into();
        unignore_signals()?;
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot run {:?}", command.as_std()))?;
        let output = child.stdout.take().context("the program has no output")?;
        Ok(Self { child, output: BufReader::new(output).lines() })
    }

    /// Reads the next line, which must be JSON. Kills a program that prints something else, such as
    /// the reason of a failed start.
    pub async fn greeting(&mut self) -> Result<Value> {
        let line = self.output.next_line().await?.context("the program ended before it listened")?;
        match serde_json::from_str(&line) {
            Ok(told) => Ok(told),
            Err(_) => {
                self.kill().await?;
                bail!("the program does not listen, and prints {line}\n{}", self.lines(None).await?)
            }
        }
    }

    pub async fn until(&mut self, text: &str) -> Result<String> {
        let all = self.lines(Some(text)).await?;
        ensure!(all.contains(text), "the program ended before it printed {text:?}: {all}");
        Ok(all)
    }

    async fn lines(&mut self, until: Option<&str>) -> Result<String> {
        let mut all = String::new();
        while let Some(line) = self.output.next_line().await? {
            all += &format!("{line}\n");
            if until.is_some_and(|text| line.contains(text)) {
                break;
            }
        }
        Ok(all)
    }

    pub fn id(&self) -> Result<u32> {
        self.child.id().context("the program has ended")
    }

    pub async fn signal(&self, name: &str) -> Result<()> {
        signal(self.id()?, name)
    }

    pub async fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Asks it to stop as an operator does, and waits for [its end](Self::end).
    pub async fn stop(&mut self) -> Result<(ExitStatus, String)> {
        self.signal("TERM").await?;
        self.end().await
    }

    /// Returns the exit status, and the lines printed since the last read.
    pub async fn end(&mut self) -> Result<(ExitStatus, String)> {
        let last = self.lines(None).await?;
        Ok((self.child.wait().await?, last))
    }

    pub fn proc(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.id()?);
        fs::read_to_string(&path).context(path)
    }

    pub fn cpu(&self) -> Result<Duration> {
        let mut nanos = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.id()?))? {
            // The thread may have ended meanwhile.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            nanos += text.split(' ').next().context("a figure")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }
}

/// Returns true, and says so, if this machine lacks a program that a test runs.
pub fn lacks(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !is_there {
        println!("left out: {program} is not installed (package {program})");
    }
    !is_there
}

/// Lets programs start with every signal at its default, also under `nohup`: an ignored signal is
/// inherited, and one with a handler is not.
pub(crate) fn unignore_signals() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let ignored = u64::from_str_radix(ignored.trim(), 16)?;
    for kind in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate()] {
        if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
            drop(unix::signal(kind)?);
        }
    }
    Ok(())
}

pub fn signal(id: u32, name: &str) -> Result<()> {
    let signal = match name {
        "CONT" => Signal::CONT,
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        "STOP" => Signal::STOP,
        "TERM" => Signal::TERM,
        other => bail!("no test has sent {other} so far"),
    };
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).context("no process has this id")?;
    kill_process(id, signal).with_context(|| format!("cannot send {name} to {}", id.as_raw_pid()))
}

impl Drop for Process {
    fn drop(&mut self) {
        // The next program may use the same folder. A killed process is gone within moments.
        let _ = self.child.start_kill();
        while matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
