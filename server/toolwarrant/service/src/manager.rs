//! The service manager that started this program, such as systemd. It learns when requests are
//! answered, and that the program still lives. Without a manager, nothing is sent.

use sd_notify::NotifyState;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use std::{env, thread};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarrant_operator::metrics::ServiceStatus;

/// Does not wait for the manager: a message for which there is no room is lost.
///
/// A failure is not logged: the manager would notice it first.
pub(crate) fn tell(states: &[NotifyState<'_>]) {
    if let Some(messages) = &*MESSAGES {
        let lines: Vec<_> = states.iter().map(NotifyState::to_string).collect();
        let _ = messages.try_send(lines.join("\n"));
    }
}

/// Messages for the thread that sends them, and that a manager may keep waiting. `None` without a
/// manager.
static MESSAGES: LazyLock<Option<SyncSender<String>>> = LazyLock::new(|| {
    env::var_os("NOTIFY_SOCKET")?;
    let (sender, messages) = sync_channel::<String>(MESSAGES_MAX);
    let send = move || messages.iter().for_each(|text| drop(sd_notify::notify(&[NotifyState::Custom(&text)])));
    thread::Builder::new().name("manager".to_owned()).spawn(send).ok()?;
    Some(sender)
});

const MESSAGES_MAX: usize = 16;

pub(crate) fn tell_ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

pub(crate) fn tell_reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// Asks for more time until the returned value is dropped. `status` says for what.
pub(crate) fn extend_timeout(status: &'static str) -> JoinSet<()> {
    tell(&[NotifyState::Status(status)]);
    let extend = async {
        loop {
            tell(&[NotifyState::ExtendTimeoutUsec(EXTENSION_MICROS)]);
            sleep(EXTEND_EVERY).await;
        }
    };
    JoinSet::from_iter([extend])
}

const EXTENSION_MICROS: u32 = 60_000_000;

const EXTEND_EVERY: Duration = Duration::from_secs(10);

/// Reports that the program lives, twice in each interval of the manager's watchdog, as long as the
/// async runtime, the engine and the writer of the audit turn. They turn on a full disk as well.
pub(crate) fn keep_watchdog(status: Arc<ServiceStatus>) -> JoinSet<()> {
    let mut keeping = JoinSet::new();
    if let Some(interval) = sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero()) {
        keeping.spawn(async move {
            loop {
                match timeout(interval / 2, status.turn()).await {
                    Ok(()) => tell(&[NotifyState::Watchdog]),
                    Err(_) => {
                        tracing::error!(
                            "the engine or the writer of the audit stands still; the service manager may restart this"
                        )
                    }
                }
                sleep(interval / 2).await;
            }
        });
    }
    keeping
}
