//! A pad's shell: the script runs in a real `/bin/sh` with an empty environment, a folder of its
//! own, and a PATH that contains only the pad's tools.
//!
//! Some tools are those of this machine. The others are this program under other names, and read
//! the data of their pad from a file, `Phone`. `/proc/` and `/data/local/tmp` in a script are
//! folders of the pad. A script that avoids the PATH (`/usr/bin/id`) sees this machine.

use crate::display::Display;
use crate::switches::{Asked, Switches};
use crate::tools::{ALWAYS, CHOSEN, OF_THIS_MACHINE, Phone};
use crate::truth::Seat;
use crate::world::{World, now};
use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::sync::SemaphorePermit;

/// Characters.
const SHOWN: usize = 2_000;
/// Only a script that hangs takes so long.
const LIMIT: Duration = Duration::from_secs(100);
/// The size of a screen, if no switch sets it.
const SIDES: (u32, u32) = (90, 160);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// Its exit status is not shown.
    Output(String),
    Killed,
}

/// A drop kills all of its processes.
#[derive(Debug)]
pub(crate) struct RunningScript<'a> {
    pub(crate) child: Child,
    group: Pid,
    _folder: TempDir,
    _turn: SemaphorePermit<'a>,
}

impl RunningScript<'_> {
    /// As adbd does it when the caller of a script goes away.
    pub(crate) async fn hang_up(&mut self) {
        let _ = kill_process(self.group, Signal::HUP);
        let _ = tokio::time::timeout(LIMIT, self.child.wait()).await;
    }
}

impl Drop for RunningScript<'_> {
    fn drop(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

pub(crate) async fn run(world: &World, seat: Seat, script: &str) -> Result<Ran> {
    let (reader, writer) = std::io::pipe()?;
    let streams = [Stdio::null(), writer.try_clone()?.into(), writer.into()];
    let mut running = start(world, seat, script, streams).await?;
    let mut output = Receiver::from_owned_fd(OwnedFd::from(reader))?;
    // Processes that the script leaves running are killed with it.
    let end = async {
        let _ = running.child.wait().await;
        drop(running);
    };
    let both = async { tokio::join!(read_output(&mut output), end).0 };
    Ok(tokio::time::timeout(LIMIT, both).await.map_or(Ran::Killed, Ran::Output))
}

pub(crate) async fn start<'a>(
    world: &'a World,
    seat: Seat,
    script: &str,
    [stdin, stdout, stderr]: [Stdio; 3],
) -> Result<RunningScript<'a>> {
    let turn = world.shells.acquire().await?;
    let phone = phone(world, seat);
    let path = tool_folder(&world.folder, &phone.tools)?;
    let folder = tempfile::Builder::new().prefix("run").tempdir_in(&world.folder)?;
    let (home, file) = (folder.path().join("home"), folder.path().join("phone.json"));
    fs::create_dir(&home)?;
    let data = data_folder(world, seat)?;
    let proc = folder.path().join("proc");
    write_files(world, seat, &proc)?;
    let script = script.replace("/data/local/tmp", &data.display().to_string());
    let script = script.replace("/proc/", &format!("{}/", proc.display()));
    fs::write(&file, serde_json::to_vec(&phone)?)?;
    let child = Command::new("/bin/sh")
        .arg("-c")
        .arg(script)
        .env_clear()
        .env("PATH", &path)
        .env(Phone::VARIABLE, &file)
        .current_dir(&home)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .context("/bin/sh does not start")?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).context("the shell has no id")?;
    Ok(RunningScript { child, group, _folder: folder, _turn: turn })
}

fn image(world: &World, seat: Seat) -> Option<Seat> {
    let image = world.switches().look(seat, |set| &set.adb_copy_of);
    world.truth().find(&image?)
}

fn data_folder(world: &World, seat: Seat) -> Result<PathBuf> {
    let (image, truth) = (image(world, seat), world.truth());
    let own = |seat: Seat| world.folder.join(format!("data{}", seat.0));
    let data = match image {
        Some(_) => world.folder.join(format!("data{}-{}", seat.0, truth.pad(seat).restarts)),
        None => own(seat),
    };
    let is_new = !data.exists();
    fs::create_dir_all(&data)?;
    if let Some(image) = image.filter(|_| is_new) {
        // The image may have no mark so far.
        let _ = fs::copy(own(image).join(".cloudphone"), data.join(".cloudphone"));
    }
    Ok(data)
}

fn write_files(world: &World, seat: Seat, proc: &Path) -> Result<()> {
    let files = {
        let truth = world.truth();
        [
            ("1/stat", truth.stat(seat)),
            ("self/stat", truth.own_stat(seat, now())),
            ("uptime", truth.uptime(seat, now())),
            ("sys/kernel/random/boot_id", format!("{}\n", truth.boot_id(seat))),
            ("cpuinfo", (0..8).map(|core| format!("processor\t: {core}\n")).collect()),
            ("meminfo", "MemTotal:        3906252 kB\nMemFree:          512340 kB\n".to_owned()),
        ]
    };
    for (path, text) in files {
        let path = proc.join(path);
        fs::create_dir_all(path.parent().unwrap_or(proc))?;
        fs::write(path, text)?;
    }
    Ok(())
}

fn phone(world: &World, seat: Seat) -> Phone {
    let asked = Asked { endpoint: "", seats: &[seat] };
    let image = image(world, seat).unwrap_or(seat);
    let (tools, display) = {
        let mut switches = world.switches();
        let (width, height) = sides(&switches, seat);
        let bytes = switches.take(asked, |set| &mut set.screen_bytes).unwrap_or_default();
        let fault = switches.take(asked, |set| &mut set.screen_fault);
        let tools = switches.take(asked, |set| &mut set.tools).unwrap_or_else(|| CHOSEN.map(str::to_owned).into());
        assert!(tools.iter().all(|tool| CHOSEN.contains(&tool.as_str())), "{tools:?} are not all tools of a phone");
        (tools, Display { width, height, bytes, fault })
    };
    let truth = world.truth();
    let pad = truth.pad(seat);
    let properties = [
        ("ro.build.version.release", pad.android),
        ("ro.product.model", pad.model),
        ("sys.boot_completed", if pad.is_up() { "1" } else { "" }),
        ("ro.serialno", &truth.pad(image).code),
    ];
    Phone {
        pad: pad.code.clone(),
        control: world.control.clone(),
        adb: world.adb,
        tools,
        properties: properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        display,
    }
}

/// Returns the size of the screen.
pub(crate) fn sides(switches: &Switches, seat: Seat) -> (u32, u32) {
    let size = switches.look(seat, |set| &set.screen);
    let sides = size.as_deref().and_then(|size| size.split_once('x'));
    sides.and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?))).unwrap_or(SIDES)
}

fn tool_folder(folder: &Path, tools: &[String]) -> Result<PathBuf> {
    let made = folder.join(format!("tools-{}", tools.join("-")));
    if !made.exists() {
        let program = std::env::current_exe()?;
        let draft = tempfile::Builder::new().prefix("draft").tempdir_in(folder)?;
        let own = ALWAYS.into_iter().chain(tools.iter().map(String::as_str)).map(|name| (name, program.clone()));
        let others = OF_THIS_MACHINE.into_iter().map(|name| (name, Path::new("/bin").join(name)));
        for (name, program) in own.chain(others) {
            std::os::unix::fs::symlink(program, draft.path().join(name))?;
        }
        let draft = draft.keep();
        if fs::rename(&draft, &made).is_err() {
            fs::remove_dir_all(&draft)?;
        }
    }
    Ok(made)
}

/// Reads the whole output, and returns its beginning.
async fn read_output(output: &mut Receiver) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(read @ 1..) = output.read(&mut buffer).await {
        if kept.len() < SHOWN * 4 {
            kept.extend_from_slice(&buffer[..read]);
        }
    }
    String::from_utf8_lossy(&kept).chars().take(SHOWN).collect()
}
