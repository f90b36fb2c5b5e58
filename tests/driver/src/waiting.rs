//! Waiting for what must come at some time, however busy the machine is.

use anyhow::{Result, bail};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(20);

/// Returns the error of the last look if there is no value in two minutes.
pub async fn wait_for<T>(mut look: impl AsyncFnMut() -> Result<T, String>) -> Result<T> {
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(found) => return Ok(found),
            Err(seen) if begun.elapsed() > PATIENCE => bail!("not in {PATIENCE:?}: {seen}"),
            Err(_) => sleep(PAUSE).await,
        }
    }
}
