//! Helpers of verbs that measure a program from outside: the program, a key with a large budget,
//! and the check of requests.

use crate::cargo::{cargo, step};
use anyhow::{Context, Result, ensure};
use driver::{Instance, KeyPair};
use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time in which a request must be answered.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The flags of a program that is monitored.
pub(crate) const WATCHED: [&str; 2] = ["--admin-listen", "127.0.0.1:0"];

/// Returns the given program of a package, or builds an optimised one with this name.
pub(crate) fn program(root: &Path, given: Option<&Path>, name: &str) -> Result<PathBuf> {
    if let Some(given) = given {
        return given.canonicalize().with_context(|| given.display().to_string());
    }
    step(cargo(root), &["build", "--release", "--locked", "--package", name, "--bin", name])?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target));
    Ok(target.join("release").join(name))
}

/// Makes an application with this name, and a key for it that sees all devices.
pub(crate) async fn key(serving: &Instance, name: &str) -> Result<KeyPair> {
    let operator = &serving.operator;
    let budget = ["--requests-per-minute", "4000000000"];
    operator
        .json(["app", "create", name, "--permission", "device", "--permission", "stream"].into_iter().chain(budget))
        .await?;
    operator.json(["device", "assign", name, "--all"]).await?;
    operator.key(name).await
}

/// Sends a request on its own connection, and requires an answer with status 200.
pub(crate) async fn exchange(address: SocketAddr, request: &str) -> Result<()> {
    let answer = driver::exchange(address, request.as_bytes()).await?;
    ensure!(answer.status == 200, "status {}", answer.status);
    Ok(())
}

/// Returns the value below which this share of the values lies. The values are in ascending order.
pub(crate) fn quantile(ascending: &[f64], share: f64) -> f64 {
    ascending.get((ascending.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn the_quantile_of_an_empty_list_is_not_a_number() {
        let hundred: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!([0.5, 0.99].map(|share| quantile(&hundred, share)), [50.0, 99.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
