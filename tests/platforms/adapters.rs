//! The suite that every adapter must pass, run on each adapter of the product, with a table of the
//! ends.

mod adb;
mod armcloud;
mod replicas;
mod simulated;

use adapter_suite::{CaseEnd, Double, Operation, run};
use std::sync::Arc;

/// Carries out all cases of these operations. No case may break a promise. Returns the table of
/// ends.
async fn table(double: Arc<dyn Double>, operations: &[Operation]) -> String {
    let rows = run(double, operations).await;
    let broken: Vec<&CaseEnd> = rows.iter().filter(|row| !row.violations.is_empty()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    rows.iter().map(|row| format!("{row}\n")).collect()
}
