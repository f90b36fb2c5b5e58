//! A program that serves, as verbs see it that measure one from outside: how it is started, operated, watched and asked.
//!
//! Each request has a connection of its own. Judges no answer but its status. Start at [`Serving::start`].

use crate::test::step;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time in which a request must be answered.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The program of a package that is given, or an optimised one of the same name that is built now.
pub(crate) fn program(root: &Path, given: Option<&Path>, name: &str) -> Result<PathBuf> {
    if let Some(given) = given {
        return given.canonicalize().with_context(|| given.display().to_string());
    }
    step(root, &["build", "--release", "--locked", "--package", name, "--bin", name])?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target));
    Ok(target.join("release").join(name))
}

/// A program that serves. Dropping it ends it.
pub(crate) struct Serving {
    program: PathBuf,
    home: PathBuf,
    child: Child,
    /// Kept, so that what the program prints has a reader.
    _out: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    monitor: SocketAddr,
}

/// Credentials of an application that may ask a lot.
pub(crate) struct Key {
    id: String,
    secret: String,
}

impl Key {
    /// A request with so many of these messages.
    pub(crate) fn request(&self, message: &str, headers: &str, times: usize) -> String {
        let body = if times == 1 { message.to_owned() } else { format!("[{}]", vec![message; times].join(",")) };
        let (Self { id, secret }, length) = (self, body.len());
        format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nx-api-key: {id}\r\n\
             x-api-secret: {secret}\r\n{headers}content-length: {length}\r\n\r\n{body}"
        )
    }
}

impl Serving {
    /// Runs `command`, which ends up as `program`, with free ports and its data in the folder `home`.
    pub(crate) fn start(mut command: Command, program: &Path, home: &Path) -> Result<Self> {
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data"]).arg(home.join("data"));
        let mut child = command.stdout(Stdio::piped()).stderr(fs::File::create(home.join("log"))?).spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("its output")?);
        let (mut address, mut monitor, mut line) = (None, None, String::new());
        while !line.contains("Ctrl-C") {
            line.clear();
            if out.read_line(&mut line)? == 0 {
                let _ = child.wait();
                bail!("the program does not start: {}", fs::read_to_string(home.join("log"))?);
            }
            let at = |mark: &str| {
                line.trim().rsplit_once(mark).and_then(|(_, rest)| rest.trim_end_matches("/mcp").parse().ok())
            };
            monitor = monitor.or(at("/metrics are at http://"));
            address = address.or(at(" at http://").filter(|_| line.contains(" serves ")));
        }
        let (Some(address), Some(monitor)) = (address, monitor) else {
            bail!("the program does not say where it listens")
        };
        Ok(Self { program: program.to_owned(), home: home.to_owned(), child, _out: out, address, monitor })
    }

    /// Makes a key with an application of its own, of this name. It sees these devices, or all where none is named.
    pub(crate) fn key(&self, name: &str, devices: &[String]) -> Result<Key> {
        self.operate(&["app", "create", name, "--permission", "device", "--requests-per-minute", "1000000"])?;
        let all = ["--all".to_owned()];
        let devices = if devices.is_empty() { &all } else { devices };
        // All at once may be longer than a command line.
        for some in devices.chunks(1_000) {
            let assign = ["device", "assign", name].into_iter().chain(some.iter().map(String::as_str));
            self.operate(&assign.collect::<Vec<_>>())?;
        }
        let made = self.operate(&["key", "create", name])?;
        let text = |name: &str| made[name].as_str().map(str::to_owned).with_context(|| format!("{name} in {made}"));
        Ok(Key { id: text("key_id")?, secret: text("secret")? })
    }

    /// Has the program carry out a command of its operator: what it answers.
    pub(crate) fn operate(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(&self.program);
        let output = command.args(arguments).arg("--json").arg("--data").arg(self.home.join("data")).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// What `/readyz` or `/metrics` says: head and body.
    pub(crate) async fn monitor(&self, path: &str) -> Result<String> {
        let ask = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        timeout(PATIENCE, read(self.monitor, &ask)).await.with_context(|| format!("no {path} in 10 s"))?
    }

    /// The value of a metric, by its name without that of the program, labels included. `None`: it has no sample.
    pub(crate) async fn metric(&self, name: &str) -> Result<Option<u64>> {
        Ok(sample(&self.monitor("/metrics").await?, name))
    }

    /// A value of `/proc/PID/status` in KiB, as `VmRSS`.
    pub(crate) fn memory(&self, field: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':')?.trim().strip_suffix(" kB")?.parse().ok());
        value.with_context(|| field.to_owned())
    }

    /// Ends the program: its log.
    pub(crate) fn end(mut self) -> Result<String> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(fs::read_to_string(self.home.join("log"))?)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks, and wants an answer of status 200: its body.
pub(crate) async fn exchange(address: SocketAddr, request: &str) -> Result<String> {
    let answer = read(address, request).await?;
    let status = answer.lines().next().unwrap_or("closed without an answer");
    ensure!(status.starts_with("HTTP/1.1 200"), "{status}");
    Ok(answer.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
}

async fn read(address: SocketAddr, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn sample(page: &str, name: &str) -> Option<u64> {
    let samples = page.lines().filter_map(|line| line.split_once('_')?.1.rsplit_once(' '));
    samples.filter(|(known, _)| *known == name).find_map(|(_, value)| value.parse().ok())
}

/// The value below which this share of those is, which are in ascending order.
pub(crate) fn quantile(ascending: &[f64], share: f64) -> f64 {
    ascending.get((ascending.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::{quantile, sample};

    #[test]
    fn a_metric_is_found_by_its_name_and_labels() {
        let page = "# TYPE shop_calls counter\nshop_calls_total 3\nshop_calls{of=\"a b\"} 4\nshop_calls{of=\"c\"} 5\n";
        assert_eq!(
            ["calls_total", "calls{of=\"a b\"}", "calls"].map(|name| sample(page, name)),
            [Some(3), Some(4), None]
        );
    }

    #[test]
    fn a_quantile_of_nothing_is_no_number() {
        let hundred: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!([0.5, 0.99].map(|share| quantile(&hundred, share)), [50.0, 99.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
