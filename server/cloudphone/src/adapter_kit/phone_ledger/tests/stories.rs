//! Lists that contradict each other, as no sound platform makes them. An id leads to the right
//! phone or to none.

use super::*;

/// A list, and the phones that are shown then.
type Step = (&'static str, &'static str);

const STORIES: &[(&str, &[Step])] = &[
    (
        "a code on another serial is another phone, and the one that had it is hidden until its serial is seen",
        &[("A@1", "n-a=A"), ("A@2", "n-a-2=A"), ("A@2 B@1", "n-a=B n-a-2=A"), ("a@3 A@2 B@1", "n-a=B n-a-2=A n-a-3=a")],
    ),
    (
        "a code that two serials have in one list says nothing of either",
        &[("A@1 B@2", "n-a=A n-b=B"), ("A@1 A@2", "n-b=B"), ("A@1 B@2", "n-a=A n-b=B"), ("C@1 C@2 C@3", "n-a=A n-b=B")],
    ),
    (
        "a serial that has two codes is none",
        &[("A@1 B@1", "n-a=A n-b=B"), ("A@1 B@1", "n-a=A n-b=B"), ("B@1", "n-a=A n-b=B")],
    ),
    (
        "a phone that is gone keeps its id, and one without a serial whose code changes is another one",
        &[("A B", "n-a=A n-b=B"), ("A C", "n-a=A n-b=B n-c=C"), ("A C", "n-a=A n-c=C"), ("B C", "n-a=A n-b=B n-c=C")],
    ),
    ("what no id can be made of is left out", &[("A A_B É", "n-a=A")]),
];

#[tokio::test]
async fn an_id_leads_to_no_other_phone_when_lists_contradict_each_other() {
    for (story, steps) in STORIES {
        let mut kept = TestLedger::new().await;
        for (list, expected) in *steps {
            assert_eq!(kept.take(list).await, *expected, "{story}: `{list}`");
        }
        let before = describe(&kept.ledger);
        kept.restart().await;
        assert_eq!(describe(&kept.ledger), before, "{story}: after a restart");
    }
}

#[tokio::test]
async fn a_reading_that_began_before_a_code_was_given_up_brings_no_phone_back_under_it() {
    let kept = TestLedger::new().await;
    assert_eq!(kept.take("A@1").await, "n-a=A");
    let began = kept.tick();
    kept.ledger.note(parse_row("B@1"), kept.tick()).await;
    kept.ledger.take(rows("A@2"), began).await;
    assert_eq!(describe(&kept.ledger), "n-a=B");
    assert_eq!(kept.take("B@1 A@2").await, "n-a=B n-a-2=A");
}
