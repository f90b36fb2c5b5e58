//! A printer whose answers take time that the clock of a test does not measure.

use print_shop::Shop;
use print_shop::contract::Contract;
use print_shop::machines::Machines;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::sleep;
use toolwarrant::contract::PermissionSet;
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Verdict, Write};
use toolwarrant::{BoxFuture, Service};
use toolwarrant_testing::{Tenant, serve};

/// Longer than the test's clock needs for the deadline of a page.
const SLOWNESS: Duration = Duration::from_millis(100);

/// Counts its pages.
#[derive(Default)]
struct FarPrinter(AtomicUsize);

impl Executor for FarPrinter {
    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async {
            sleep(SLOWNESS).await;
            Ok(self.0.load(SeqCst).to_string())
        })
    }

    fn send<'a>(&'a self, _: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            sleep(SLOWNESS).await;
            leave.confirm().map_or_else(Sent::NotSent, |()| {
                self.0.fetch_add(1, SeqCst);
                Sent::Ok
            })
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async {
            sleep(SLOWNESS).await;
            let is_same = write.baseline == Some(self.0.load(SeqCst).to_string());
            let verdict = if is_same { Verdict::Absent } else { Verdict::Present };
            Reading { verdict, expected: "a page more".into(), observed: "the counter".into() }
        })
    }
}

#[tokio::test]
async fn the_clock_of_a_test_waits_for_exchanges_with_an_upstream() {
    let home = TempDir::new().expect("a temporary folder");
    let printer = Arc::new(FarPrinter::default());
    let (server, keys) = serve(
        |_| Service::with_executor(Contract(Arc::new(Shop::new(Machines::default()))), printer),
        vec![Tenant::with(PermissionSet(u64::MAX))],
        home.path().to_owned(),
    )
    .await;
    let key = &keys[0][0];
    for _ in 0..2 {
        let page = json!({"printer_id": "p-1", "mode": "draft"});
        let job = server.call(key, "print_page", page).await.expect("a job");
        let job = server.end(key, "get_job", &job).await;
        assert_eq!(job["status"], "success", "{job}");
    }
}
