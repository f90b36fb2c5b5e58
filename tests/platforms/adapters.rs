//! The suite that every adapter passes, on each that the product has; and how each case ends there.

mod armcloud;
mod simulated;

use adapter_suite::{CaseEnd, Double, Operation, run};
use std::sync::Arc;

/// Carries out all cases of these operations. None may break a promise; the table says how each ends.
async fn table(double: Arc<dyn Double>, operations: &[Operation]) -> String {
    let rows = run(double, operations).await;
    let broken: Vec<&CaseEnd> = rows.iter().filter(|row| !row.violations.is_empty()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    rows.iter().map(|row| format!("{row}\n")).collect()
}
