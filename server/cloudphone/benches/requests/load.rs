//! Requests on many connections from one thread. It never sleeps during a load: the server would
//! have to wake it, and more often the slower it is. Start at [`load`].

use crate::server::Server;
use crate::wire::{self, Form, HEAD_END, PATIENCE, find};
use anyhow::{Context, Result, bail, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// When the reply has arrived: a slow server gets fewer requests.
    Closed,
    /// By a schedule. The wait of a request for a connection counts.
    PerSecond(u32),
}

pub(crate) struct Stream<'a> {
    pub(crate) requests: &'a dyn Fn() -> Vec<u8>,
    pub(crate) form: Form,
    pub(crate) connections: usize,
    pub(crate) pace: Pace,
}

pub(crate) struct Load {
    pub(crate) waits: Vec<Vec<Duration>>,
    pub(crate) cpu: Duration,
    pub(crate) span: Duration,
}

impl Load {
    pub(crate) fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.waits.iter().map(Vec::len).sum::<usize>() as f64
    }
}

/// Returns the wait, in µs, that this share of all waits does not exceed.
pub(crate) fn quantile(waits: &mut [Duration], share: f64) -> f64 {
    waits.sort_unstable();
    let at = (waits.len().saturating_sub(1) as f64 * share) as usize;
    waits.get(at).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e6)
}

/// Loads one server. Every reply must have the form of its stream.
pub(crate) fn load(server: &Server, streams: &[Stream<'_>], span: Duration) -> Result<Load> {
    load_all(&[server], streams, span, Duration::ZERO)
}

/// Divides connections evenly. Sleeps for `pause` when no reply is there, so that servers can use
/// the core of the load.
pub(crate) fn load_all(servers: &[&Server], streams: &[Stream<'_>], span: Duration, pause: Duration) -> Result<Load> {
    let lanes = streams.iter().map(|stream| Lane::connect(servers, stream)).collect::<Result<Vec<_>>>();
    let mut lanes = lanes.context("cannot connect")?;
    let cpu = || servers.iter().map(|server| server.cpu()).sum::<Result<Duration>>();
    let (used, begun) = (cpu()?, Instant::now());
    let until = begun + span;
    let mut open = true;
    while open || lanes.iter().any(Lane::waits_for_replies) {
        open = open && Instant::now() < until;
        ensure!(Instant::now() < until + PATIENCE, "there is no answer");
        let mut is_idle = true;
        for lane in &mut lanes {
            if open {
                lane.send(begun)?;
            }
            is_idle &= lane.read()? == 0;
        }
        if is_idle && !pause.is_zero() {
            sleep(pause);
        }
    }
    let cpu = cpu()?.saturating_sub(used);
    Ok(Load { waits: lanes.into_iter().map(|lane| lane.waits).collect(), cpu, span: begun.elapsed() })
}

struct Lane<'a> {
    stream: &'a Stream<'a>,
    clients: Vec<Client>,
    sent: u32,
    waits: Vec<Duration>,
}

impl<'a> Lane<'a> {
    fn connect(servers: &[&Server], stream: &'a Stream<'a>) -> Result<Self> {
        let clients = servers.iter().cycle().take(stream.connections).map(|server| Client::connect(server));
        let clients = clients.collect::<Result<_>>()?;
        Ok(Self { stream, clients, sent: 0, waits: Vec::new() })
    }

    fn waits_for_replies(&self) -> bool {
        self.clients.iter().any(|client| client.begun.is_some())
    }

    /// Uses connections in turn, because the server closes one that is idle for long.
    fn send(&mut self, start: Instant) -> Result<()> {
        let turn = self.sent as usize % self.clients.len().max(1);
        let (last, first) = self.clients.split_at_mut(turn);
        for client in first.iter_mut().chain(last).filter(|client| client.begun.is_none()) {
            let due = match self.stream.pace {
                Pace::Closed => Instant::now(),
                Pace::PerSecond(rate) => start + Duration::from_secs(1) * self.sent / rate,
            };
            if due > Instant::now() {
                break;
            }
            client.send(&(self.stream.requests)(), due)?;
            self.sent += 1;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<usize> {
        let before = self.waits.len();
        for client in &mut self.clients {
            self.waits.extend(client.read(&self.stream.form)?);
        }
        Ok(self.waits.len() - before)
    }
}

struct Client {
    stream: TcpStream,
    begun: Option<Instant>,
    reply: Vec<u8>,
    filled: usize,
    body: Option<(usize, usize)>,
}

impl Client {
    fn connect(server: &Server) -> Result<Self> {
        let stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, begun: None, reply: vec![0; 256 * 1024], filled: 0, body: None })
    }

    fn send(&mut self, request: &[u8], due: Instant) -> Result<()> {
        (self.begun, self.filled, self.body) = (Some(due), 0, None);
        Ok(self.stream.write_all(request)?)
    }

    fn read(&mut self, form: &Form) -> Result<Option<Duration>> {
        let Some(begun) = self.begun else { return Ok(None) };
        match self.stream.read(&mut self.reply[self.filled..]) {
            Ok(0) => bail!("the connection was closed"),
            Ok(more) => self.filled += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let reply = &self.reply[..self.filled];
        if self.body.is_none() {
            let Some(end) = find(reply, HEAD_END) else { return Ok(None) };
            let begins = end + HEAD_END.len();
            self.body = Some((begins, begins + wire::length_of(&reply[..begins]).context("a length")?));
        }
        let Some((begins, ends)) = self.body.filter(|(_, ends)| self.filled >= *ends) else { return Ok(None) };
        let waited = begun.elapsed();
        let sound = self.filled == ends && form.fits(&reply[..begins], &reply[begins..]);
        ensure!(sound, "another reply than before: {}", String::from_utf8_lossy(&reply[..self.filled.min(2_000)]));
        self.begun = None;
        Ok(Some(waited))
    }
}
