//! The instructions, allocations and readings of the clock that a request takes. Callgrind counts
//! them, so the figures have no noise.
//!
//! The program has one runtime thread and one connection. The difference of two runs of different
//! length is the cost of the requests. Threads that work once a second are counted separately. Only
//! user space counts. Valgrind has no instructions for SHA-256, so SHA-256 in software is also
//! shown alone. Start at [`run`].

use crate::callgrind::{Did, Profile};
use crate::limits::LIMITS;
use crate::server::{PROGRAM, Server, serve};
use crate::wire::{
    DEVICE, Form, HEAD_END, PATIENCE, REVISIONS, ask, call, device, find, in_revision, length_of, operations, request,
    sign_get,
};
use crate::{Missed, baseline, folder};
use anyhow::{Context, Result, anyhow, bail, ensure};
use cloudphone::platforms::simulator::{Part, Sim};
use kit::KeyPair;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::Duration;
use toolwarrant_base::clock::Clock;

const LOOSE: f64 = 1.1;

/// In percent. The number of looks at a task depends on time, so writes are exempt.
const STEADY: f64 = 0.5;
const WRITE: &str = "set_power";

/// Before the count, in the shorter span, and how many more in the longer one.
const WARM: usize = 50;
const SHORT: usize = 100;
const MORE: usize = 1_000;

/// Until requests are in the audit, and until the task of a write has ended.
const FLUSHED: Duration = Duration::from_millis(1_300);
const ENDED: Duration = Duration::from_secs(8);

/// Enough for one write on each.
const DEVICES: u32 = 20_000;

const LARGEST: usize = 10;

pub(crate) fn run() -> Result<Missed> {
    if !Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return Ok(vec![
            "instructions: nothing was counted, as valgrind is missing; it is Debian's package `valgrind`".to_owned(),
        ]);
    }
    let [first, second] = thread::scope(|scope| {
        let [first, second] = [scope.spawn(count), scope.spawn(count)];
        [first.join(), second.join()]
    });
    let counted = |run: thread::Result<_>| run.map_err(|_| anyhow!("a thread panicked"))?;
    let (first, second): (Vec<_>, Vec<_>) = (counted(first)?, counted(second)?);
    println!(
        "{:24}  instructions  elsewhere  SHA-256 in software  all other  ratio  allocations  clock readings  two runs differ %",
        "operation, and baseline"
    );
    let (mut missed, mut loose) = (Missed::new(), Vec::new());
    for (Counted { name, ours, baseline }, again) in first.iter().zip(&second) {
        let figures = Figures::of(ours);
        let differs = (Figures::of(&again.ours).instructions / figures.instructions - 1.0).abs() * 100.0;
        let base = baseline.as_ref().map(Figures::of);
        println!("{}  {differs:17.2}", figures.row(name, base.as_ref().map(|base| figures.rest() / base.rest())));
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
        for (function, Did { instructions, calls }) in ours.whole.largest(LARGEST) {
            println!("{instructions:12.0}  {calls:7.2}  {}", function.chars().take(130).collect::<String>());
        }
    }
    if !loose.is_empty() {
        println!("\nlimits that hold little, in limits.rs:\n{}", loose.join("\n"));
    }
    Ok(missed)
}

struct Counted {
    name: String,
    ours: Cost,
    baseline: Option<Cost>,
}

struct Cost {
    serving: Profile,
    whole: Profile,
}

struct Figures {
    instructions: f64,
    elsewhere: f64,
    sha: f64,
    allocations: f64,
    clock_readings: f64,
}

impl Figures {
    fn of(Cost { serving, whole }: &Cost) -> Self {
        let allocates = |name: &str| ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"].contains(&name);
        let instructions = serving.sum(|_| true).instructions;
        Self {
            instructions,
            elsewhere: whole.sum(|_| true).instructions - instructions,
            sha: whole.sum(|name| name.contains("sha2::")).instructions,
            allocations: whole.sum(allocates).calls,
            clock_readings: whole.sum(|name| name == "clock_gettime").calls,
        }
    }

    /// Returns the work on a processor with instructions for SHA-256.
    fn rest(&self) -> f64 {
        self.instructions + self.elsewhere - self.sha
    }

    fn row(&self, name: &str, ratio: Option<f64>) -> String {
        let Self { instructions, elsewhere, sha, allocations, clock_readings } = self;
        let (rest, ratio) = (self.rest(), ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")));
        format!(
            "{name:24}  {instructions:12.0}  {elsewhere:9.0}  {sha:19.0}  {rest:9.0}  {ratio:>5}  {allocations:11.1}  \
             {clock_readings:14.1}"
        )
    }

    fn judge(&self, name: &str, missed: &mut Missed, loose: &mut Vec<String>) {
        let Some(limit) = LIMITS.iter().find(|limit| limit.operation == name) else {
            missed.push(format!("{name} has no limit in limits.rs"));
            return;
        };
        let kinds = [
            ("instructions", self.instructions, limit.instructions),
            ("instructions elsewhere", self.elsewhere, limit.elsewhere),
            ("allocations", self.allocations, limit.allocations),
            ("clock readings", self.clock_readings, limit.clock_readings),
        ];
        for (kind, counted, most) in kinds {
            if counted > most {
                let over = (counted / most - 1.0) * 100.0;
                missed.push(format!("{name}: {counted:.1} {kind} a request, {over:.1} % above {most}"));
            } else if most > counted * LOOSE
                && most - counted >= 2.0
                && kind != "instructions elsewhere"
                && name != WRITE
            {
                loose.push(format!("{name}: {most} {kind} for {counted:.1}"));
            }
        }
    }
}

/// Counts every operation. Two counts at a time do not disturb each other, because instructions do
/// not depend on time.
fn count() -> Result<Vec<Counted>> {
    let home = folder::home()?;
    let (data, key) = folder::one(&home)?;
    let program = Observed::start(home.path().join("ours"), |command| serve(command, &data, DEVICES), PROGRAM, b"")?;
    let mut counted = Vec::new();
    for (name, message) in operations() {
        let request = request(&key, &message);
        let reply = ask(&program.server, &request)?;
        let requests = || request.clone();
        let ours = program.cost(&requests, &reply.form()?, FLUSHED).context(name)?;
        let exe = std::env::current_exe()?;
        let base =
            Observed::start(home.path().join(name.replace('/', " ")), baseline::as_baseline, exe, reply.body()?)?;
        let baseline = Some(base.cost(&requests, &reply.form()?, Duration::ZERO).context("the baseline")?);
        counted.push(Counted { name: name.to_owned(), ours, baseline });
    }
    for (way, requests) in other_ways(&key) {
        let form = ask(&program.server, &requests())?.form()?;
        let (name, ours) = (format!("get_device {way}"), program.cost(&requests, &form, FLUSHED).context(way)?);
        counted.push(Counted { name, ours, baseline: None });
    }
    let (requests, form) = writes(&key, &program)?;
    let ours = program.cost(&requests, &form, ENDED).context(WRITE)?;
    counted.push(Counted { name: WRITE.to_owned(), ours, baseline: None });
    Ok(counted)
}

type Requests<'a> = Box<dyn Fn() -> Vec<u8> + 'a>;

fn other_ways(key: &KeyPair) -> Vec<(&'static str, Requests<'_>)> {
    let later = REVISIONS.into_iter().skip(1).map(|revision| {
        let request = in_revision(key, revision, "get_device", &json!({"device_id": device(DEVICE)}));
        (revision, Box::new(move || request.clone()) as Requests<'_>)
    });
    let signed = move || sign_get(key, &format!("/v1/devices/{}", device(DEVICE)));
    later.chain([("signed", Box::new(signed) as Requests<'_>)]).collect()
}

fn writes<'a>(key: &'a KeyPair, program: &Observed) -> Result<(Requests<'a>, Form)> {
    let phones: Vec<_> = Sim::new(1, DEVICES, Clock::system(), &[0; 32]).phones_of(Part::Plain).collect();
    let phones = RefCell::new(phones.into_iter());
    let next = move || {
        let phone = phones.borrow_mut().next();
        let arguments = json!({"device_id": phone.as_ref().map(|id| id.as_str()), "action": "boot"});
        request(key, &call(WRITE, arguments))
    };
    let form = ask(&program.server, &next())?.form()?.of_any_length();
    Ok((Box::new(next), form))
}

struct Observed {
    server: Server,
    dumps: PathBuf,
}

impl Observed {
    fn start(
        dumps: PathBuf,
        serving: impl FnOnce(Command) -> Command,
        program: impl AsRef<OsStr>,
        input: &[u8],
    ) -> Result<Self> {
        fs::create_dir_all(&dumps)?;
        let mut command = Command::new("valgrind");
        let out = format!("--callgrind-out-file={}", dumps.join("out").display());
        command.args(["--tool=callgrind", "-q", "--dump-instr=no", "--separate-threads=yes", &out]);
        command.env("TOKIO_WORKER_THREADS", "1").arg(program);
        let server = Server::start(serving(command), input).context("under valgrind")?;
        Ok(Self { server, dumps })
    }

    fn cost(&self, requests: &dyn Fn() -> Vec<u8>, form: &Form, after: Duration) -> Result<Cost> {
        let mut stream = TcpStream::connect(self.server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut of = |count: usize| {
            (0..count).try_for_each(|_| exchange(&mut stream, &requests(), form))?;
            sleep(after);
            self.dump()
        };
        of(WARM)?;
        let (short, long) = (of(SHORT)?, of(SHORT + MORE)?);
        let nothing = Profile::default();
        let beyond =
            |(thread, did): (&String, &Profile)| did.beyond(short.get(thread).unwrap_or(&nothing), MORE as f64);
        let threads: Vec<_> = long.iter().map(beyond).collect();
        let whole = threads.iter().fold(Profile::default(), Profile::and);
        let instructions = |thread: &Profile| thread.sum(|_| true).instructions;
        let serving = threads.into_iter().max_by(|one, other| instructions(one).total_cmp(&instructions(other)));
        Ok(Cost { serving: serving.context("a thread")?, whole })
    }

    /// Reads a file per thread, such as `out.3-07`.
    fn dump(&self) -> Result<BTreeMap<String, Profile>> {
        let told = Command::new("callgrind_control").args(["--dump", &self.server.id()?.to_string()]).output();
        let told = told.context("cannot run callgrind_control, which comes with valgrind")?;
        let mut threads = BTreeMap::new();
        for file in fs::read_dir(&self.dumps)? {
            let path = file?.path();
            let thread = path.file_name().and_then(|name| name.to_str()?.rsplit_once('-'));
            let Some((_, thread)) = thread.map(|(dump, thread)| (dump, thread.to_owned())) else { continue };
            threads.insert(thread, Profile::read(&fs::read_to_string(&path)?));
            fs::remove_file(&path)?;
        }
        ensure!(!threads.is_empty(), "no dump: {}", String::from_utf8_lossy(&told.stdout));
        Ok(threads)
    }
}

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
