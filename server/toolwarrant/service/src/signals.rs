//! The signals of a program that serves.

use crate::hangup::HangupSignal;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

pub(crate) struct Signals {
    pub(crate) stop: StopSignals,
    pub(crate) hangup: HangupSignal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { stop: StopSignals::listen()?, hangup: HangupSignal::listen()? })
    }
}

/// SIGINT, SIGTERM, and for a bridge SIGHUP and the end of its input.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    pub(crate) hangup: Option<Signal>,
    pub(crate) input: Option<oneshot::Receiver<()>>,
}

impl StopSignals {
    fn listen() -> io::Result<Self> {
        // A write beyond the file size limit then fails, and does not end the process.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        Ok(Self { interrupt: interrupt?, terminate: terminate?, hangup: None, input: None })
    }

    /// Returns the reason. The end of the input is one only if it is the first.
    pub(crate) async fn next(&mut self) -> &'static str {
        let Self { interrupt, terminate, hangup, input } = self;
        let why = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            _ = async { hangup.as_mut()?.recv().await }, if hangup.is_some() => "SIGHUP",
            _ = async { Some(input.as_mut()?.await) }, if input.is_some() => INPUT_ENDED,
        };
        *input = None;
        why
    }
}

pub(crate) const INPUT_ENDED: &str = "its input has ended";
