//! The adb server in front of the pads: its list, and shells on pads with standard input, standard
//! output and exit status. The serials are the codes of the pads.
//!
//! A pad that `host:connect:CODE:5555` names is listed under that serial, too, until it starts
//! again. Like the real server, this one takes any pad for an empty serial, and says nothing for a
//! pad that it still lists as `device` but that is gone.

use crate::endpoints::{RESTART, SHELL};
use crate::faults::{Cut, Faults, Instead};
use crate::shell;
use crate::switches::{Asked, Shell, Switches};
use crate::tasks::wait;
use crate::traffic;
use crate::truth::{Pad, Seat};
use crate::world::{World, now};
use serde_json::json;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::ChildStdin;
use tokio::sync::Mutex;

const NETWORK: &str = ":5555";

/// Stands in for `read -t SECONDS NAME`, which a phone's shell has and dash lacks. It waits without
/// a limit, which a busy machine could miss, until its caller goes away.
const READ: &str = "read() { [ \"$1\" != -t ]||shift 2;command read -r \"$@\"; };";

pub(crate) async fn serve(world: Arc<World>, mut stream: TcpStream) -> io::Result<()> {
    let service = read_service(&world, &mut stream, None).await?;
    if let Some(serial) = service.strip_prefix("host:transport:") {
        return serve_pad(&world, stream, serial).await;
    }
    // Not a service of adb: the tools of a pad ask to be connected.
    if let Some(journey) = service.strip_prefix("connect:") {
        return traffic::serve(world, serde_json::from_str(journey)?, stream).await;
    }
    match answer(&world, &service) {
        Ok(text) => reply(&mut stream, "OKAY", &text).await,
        Err(why) => reply(&mut stream, "FAIL", &why).await,
    }
}

pub(crate) fn code(serial: &str) -> &str {
    serial.strip_suffix(NETWORK).unwrap_or(serial)
}

fn answer(world: &World, service: &str) -> Result<String, String> {
    let unknown = || "unknown host service".to_owned();
    match service {
        "host:version" => return Ok("0029".to_owned()),
        "host:devices-l" => return Ok(list(world)),
        _ => {}
    }
    if let Some(serial) = service.strip_prefix("host:connect:") {
        return Ok(connect(world, serial));
    }
    let of_pad = service.strip_prefix("host-serial:").and_then(|rest| rest.rsplit_once(':'));
    let (serial, question) = of_pad.ok_or_else(unknown)?;
    match question {
        "reconnect" => Ok(format!("reconnecting {serial} [device]\n")),
        "features" => {
            let seat = reach(world, serial)?;
            let is_old = world.switches().look(seat, |set| &set.adb_old) == Some(true);
            Ok(if is_old { "cmd" } else { "shell_v2,cmd" }.to_owned())
        }
        _ => Err(unknown()),
    }
}

fn connect(world: &World, serial: &str) -> String {
    let mut truth = world.truth();
    match serial.strip_suffix(NETWORK).and_then(|code| truth.find(code)) {
        Some(seat) if truth.pad(seat).is_connected => format!("already connected to {serial}"),
        Some(seat) if truth.pad(seat).is_started() => {
            truth.pad_mut(seat).is_connected = true;
            format!("connected to {serial}")
        }
        _ => format!("failed to connect to '{serial}': Connection refused"),
    }
}

fn list(world: &World) -> String {
    let (switches, mut list) = (world.switches(), String::new());
    for pad in &world.truth().pads {
        let network = format!("{}{NETWORK}", pad.code);
        for serial in [&pad.code, &network] {
            if let Some(state) = state(&switches, pad, serial) {
                let (model, id) = (pad.model.replace([' ', '-'], "_"), pad.seat.0 + 1);
                list += &format!("{serial:22} {state} product:double model:{model} device:double transport_id:{id}\n");
            }
        }
    }
    list
}

fn state(switches: &Switches, pad: &Pad, serial: &str) -> Option<String> {
    let lag = switches.look(pad.seat, |set| &set.lag_ms).unwrap_or_default();
    let usual = if pad.at(now().saturating_sub(lag)).pad_status == 10 { "device" } else { "offline" };
    if serial.ends_with(NETWORK) {
        return pad.is_connected.then(|| usual.to_owned());
    }
    let state = switches.look(pad.seat, |set| &set.adb_state);
    Some(state.unwrap_or_else(|| usual.to_owned())).filter(|state| state != "absent")
}

fn reach(world: &World, serial: &str) -> Result<Seat, String> {
    let (switches, truth) = (world.switches(), world.truth());
    let seat = if serial.is_empty() { Some(Seat(0)) } else { truth.find(code(serial)) };
    let state = seat.and_then(|seat| state(&switches, truth.pad(seat), serial));
    match (seat, state.as_deref()) {
        (Some(seat), Some("device")) => Ok(truth.pad(seat).leads_to.unwrap_or(seat)),
        (Some(_), Some(state)) => Err(format!("device {state}")),
        _ => Err(format!("device '{serial}' not found")),
    }
}

/// Lets two pads change places, as when a router gives their addresses again.
fn swap(world: &World, seat: Seat) {
    let other = world.switches().look(seat, |set| &set.adb_swaps_with);
    let mut truth = world.truth();
    if let Some(other) = other.and_then(|code| truth.find(&code)) {
        truth.pad_mut(seat).leads_to = Some(other);
        truth.pad_mut(other).leads_to = Some(seat);
    }
}

async fn serve_pad(world: &Arc<World>, mut stream: TcpStream, serial: &str) -> io::Result<()> {
    let seat = match reach(world, serial) {
        Ok(seat) => seat,
        Err(why) => return reply(&mut stream, "FAIL", &why).await,
    };
    stream.write_all(b"OKAY").await?;
    let service = read_service(world, &mut stream, Some(seat)).await?;
    let waits = service.contains("read -t ");
    let asked = Asked { endpoint: if waits { RESTART } else { SHELL }, seats: &[seat] };
    let (faults, shell, is_old) = {
        let mut switches = world.switches();
        let faults = Faults::take(&mut switches, asked);
        (faults, switches.take(asked, |set| &mut set.shell), switches.look(seat, |set| &set.adb_old))
    };
    if waits {
        swap(world, seat);
    }
    wait(faults.stall).await;
    let is_started = world.truth().pad(seat).is_started();
    match (service.strip_prefix("shell,v2,raw:"), &faults.instead, shell) {
        _ if !is_started => hold(stream).await,
        (Some(_), None, Some(Shell::Hangs)) => hold(stream).await,
        (Some(_), None, Some(how)) => {
            stream.write_all(&[b"OKAY".to_vec(), frame(3, &[u8::from(how == Shell::Fails)])].concat()).await
        }
        (Some(script), None | Some(Instead::Drop), _) if is_old != Some(true) => {
            stream.write_all(b"OKAY").await?;
            run(world, stream, seat, (script, waits), &faults).await
        }
        _ => reply(&mut stream, "FAIL", "closed").await,
    }
}

/// Loses the word that a script waits for if a fault drops the connection.
async fn run(
    world: &World,
    stream: TcpStream,
    seat: Seat,
    (script, waits): (&str, bool),
    faults: &Faults,
) -> io::Result<()> {
    let drops = faults.instead.is_some();
    if drops && !waits {
        return Ok(());
    }
    let streams = [Stdio::piped(), Stdio::piped(), Stdio::piped()];
    let running = shell::start(world, seat, &format!("{READ}{script}"), streams).await;
    let mut running = running.map_err(io::Error::other)?;
    let (from, to) = stream.into_split();
    let (child, to) = (&mut running.child, Mutex::new(to));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let end = async {
        tokio::try_join!(send_output(1, stdout, &to), send_output(2, stderr, &to))?;
        child.wait().await
    };
    let ended = tokio::select! {
        status = end => status.map(Some),
        ended = feed(from, stdin, drops) => ended.map(|()| None),
    };
    let Ok(Some(status)) = ended else {
        running.hang_up().await;
        return ended.map(drop);
    };
    wait(faults.answer_stall).await;
    let status = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(137);
    let last = frame(3, &[status]);
    let sent = match faults.cut {
        None => &last,
        Some(Cut::HalfBody) => &last[..last.len() - 1],
        Some(_) => return Ok(()),
    };
    to.into_inner().write_all(sent).await?;
    let pad = world.truth().pad(seat).code.clone();
    world.journal.write(now(), "adb", json!({"pad": pad, "service": "the end of a shell"}));
    Ok(())
}

/// Returns when the client goes away, or when the connection is to break.
async fn feed(mut from: OwnedReadHalf, mut stdin: Option<ChildStdin>, drops: bool) -> io::Result<()> {
    loop {
        let mut head = [0; 5];
        from.read_exact(&mut head).await?;
        let [kind, length @ ..] = head;
        let mut data = vec![0; u32::from_le_bytes(length) as usize];
        from.read_exact(&mut data).await?;
        match (kind, &mut stdin) {
            _ if drops => return Ok(()),
            // The script may have ended.
            (0, Some(stdin)) => drop(stdin.write_all(&data).await),
            (4, _) => stdin = None,
            _ => {}
        }
    }
}

async fn send_output(kind: u8, output: Option<impl AsyncRead + Unpin>, to: &Mutex<OwnedWriteHalf>) -> io::Result<()> {
    let Some(mut output) = output else { return Ok(()) };
    let mut piece = [0; 4 << 10];
    loop {
        match output.read(&mut piece).await? {
            0 => return Ok(()),
            count => to.lock().await.write_all(&frame(kind, &piece[..count])).await?,
        }
    }
}

async fn hold(mut stream: TcpStream) -> io::Result<()> {
    while stream.read(&mut [0; 64]).await? > 0 {}
    Ok(())
}

async fn read_service(world: &World, stream: &mut TcpStream, seat: Option<Seat>) -> io::Result<String> {
    let mut digits = [0; 4];
    stream.read_exact(&mut digits).await?;
    let digits = std::str::from_utf8(&digits).map_err(io::Error::other)?;
    let mut service = vec![0; usize::from_str_radix(digits, 16).map_err(io::Error::other)?];
    stream.read_exact(&mut service).await?;
    let service = String::from_utf8(service).map_err(io::Error::other)?;
    let pad = seat.map(|seat| world.truth().pad(seat).code.clone());
    world.journal.write(now(), "adb", json!({"pad": pad, "service": service}));
    Ok(service)
}

async fn reply(stream: &mut TcpStream, word: &str, text: &str) -> io::Result<()> {
    stream.write_all(format!("{word}{:04x}{text}", text.len()).as_bytes()).await
}

fn frame(kind: u8, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&[kind], &length[..], data].concat()
}
