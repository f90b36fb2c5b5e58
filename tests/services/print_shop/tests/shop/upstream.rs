//! A printer behind real HTTP, whose answers take time that the clock of a test does not measure.

use print_shop::Shop;
use print_shop::contract::Contract;
use print_shop::machines::Machines;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolwarrant::contract::PermissionSet;
use toolwarrant::http::{HttpClient, HttpFailure, HttpLimits, Request, Url};
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Verdict, Write};
use toolwarrant::{BoxFuture, Service};
use toolwarrant_testing::{Tenant, serve};

const LIMITS: HttpLimits = HttpLimits { deadline: Duration::from_mins(2), largest_answer: 1_000 };

/// Longer than the test's clock needs for the deadline of a page.
const SLOWNESS: Duration = Duration::from_millis(100);

/// Prints a page for each POST, and answers each request with its counter.
async fn print_pages(listener: TcpListener) {
    let pages = Arc::new(AtomicUsize::new(0));
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, Arc::clone(&pages)));
    }
}

async fn answer(mut stream: TcpStream, pages: Arc<AtomicUsize>) {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    }
    tokio::time::sleep(SLOWNESS).await;
    let printed = usize::from(read.starts_with(b"POST"));
    let counter = (pages.fetch_add(printed, SeqCst) + printed).to_string();
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", counter.len());
    let _ = stream.write_all((head + &counter).as_bytes()).await;
}

struct FarPrinter {
    url: Url,
    http: HttpClient,
}

impl FarPrinter {
    async fn count(&self) -> Result<usize, Unreadable> {
        let request = Request::get(self.url.as_str()).body("").expect("a request");
        let answer = self.http.exchange(request, LIMITS).await.map_err(|why| Unreadable(why.to_string().into()))?;
        String::from_utf8_lossy(answer.body()).parse().map_err(|_| Unreadable("no number".into()))
    }
}

impl Executor for FarPrinter {
    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { self.count().await.map(|pages| pages.to_string()) })
    }

    fn send<'a>(&'a self, _: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async {
            let request = Request::post(self.url.as_str()).body("").expect("a request");
            match self.http.exchange_once(request, LIMITS, async { leave.confirm().is_ok() }).await {
                Ok(_) => Sent::Ok,
                Err(HttpFailure::TooLate) => Sent::NotSent("too late".into()),
                Err(why) => Sent::NoAnswer(why.to_string().into()),
            }
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async {
            let before = write.baseline.as_deref().and_then(|pages| pages.parse::<usize>().ok());
            let verdict = match (before, self.count().await) {
                (Some(before), Ok(pages)) if pages > before => Verdict::Present,
                (Some(_), Ok(_)) => Verdict::Absent,
                _ => Verdict::Unreadable,
            };
            Reading { verdict, expected: "a page more".into(), observed: "the counter".into() }
        })
    }
}

#[tokio::test]
async fn the_clock_of_a_test_waits_for_exchanges_with_an_upstream() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url: Url = format!("http://{}/", listener.local_addr().expect("an address")).parse().expect("a URL");
    tokio::spawn(print_pages(listener));
    let http = HttpClient::to(&url).expect("a client");
    let printer = Arc::new(FarPrinter { url, http });
    let home = TempDir::new().expect("a temporary folder");
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
