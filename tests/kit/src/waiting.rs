//! Waiting for what must come at some time, however busy the machine is.

use anyhow::{Context, Result};
use std::time::Duration;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(20);

/// Returns the error of the last look if there is no value in two minutes, also if a look never
/// ends.
pub async fn wait_for<T>(mut look: impl AsyncFnMut() -> Result<T, String>) -> Result<T> {
    let mut seen = "the first look does not end".to_owned();
    let looking = async {
        loop {
            match look().await {
                Ok(found) => break found,
                Err(other) => seen = other,
            }
            sleep(PAUSE).await;
        }
    };
    let found = timeout(PATIENCE, looking).await;
    found.ok().with_context(|| format!("not in {PATIENCE:?}: {seen}"))
}
