//! The records of a trail and their times, and pruning.

use super::*;
use std::fs;
use std::time::Instant;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use toolwarrant_audit::Line;
use toolwarrant_audit::verify::{Scope, verify};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::random::Random;
use toolwarrant_memory::Memory;

/// 2026-07-28T12:00:00Z.
const NOON: Timestamp = Timestamp(1_785_240_000_000);

const PATIENCE: Duration = Duration::from_mins(1);

struct Kept {
    folder: TempDir,
    clock: Clock,
    store: Arc<Memory>,
}

impl Kept {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap(), clock: Clock::manual(NOON), store: Arc::default() }
    }

    async fn start(&self, options: AuditOptions) -> (Audit, JoinHandle<()>) {
        let keyring = KeyRing::new("test", &[7; 32], Random::System);
        let (clock, store) = (self.clock.clone(), self.store.clone());
        let (audit, keeper) = AuditKeeper::start(self.folder.path(), &keyring, clock, store, options).await.unwrap();
        (audit, tokio::spawn(keeper.run()))
    }

    fn put(&self, audit: &Audit) {
        let (time, request_id, application, key_id) = (self.clock.now(), "r", "app", "key");
        let (tool, target, arguments, outcome, calls) = ("print", None, None, "ok", 1);
        let (task_id, from) = (None, None);
        let line =
            Line { time, request_id, application, key_id, tool, target, arguments, outcome, task_id, from, calls };
        audit.reserve().unwrap().write(&line);
    }

    async fn read_recorded(&self) -> u64 {
        self.store.audit_anchor().await.unwrap().unwrap().newest.number
    }

    async fn days(&self, count: usize) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let entries = fs::read_dir(self.folder.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            if names.len() <= count {
                names.sort();
                return names;
            }
            assert!(begun.elapsed() < PATIENCE, "there are more than {count} days: {names:?}");
            tokio::task::yield_now().await;
        }
    }

    async fn put_and_flush(&self, audit: &Audit) {
        self.put(audit);
        let begun = Instant::now();
        while !audit.handle().flush().await {
            assert!(begun.elapsed() < PATIENCE, "the line is not in its file");
        }
    }
}

#[tokio::test]
async fn the_newest_seal_is_recorded_each_minute_and_at_the_stop() {
    let kept = Kept::new();
    let (audit, keeper) = kept.start(AuditOptions::default()).await;
    assert_eq!(kept.read_recorded().await, 0);
    kept.put_and_flush(&audit).await;
    assert_eq!(kept.read_recorded().await, 0, "not with every flush");
    kept.clock.advance(Duration::from_mins(1));
    kept.put_and_flush(&audit).await;
    let begun = Instant::now();
    while kept.read_recorded().await != 2 {
        assert!(begun.elapsed() < PATIENCE, "{} is recorded", kept.read_recorded().await);
        tokio::task::yield_now().await;
    }
    kept.put(&audit);
    audit.stop();
    keeper.await.expect("the last seal is recorded");
    assert_eq!(kept.read_recorded().await, 3);
}

#[tokio::test]
async fn size_is_bounded_within_a_day() {
    let kept = Kept::new();
    let (audit, keeper) = kept.start(AuditOptions { keep_bytes: 2_000_000, ..AuditOptions::default() }).await;
    let line = format!("{{\"filler\":\"{}\"}}", "x".repeat(8_000));
    for _ in 0..6 {
        (0..150).for_each(|_| assert!(audit.handle().write_json(kept.clock.now(), &line)));
        kept.put_and_flush(&audit).await;
        kept.clock.advance(Duration::from_mins(1));
        kept.put_and_flush(&audit).await;
    }
    kept.days(2).await;
    audit.stop();
    keeper.await.expect("the last seal is recorded");
    let (figures, key) =
        (retention::figures(kept.folder.path()).unwrap(), KeyRing::new("test", &[7; 32], Random::System));
    assert!(figures.files <= 2 && figures.bytes <= 2_000_000 + (1 << 20), "{figures:?}");
    let anchor = kept.store.audit_anchor().await.unwrap();
    let found = verify(kept.folder.path(), &key.chain_key(), anchor.as_ref(), Scope::All).unwrap();
    assert_eq!(found.faults, []);
}

#[tokio::test]
async fn size_is_bounded_from_the_start_and_age_after_an_hour() {
    let kept = Kept::new();
    for (date, bytes) in [("2026-01-01", 900), ("2026-01-02", 900), ("2026-07-27", 100)] {
        fs::write(kept.folder.path().join(format!("audit-{date}.jsonl")), vec![b'\n'; bytes]).unwrap();
    }
    let (audit, keeper) = kept.start(AuditOptions { keep_days: 90, keep_bytes: 1_000, without_address: false }).await;
    assert_eq!(kept.days(2).await, ["audit-2026-01-02.jsonl", "audit-2026-07-27.jsonl"]);
    kept.clock.advance(PRUNE_EVERY);
    assert_eq!(kept.days(1).await, ["audit-2026-07-27.jsonl"]);
    audit.stop();
    keeper.await.expect("the last seal is recorded");
}
