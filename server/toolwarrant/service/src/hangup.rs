//! SIGHUP: the program reads or opens renewed files again, and continues to serve.
//!
//! A signal that is ignored at the start, as under `nohup`, stays ignored. Without its terminal,
//! the program stops as for SIGTERM, because Ctrl-C cannot reach it.

use crate::manager;
use sd_notify::NotifyState;
use std::fs;
use std::future::pending;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) struct HangupSignal {
    signal: Option<Signal>,
    had_terminal: bool,
}

impl HangupSignal {
    pub(crate) fn listen() -> io::Result<Self> {
        let signal = if is_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { signal, had_terminal: has_terminal() })
    }

    /// Returns the signal if it is not ignored. Then nothing is renewed at it.
    pub(crate) fn take_signal(&mut self) -> Option<Signal> {
        self.signal.take()
    }

    /// Calls `renew` at each signal. Ends when the terminal is gone.
    pub(crate) async fn renew(self, renew: impl Fn() + Send + Sync + 'static) {
        let (Self { signal, had_terminal }, renew) = (self, Arc::new(renew));
        let Some(mut signal) = signal else { return pending().await };
        while signal.recv().await.is_some() {
            if had_terminal && !has_terminal() {
                return tracing::info!("the terminal is gone, so the program stops");
            }
            manager::tell_reloading();
            let renew = Arc::clone(&renew);
            // One signal after the other, so that two threads never renew the same thing.
            match tokio::task::spawn_blocking(move || renew()).await {
                Ok(()) => tracing::info!("SIGHUP: looked for what was renewed on the disk"),
                Err(error) => tracing::error!(%error, "SIGHUP: what was renewed on the disk could not be read anew"),
            }
            manager::tell(&[NotifyState::Ready]);
        }
        pending().await
    }
}

fn has_terminal() -> bool {
    io::stdout().is_terminal() || io::stderr().is_terminal()
}

/// Returns true if SIGHUP was ignored at the start. Only Linux reports this without unsafe code.
fn is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (SignalKind::hangup().as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn each_signal_renews_also_after_a_renewal_that_has_failed() {
        let hangup = HangupSignal::listen().unwrap();
        if hangup.signal.is_none() {
            return eprintln!("not tried: SIGHUP is ignored here");
        }
        let (renewed, mut all) = mpsc::unbounded_channel();
        let renew = move || {
            renewed.send(()).unwrap();
            panic!("on purpose");
        };
        let renewing = tokio::spawn(hangup.renew(renew));
        for _ in 0..2 {
            kill_process(getpid(), Signal::HUP).unwrap();
            all.recv().await.unwrap();
        }
        renewing.abort();
    }
}
