//! A double of the adb server, with phones behind it: the protocol in the process of the test, and
//! a real shell for each command. It records every restart of a phone.
//!
//! Commands run in `/bin/sh`, where functions stand in for the tools of a phone. `read -t` is one
//! of them: the double itself ends standard input after five seconds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The time for which a phone is down in a restart, and again until it has booted.
const DOWN: Duration = Duration::from_millis(150);

/// The delay of an effect that comes late.
const LATE: Duration = Duration::from_secs(1);

/// The time for which a phone waits for a word.
const WORD_WITHIN: Duration = Duration::from_secs(5);

/// The behaviour of a phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhoneMood {
    /// It carries out each command.
    Sound,
    /// The server refuses to connect to it.
    Refuses,
    /// It takes connections and says nothing.
    Silent,
    /// It answers readings, and says nothing to a command that waits for a word.
    SilentToCommands,
    /// The connection breaks when the word arrives, before the phone acts.
    LosesCommand,
    /// It acts, and the connection breaks before its exit status.
    LosesAnswer,
    /// It acts, and the connection breaks within its exit status.
    CutsAnswer,
    /// It reports success and does not act.
    Swallows,
    /// It reports a failure and does not act.
    Fails,
    /// It acts, and reports a failure.
    FailsButActs,
    /// It reports success, and acts later.
    ActsLate,
    /// It acts, and never reports.
    NeverEnds,
    /// It lacks shells with an exit status.
    IsOld,
}

/// A phone behind the double.
#[derive(Clone, Debug)]
struct PhoneTruth {
    /// The state in the list.
    state: &'static str,
    mood: PhoneMood,
    restarts: u32,
    /// The time until which the phone is down, if it has restarted.
    down_until: Option<Instant>,
}

/// A running double. It stops when it is dropped.
pub(crate) struct AdbDouble {
    pub(crate) address: SocketAddr,
    world: Arc<DoubleWorld>,
    _serving: JoinSet<()>,
}

struct DoubleWorld {
    phones: Mutex<BTreeMap<String, PhoneTruth>>,
    /// The services that were asked for.
    asked: Mutex<Vec<String>>,
    folder: TempDir,
}

impl AdbDouble {
    /// Starts a double with sound phones of these serials.
    pub(crate) async fn start(serials: impl IntoIterator<Item = String>) -> Self {
        Self::start_at("127.0.0.1:0".parse().expect("an address"), serials).await
    }

    /// Starts a double at an address that an earlier one has left.
    pub(crate) async fn start_at(address: SocketAddr, serials: impl IntoIterator<Item = String>) -> Self {
        let sound = PhoneTruth { state: "device", mood: PhoneMood::Sound, restarts: 0, down_until: None };
        let world = Arc::new(DoubleWorld {
            phones: Mutex::new(serials.into_iter().map(|serial| (serial, sound.clone())).collect()),
            asked: Mutex::default(),
            folder: TempDir::new().expect("a temporary folder"),
        });
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (mut serving, of_listener) = (JoinSet::new(), Arc::clone(&world));
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let world = Arc::clone(&of_listener);
                connections.spawn(async move { drop(serve(&world, stream).await) });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, world, _serving: serving }
    }

    /// Changes the behaviour of a phone.
    pub(crate) fn set_mood(&self, serial: &str, mood: PhoneMood) {
        self.world.phone(serial, |phone| phone.mood = mood);
    }

    /// Changes the state of a phone in the list.
    pub(crate) fn set_state(&self, serial: &str, state: &'static str) {
        self.world.phone(serial, |phone| phone.state = state);
    }

    /// Returns the number of restarts of a phone.
    pub(crate) fn restarts(&self, serial: &str) -> u32 {
        self.world.phone(serial, |phone| phone.restarts)
    }

    /// Returns the services that were asked for so far.
    pub(crate) fn services(&self) -> Vec<String> {
        self.world.asked.lock().expect("no panic").clone()
    }
}

impl DoubleWorld {
    fn open(&self) -> MutexGuard<'_, BTreeMap<String, PhoneTruth>> {
        self.phones.lock().expect("no panic")
    }

    fn phone<T>(&self, serial: &str, work: impl FnOnce(&mut PhoneTruth) -> T) -> T {
        work(self.open().get_mut(serial).expect("a phone of the double"))
    }

    /// Restarts a phone.
    fn restart(&self, serial: &str) {
        self.phone(serial, |phone| {
            phone.restarts += 1;
            phone.down_until = Some(Instant::now() + DOWN);
        });
    }

    fn list(&self) -> String {
        let mut list = String::new();
        for (n, (serial, phone)) in self.open().iter().enumerate() {
            let state = phone.state;
            let _ = writeln!(list, "{serial:22} {state} product:rack model:Pixel_6 device:rack transport_id:{}", n + 1);
        }
        list
    }
}

/// Serves one connection: a question to the server, or a phone and a question to that.
async fn serve(world: &Arc<DoubleWorld>, mut stream: TcpStream) -> io::Result<()> {
    let service = read_service(world, &mut stream).await?;
    let answer = match &*service {
        "host:version" => "0029".to_owned(),
        "host:devices-l" => world.list(),
        other => {
            if let Some(serial) = other.strip_prefix("host:transport:") {
                return serve_phone(world, stream, serial).await;
            }
            let serial = other.strip_prefix("host-serial:").and_then(|rest| rest.strip_suffix(":features"));
            match serial.map(|serial| world.phone(serial, |phone| phone.mood)) {
                Some(PhoneMood::IsOld) => "cmd".to_owned(),
                Some(_) => "shell_v2,cmd".to_owned(),
                None => return fail(&mut stream, "unknown host service").await,
            }
        }
    };
    stream.write_all(format!("OKAY{:04x}{answer}", answer.len()).as_bytes()).await
}

async fn read_service(world: &DoubleWorld, stream: &mut TcpStream) -> io::Result<String> {
    let mut digits = [0; 4];
    stream.read_exact(&mut digits).await?;
    let digits = std::str::from_utf8(&digits).map_err(io::Error::other)?;
    let mut service = vec![0; usize::from_str_radix(digits, 16).map_err(io::Error::other)?];
    stream.read_exact(&mut service).await?;
    let service = String::from_utf8(service).map_err(io::Error::other)?;
    world.asked.lock().expect("no panic").push(service.clone());
    Ok(service)
}

async fn fail(stream: &mut TcpStream, why: &str) -> io::Result<()> {
    stream.write_all(format!("FAIL{:04x}{why}", why.len()).as_bytes()).await
}

async fn serve_phone(world: &Arc<DoubleWorld>, mut stream: TcpStream, serial: &str) -> io::Result<()> {
    // Like the real server, which takes any phone for an empty serial.
    let serial =
        if serial.is_empty() { world.open().keys().next().cloned().unwrap_or_default() } else { serial.into() };
    let Some(phone) = world.open().get(&serial).cloned() else {
        return fail(&mut stream, &format!("device '{serial}' not found")).await;
    };
    let is_down = phone.down_until.is_some_and(|until| Instant::now() < until);
    if phone.state != "device" || phone.mood == PhoneMood::Refuses || is_down {
        return fail(&mut stream, "device offline").await;
    }
    stream.write_all(b"OKAY").await?;
    let service = read_service(world, &mut stream).await?;
    let is_command = service.contains("echo ready;");
    match (service.strip_prefix("shell,v2,raw:"), phone.mood) {
        (_, PhoneMood::Silent) => hold(stream).await,
        (_, PhoneMood::SilentToCommands) if is_command => hold(stream).await,
        (None, _) | (_, PhoneMood::IsOld) => fail(&mut stream, "closed").await,
        (Some(script), mood) => {
            stream.write_all(b"OKAY").await?;
            run(world, stream, (&serial, mood), script).await
        }
    }
}

/// Says nothing until the client goes away.
async fn hold(mut stream: TcpStream) -> io::Result<()> {
    while stream.read(&mut [0; 64]).await? > 0 {}
    Ok(())
}

/// Runs a command on a phone.
async fn run(
    world: &Arc<DoubleWorld>,
    stream: TcpStream,
    (serial, mood): (&str, PhoneMood),
    script: &str,
) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let acts = tempfile::Builder::new().tempdir_in(world.folder.path())?;
    let acted = acts.path().join("acted");
    let tools = world.phone(serial, |phone| tools(serial, phone));
    let mut child = Command::new("/bin/sh")
        .args(["-c", &format!("{tools}{script}")])
        .env("ACTED", &acted)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let input = child.stdin.take().expect("a pipe");
    let mut output = child.stdout.take().expect("a pipe");
    let end = async {
        let mut bytes = [0; 1 << 10];
        loop {
            match output.read(&mut bytes).await? {
                0 => break,
                count => to.write_all(&frame(1, &bytes[..count])).await?,
            }
        }
        exit_status(&mut child).await
    };
    let status = tokio::select! {
        status = end => status?,
        lost = feed(from, input, mood) => return lost,
    };
    if acted.exists() && mood == PhoneMood::ActsLate {
        let (world, serial) = (Arc::clone(world), serial.to_owned());
        tokio::spawn(async move {
            sleep(LATE).await;
            world.restart(&serial);
        });
    } else if acted.exists() {
        world.restart(serial);
        match mood {
            PhoneMood::LosesAnswer => return Ok(()),
            PhoneMood::CutsAnswer => return to.write_all(&frame(3, &[status])[..5]).await,
            PhoneMood::NeverEnds => std::future::pending().await,
            _ => {}
        }
    }
    to.write_all(&frame(3, &[status])).await
}

async fn exit_status(child: &mut Child) -> io::Result<u8> {
    let status = child.wait().await?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(137))
}

/// Passes standard input on. Returns only if the connection is to break.
async fn feed(mut from: OwnedReadHalf, mut input: ChildStdin, mood: PhoneMood) -> io::Result<()> {
    let mut head = [0; 5];
    while let Ok(Ok(_)) = timeout(WORD_WITHIN, from.read_exact(&mut head)).await {
        let [kind, length @ ..] = head;
        let mut data = vec![0; u32::from_le_bytes(length) as usize];
        from.read_exact(&mut data).await?;
        if mood == PhoneMood::LosesCommand {
            return Ok(());
        }
        if kind == 0 {
            // The command may have ended.
            let _ = input.write_all(&data).await;
        }
    }
    drop(input);
    std::future::pending().await
}

fn frame(kind: u8, data: &[u8]) -> Vec<u8> {
    [&[kind], &(data.len() as u32).to_le_bytes()[..], data].concat()
}

/// Returns functions of a shell that stand in for the tools of a phone.
fn tools(serial: &str, phone: &PhoneTruth) -> String {
    let PhoneTruth { mood, restarts, down_until, .. } = phone;
    let has_booted = down_until.is_none_or(|until| Instant::now() > until + DOWN);
    let (acts, status) = match mood {
        PhoneMood::Swallows => (false, 0),
        PhoneMood::Fails => (false, 1),
        PhoneMood::FailsButActs => (true, 1),
        _ => (true, 0),
    };
    let act = if acts { "echo $1 >\"$ACTED\"" } else { ":" };
    let booted = if has_booted { "1" } else { "" };
    format!(
        r#"getprop() {{ case $1 in sys.boot_completed) echo {booted};; ro.serialno) echo SN-{serial};;
        ro.product.model) echo Pixel 6;; ro.build.version.release) echo 14;; esac; }}
        setprop() {{ [ "$*" = 'sys.powerctl reboot,' ]||return 9; {act}; return {status}; }}
        cat() {{ for f; do case $f in
        /proc/sys/kernel/random/boot_id) echo 2c7b8f3e-8a2f-4a55-9d3e-0f6a1b2c3d4e;;
        /proc/1/stat) echo "1 (init) S 0 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0";; esac; done; }}
        grep() {{ case $1 in -c) echo 8;; *) echo 'MemTotal: 3906252 kB';; esac; }}
        df() {{ echo Filesystem; echo /dev/block/dm-5 115249236 1 1 1% /data; }}
        read() {{ shift 2; command read -r "$1"; }}
        "#,
        start = 100 + restarts,
    )
}
