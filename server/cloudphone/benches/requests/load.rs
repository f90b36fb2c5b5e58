//! Requests on many connections from one thread. Without a pause it never sleeps during a load: the
//! server would have to wake it, and more often the slower it is. Start at [`load`].

use crate::server::Server;
use crate::wire::{self, Form, HEAD_END, PATIENCE, find};
use anyhow::{Context, Result, bail, ensure};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) struct Stream<'a> {
    pub(crate) requests: &'a dyn Fn() -> Vec<u8>,
    pub(crate) form: Form,
    pub(crate) connections: usize,
}

pub(crate) struct Load {
    pub(crate) waits: Vec<Duration>,
    pub(crate) cpu: Duration,
    pub(crate) span: Duration,
}

impl Load {
    pub(crate) fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.waits.len() as f64
    }
}

/// Returns the wait, in µs, that this share of all waits does not exceed.
pub(crate) fn quantile(waits: &mut [Duration], share: f64) -> f64 {
    waits.sort_unstable();
    let at = (waits.len().saturating_sub(1) as f64 * share) as usize;
    waits.get(at).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e6)
}

/// Sends a connection's next request when the reply has arrived. Every reply must have the form of
/// the stream. Sleeps for `pause` when no reply is there, so that servers can use the core of the
/// load.
pub(crate) fn load(server: &Server, stream: &Stream<'_>, span: Duration, pause: Duration) -> Result<Load> {
    let clients = (0..stream.connections).map(|_| Client::connect(server)).collect::<Result<Vec<_>>>();
    let (mut clients, mut waits) = (clients.context("cannot connect")?, Vec::new());
    let (used, begun) = (server.cpu()?, Instant::now());
    let until = begun + span;
    let mut open = true;
    while open || clients.iter().any(|client| client.begun.is_some()) {
        open = open && Instant::now() < until;
        ensure!(Instant::now() < until + PATIENCE, "there is no answer");
        let before = waits.len();
        for client in &mut clients {
            if open && client.begun.is_none() {
                client.send(&(stream.requests)())?;
            }
            waits.extend(client.read(&stream.form)?);
        }
        if waits.len() == before && !pause.is_zero() {
            sleep(pause);
        }
    }
    let cpu = server.cpu()?.saturating_sub(used);
    Ok(Load { waits, cpu, span: begun.elapsed() })
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

    fn send(&mut self, request: &[u8]) -> Result<()> {
        (self.begun, self.filled, self.body) = (Some(Instant::now()), 0, None);
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
