//! Lists and records that contradict each other, as no sound platform makes them. An id leads to
//! the right phone or to none.

use super::*;

/// A list, records of changed codes, and the phones that are shown then.
type Step = (&'static str, &'static str, &'static str);

const STORIES: &[(&str, &[Step])] = &[
    (
        "a code on another serial is another phone, and the one that had it is hidden until its serial is seen",
        &[
            ("A@1", "", "n-a=A"),
            ("A@2", "", "n-a-2=A"),
            ("A@2 B@1", "", "n-a=B n-a-2=A"),
            ("a@3 A@2 B@1", "", "n-a=B n-a-2=A n-a-3=a"),
        ],
    ),
    (
        "a code that two serials have in one list says nothing of either",
        &[
            ("A@1 B@2", "", "n-a=A n-b=B"),
            ("A@1 A@2", "", "n-b=B"),
            ("A@1 B@2", "", "n-a=A n-b=B"),
            ("C@1 C@2 C@3", "", "n-a=A n-b=B"),
        ],
    ),
    (
        "a serial that has two codes is none",
        &[("A@1 B@1", "", "n-a=A n-b=B"), ("A@1 B@1", "", "n-a=A n-b=B"), ("B@1", "", "n-a=A n-b=B")],
    ),
    (
        "a record moves an id to the new code, over several changes too, and once",
        &[
            ("A B", "", "n-a=A n-b=B"),
            ("C B", "A>C", "n-a=C n-b=B"),
            ("F B", "A>C C>D D>F", "n-a=F n-b=B"),
            ("F G A", "A>C C>D D>F B>G", "n-a=F n-a-2=A n-b=G"),
        ],
    ),
    (
        "a record whose old code is listed, or that contradicts another, moves nothing",
        &[
            ("A B C", "", "n-a=A n-b=B n-c=C"),
            ("A B C X", "A>X", "n-a=A n-b=B n-c=C n-x=X"),
            ("C X Y", "A>Y B>Y", "n-a=A n-b=B n-c=C n-x=X n-y=Y"),
            ("X Y P Q", "C>P C>Q P>C", "n-c=C n-p=P n-q=Q n-x=X n-y=Y"),
        ],
    ),
    (
        "a record is believed before a phone that is gone",
        &[
            ("A B", "", "n-a=A n-b=B"),
            ("A", "", "n-a=A n-b=B"),
            ("A", "", "n-a=A"),
            ("B", "A>B", "n-a=B"),
            ("", "", "n-a=B"),
            ("", "", ""),
            ("B", "", "n-a=B"),
        ],
    ),
    ("what no id can be made of is left out", &[("A A_B É", "", "n-a=A")]),
];

#[tokio::test]
async fn an_id_leads_to_no_other_phone_when_lists_and_records_contradict_each_other() {
    for (story, steps) in STORIES {
        let mut kept = TestLedger::new().await;
        for (list, recoded, expected) in *steps {
            kept.ledger.take(rows(list), records(recoded), kept.tick()).await;
            assert_eq!(describe(&kept.ledger), *expected, "{story}: `{list}`");
        }
        let before = describe(&kept.ledger);
        kept.restart().await;
        assert_eq!(describe(&kept.ledger), before, "{story}: after a restart");
    }
}
