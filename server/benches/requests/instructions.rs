//! What a request takes in instructions, allocations and readings of the clock: counted by callgrind, so that no noise reaches it.
//!
//! The program has one runtime thread and one connection, and is asked one thing at a time. For each operation it is asked so often, and
//! then more often; the difference is what requests cost, and what else it does falls out. Only what runs in user space counts, and
//! valgrind shows programs no instructions for SHA-256: what that takes in software is told apart. Start at [`run`].

use crate::callgrind::{Did, Profile};
use crate::folder::Key;
use crate::limits::LIMITS;
use crate::server::{PROGRAM, Server, serve};
use crate::ways::{Requests, questions, ways};
use crate::wire::{Form, HEAD_END, PATIENCE, ask, call, find, length_of, operations, request};
use crate::{Missed, baseline, cores, folder};
use anyhow::{Context, Result, bail, ensure};
use cloudphone::phones::upstream::sim::{Part, Sim};
use serde_json::json;
use std::cell::RefCell;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use toolwarrant_core::clock::Clock;

/// Limits so many times above what is counted are told of: they hold little.
const LOOSE: f64 = 1.1;

/// Most that two runs may differ, in percent. How often a task is looked at depends on time, so writes are not held to it.
const STEADY: f64 = 0.5;
const WRITE: &str = "set_power";

/// Requests before anything is counted, of the shorter span, and how many more the longer one has.
const WARM: usize = 50;
const SHORT: usize = 100;
const MORE: usize = 500;

/// Time in which what was asked is in the audit, and in which the task of a write has ended.
const FLUSHED: Duration = Duration::from_millis(1_300);
const ENDED: Duration = Duration::from_secs(8);

/// Enough for a write on each.
const DEVICES: u32 = 20_000;

/// Functions that are listed of each operation.
const LARGEST: usize = 10;

pub(crate) fn run() -> Result<Missed> {
    if !Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return Ok(vec![
            "instructions: nothing was counted, as valgrind is missing; it is Debian's package `valgrind`".to_owned(),
        ]);
    }
    let [first, second] = [count()?, count()?];
    println!(
        "{:24}  instructions  SHA-256 in software  all other  ratio  allocations  clock readings  two runs differ %",
        "operation, and baseline"
    );
    let (mut missed, mut loose) = (Missed::new(), Vec::new());
    for (Counted { name, ours, baseline }, again) in first.iter().zip(&second) {
        let (figures, again) = (Figures::of(ours), Figures::of(&again.ours));
        let differs = (again.instructions / figures.instructions - 1.0).abs() * 100.0;
        let base = baseline.as_ref().map(Figures::of);
        let ratio = base.as_ref().map(|base| figures.rest() / base.rest());
        println!("{}  {differs:17.2}", figures.row(name, ratio));
        if let Some(base) = base {
            println!("{}", base.row("", None));
        }
        if differs > STEADY && name != WRITE {
            missed.push(format!("{name}: two runs differ by {differs:.2} %, at most {STEADY}; count again"));
        }
        figures.judge(name, &mut missed, &mut loose);
    }
    for Counted { name, ours, .. } in &first {
        println!("\n{name}: the functions with the most instructions of their own\ninstructions    calls");
        for (function, Did { instructions, calls }) in ours.largest(LARGEST) {
            println!("{instructions:12.0}  {calls:7.2}  {}", function.chars().take(130).collect::<String>());
        }
    }
    if !loose.is_empty() {
        println!("\nlimits that hold little, in limits.rs:\n{}", loose.join("\n"));
    }
    Ok(missed)
}

/// What an operation costs, for each request, and what the baseline costs with the same reply.
struct Counted {
    name: String,
    ours: Profile,
    baseline: Option<Profile>,
}

/// What is told of a profile.
struct Figures {
    instructions: f64,
    sha: f64,
    allocations: f64,
    clock_readings: f64,
}

impl Figures {
    fn of(profile: &Profile) -> Self {
        let allocates = |name: &str| ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"].contains(&name);
        Self {
            instructions: profile.sum(|_| true).instructions,
            sha: profile.sum(|name| name.contains("sha2::")).instructions,
            allocations: profile.sum(allocates).calls,
            clock_readings: profile.sum(|name| name == "clock_gettime").calls,
        }
    }

    fn rest(&self) -> f64 {
        self.instructions - self.sha
    }

    fn row(&self, name: &str, ratio: Option<f64>) -> String {
        let Self { instructions, sha, allocations, clock_readings } = self;
        let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let rest = self.rest();
        format!(
            "{name:24}  {instructions:12.0}  {sha:19.0}  {rest:9.0}  {ratio:>5}  {allocations:11.1}  {clock_readings:14.1}"
        )
    }

    /// Notes what is beyond its limit, and what is far below.
    fn judge(&self, name: &str, missed: &mut Missed, loose: &mut Vec<String>) {
        let Some(limit) = LIMITS.iter().find(|limit| limit.operation == name) else {
            missed.push(format!("{name} has no limit in limits.rs"));
            return;
        };
        let kinds = [
            ("instructions", self.instructions, limit.instructions),
            ("allocations", self.allocations, limit.allocations),
            ("clock readings", self.clock_readings, limit.clock_readings),
        ];
        for (kind, counted, most) in kinds {
            if counted > most {
                let over = (counted / most - 1.0) * 100.0;
                missed.push(format!("{name}: {counted:.1} {kind} a request, {over:.1} % above {most}"));
            } else if most > counted * LOOSE && most - counted >= 1.0 {
                loose.push(format!("{name}: {most} {kind} for {counted:.1}"));
            }
        }
    }
}

/// Counts every operation in a program on a folder of its own.
fn count() -> Result<Vec<Counted>> {
    let home = folder::home()?;
    let (data, key) = folder::one(&home)?;
    let program = Observed::start(&home.path().join("ours"), |command| serve(command, &data, DEVICES), PROGRAM, b"")?;
    let mut counted = Vec::new();
    for (name, message) in operations() {
        let request = request(&key, &message);
        let reply = ask(&program.server, &request)?;
        let requests = || request.clone();
        let ours = program.profile(&requests, &reply.form()?, FLUSHED).context(name)?;
        let exe = std::env::current_exe()?;
        let base = Observed::start(&home.path().join("baseline"), baseline::serving, exe, reply.body()?)?;
        let baseline = Some(base.profile(&requests, &reply.form()?, Duration::ZERO).context("the baseline")?);
        counted.push(Counted { name: name.to_owned(), ours, baseline });
    }
    let [question, ..] = questions();
    for (way, requests) in ways(&key, &question).into_iter().skip(1) {
        let form = ask(&program.server, &requests())?.form()?;
        let (name, ours) = (format!("{} {way}", question.0), program.profile(&requests, &form, FLUSHED).context(way)?);
        counted.push(Counted { name, ours, baseline: None });
    }
    let (requests, form) = writes(&key, &program)?;
    let ours = program.profile(&requests, &form, ENDED).context(WRITE)?;
    counted.push(Counted { name: WRITE.to_owned(), ours, baseline: None });
    Ok(counted)
}

/// Writes on phones that nobody wrote to, and what their replies look like.
fn writes<'a>(key: &'a Key, program: &Observed) -> Result<(Requests<'a>, Form)> {
    let phones: Vec<_> = Sim::new(1, DEVICES, Clock::system(), &[0; 32]).playing(Part::Plain).collect();
    let phones = RefCell::new(phones.into_iter());
    let next = move || {
        let phone = phones.borrow_mut().next();
        let arguments = json!({"device_id": phone.as_ref().map(|id| id.as_str()), "action": "boot"});
        request(key, &call(WRITE, arguments))
    };
    let form = ask(&program.server, &next())?.form()?.of_any_length();
    Ok((Box::new(next), form))
}

/// A server under callgrind.
struct Observed {
    server: Server,
    /// What the names of its dumps begin with. Their number follows.
    dumps: PathBuf,
    dumped: RefCell<usize>,
}

impl Observed {
    fn start(
        dumps: &Path,
        serving: impl FnOnce(Command) -> Command,
        program: impl AsRef<std::ffi::OsStr>,
        input: &[u8],
    ) -> Result<Self> {
        let mut command = cores::serving("valgrind");
        let out = format!("--callgrind-out-file={}", dumps.display());
        command.args(["--tool=callgrind", "-q", "--dump-instr=no", &out]).env("TOKIO_WORKER_THREADS", "1");
        command.arg(program);
        let server = Server::start(&mut serving(command), input).context("under valgrind")?;
        Ok(Self { server, dumps: dumps.to_owned(), dumped: RefCell::new(0) })
    }

    /// What a request costs, with what comes of it in that time after its answer.
    fn profile(&self, requests: &dyn Fn() -> Vec<u8>, form: &Form, after: Duration) -> Result<Profile> {
        let mut stream = TcpStream::connect(&self.server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut of = |count: usize| {
            (0..count).try_for_each(|_| exchange(&mut stream, &requests(), form))?;
            sleep(after);
            self.dump()
        };
        of(WARM)?;
        let short = of(SHORT)?;
        Ok(of(SHORT + MORE)?.beyond(&short, MORE as f64))
    }

    /// What was done since the dump before.
    fn dump(&self) -> Result<Profile> {
        let told = Command::new("callgrind_control").args(["--dump", &self.server.id().to_string()]).output();
        let told = told.context("cannot run callgrind_control, which comes with valgrind")?;
        *self.dumped.borrow_mut() += 1;
        let path = PathBuf::from(format!("{}.{}", self.dumps.display(), self.dumped.borrow()));
        let text = fs::read_to_string(&path);
        ensure!(told.status.success() && text.is_ok(), "no dump: {}", String::from_utf8_lossy(&told.stdout));
        fs::remove_file(&path)?;
        Ok(Profile::read(&text?))
    }
}

/// Sends a request and takes its reply, which must have that form.
fn exchange(stream: &mut TcpStream, request: &[u8], form: &Form) -> Result<()> {
    stream.write_all(request)?;
    let (mut reply, mut part) = (Vec::new(), [0; 64 * 1024]);
    loop {
        match stream.read(&mut part)? {
            0 => bail!("the connection was closed"),
            more => reply.extend_from_slice(&part[..more]),
        }
        let Some(head) = find(&reply, HEAD_END).map(|at| at + HEAD_END.len()) else { continue };
        let length = length_of(&reply[..head]).context("a length")?;
        if reply.len() >= head + length {
            ensure!(form.fits(&reply[..head], &reply[head..]), "another reply: {}", String::from_utf8_lossy(&reply));
            return Ok(());
        }
    }
}
