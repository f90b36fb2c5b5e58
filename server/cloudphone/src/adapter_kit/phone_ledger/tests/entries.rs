//! The entries that are left when a process ends.

use super::*;

#[tokio::test]
async fn an_entry_is_written_only_when_ids_or_members_change() {
    let kept = TestLedger::new().await;
    for (list, writes) in [
        ("A@1 B", 1),
        ("A@1 B", 0),
        ("A@1", 0),
        ("A@1", 1),
        ("A@1", 0),
        ("C@1", 1),
        ("C@1 D", 1),
        ("C@1 D@2", 1),
        ("C@1 D", 0),
    ] {
        kept.take(list).await;
        assert_eq!(kept.store.writes.swap(0, Relaxed), writes, "{list}");
    }
}

#[tokio::test]
async fn a_phone_whose_entry_is_damaged_keeps_its_id_and_another_one_never_gets_it() {
    let sound = {
        let kept = TestLedger::new().await;
        kept.take("A@1 B").await;
        kept.entry("n-b").await
    };
    for damaged in [
        String::new(),
        sound[..sound.len() / 2].to_owned(),
        sound.replace("\"known\"", "\"knows\""),
        sound.replace("\"serial\":null", "\"serial\":\"1\""),
        sound.replace("\"code\":\"B\",\"read", "\"code\":\"A\",\"read"),
        sound.replace("\"code\":\"B\",\"read", "\"code\":\"C\",\"read"),
    ] {
        assert_ne!(damaged, sound);
        let mut kept = TestLedger::new().await;
        kept.take("A@1 B").await;
        kept.put_entry("n-b", &damaged).await;
        kept.restart().await;
        assert_eq!(describe(&kept.ledger), "n-a=A", "{damaged}");
        assert_eq!(kept.take("A@1 B").await, "n-a=A n-b-2=B");
        assert_eq!(kept.ledger.own_address(&id("n-b")), Some(OwnAddress::Unread));
        assert_eq!(kept.entry("n-b").await, damaged, "it is left for who looks into it");
        kept.restart().await;
        assert_eq!(describe(&kept.ledger), "n-a=A n-b-2=B");
    }
}

#[tokio::test]
async fn ids_outlive_a_damaged_entry_of_the_account_and_what_is_not_proven_counts_as_such() {
    let mut kept = TestLedger::new().await;
    kept.take("A@1").await;
    kept.ledger.set_proof(None, Direction::Exit, Some("k".into())).await.unwrap();
    kept.put_entry("n", "{").await;
    kept.restart().await;
    assert_eq!((describe(&kept.ledger).as_str(), kept.ledger.is_known()), ("n-a=A", false));
    assert!(!kept.ledger.is_proven(None, Direction::Exit, "k"));
    kept.take("A@1").await;
    kept.restart().await;
    assert!(kept.ledger.is_known());
}

#[tokio::test]
async fn a_phone_whose_id_cannot_be_stored_is_not_shown_until_it_is() {
    let mut kept = TestLedger::new().await;
    kept.take("A@1 B@2").await;
    kept.store.refuses.store(true, Relaxed);
    assert_eq!(kept.take("C@1 B@2 D@3").await, "n-a=C n-b=B");
    assert!(kept.ledger.learn(Some(&id("n-b")), |known| known.exit = Some("k".into())).await.is_err());
    assert!(!kept.ledger.is_proven(Some(&id("n-b")), Direction::Exit, "k"), "it did not count");
    kept.store.refuses.store(false, Relaxed);
    kept.ledger.note(parse_row("B@2"), kept.tick()).await;
    assert_eq!(describe(&kept.ledger), "n-a=C n-b=B n-d=D");
    kept.restart().await;
    assert_eq!(describe(&kept.ledger), "n-a=C n-b=B n-d=D");
    assert!(!kept.ledger.is_proven(Some(&id("n-b")), Direction::Exit, "k"));
}

#[tokio::test]
async fn rows_are_not_current_after_a_restart_and_pages_go_on_where_a_phone_is_gone() {
    let mut kept = TestLedger::new().await;
    kept.take("A C E").await;
    // The clock of the next process may show an earlier time.
    kept.clock = Clock::manual(Timestamp(500_000));
    kept.restart().await;
    let after: Vec<_> = page(&kept.ledger, Some(&id("n-b")), 9);
    assert_eq!(after.iter().map(|phone| phone.id.as_str()).collect::<Vec<_>>(), ["n-c", "n-e"]);
    assert!(after.iter().all(|phone| !is_current(phone.read_at, kept.clock.now())));
    assert!(kept.ledger.age() > Some(SHOWN_FOR));
}

#[tokio::test]
async fn what_was_learned_outlives_the_process_and_is_of_one_phone_under_one_identity() {
    let mut kept = TestLedger::new().await;
    kept.take("A@1 B@2").await;
    let ([a, b], address) = (["n-a", "n-b"].map(id), OwnAddress::Read("192.0.2.1".parse().unwrap()));
    assert!(kept.ledger.learn(Some(&id("n-c")), |_| ()).await.is_err(), "no phone has this id");
    for identity in ["R58", "R59"] {
        kept.ledger.set_proof(Some(&a), Direction::Start, Some(identity.into())).await.unwrap();
    }
    kept.ledger.set_proof(None, Direction::Exit, Some("key".into())).await.unwrap();
    kept.ledger.learn(Some(&a), move |known| known.own_address = Some(address)).await.unwrap();
    for _ in 0..2 {
        let proven = |id, direction, identity| kept.ledger.is_proven(id, direction, identity);
        assert!(proven(Some(&a), Direction::Start, "R59") && proven(None, Direction::Exit, "key"));
        assert!(!proven(Some(&a), Direction::Start, "R58") && !proven(Some(&a), Direction::Exit, "R59"));
        assert!(!proven(Some(&b), Direction::Start, "R59") && !proven(None, Direction::Exit, "other"));
        assert_eq!(kept.ledger.own_address(&a), Some(address));
        kept.restart().await;
    }
    // The phone is gone, comes back, and has a new code.
    for list in ["B@2", "B@2", "C@1 B@2"] {
        kept.take(list).await;
        assert_eq!(kept.ledger.own_address(&a), Some(address));
    }
    kept.ledger.set_proof(Some(&a), Direction::Start, None).await.unwrap();
    kept.restart().await;
    assert!(!kept.ledger.is_proven(Some(&a), Direction::Start, "R59"));
    assert_eq!(describe(&kept.ledger), "n-a=C n-b=B");
}
