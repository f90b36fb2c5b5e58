//! The suite that every adapter passes, on each that the product has; and how each case ends there.

mod simulated;

use adapter_suite::{Double, Row, run};
use std::sync::Arc;

/// Carries out all cases. None may break a promise; the table says how each ends.
async fn table(double: Arc<dyn Double>) -> String {
    let rows = run(double).await;
    let broken: Vec<&Row> = rows.iter().filter(|row| !row.violations.is_empty()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    rows.iter().map(|row| format!("{row}\n")).collect()
}
