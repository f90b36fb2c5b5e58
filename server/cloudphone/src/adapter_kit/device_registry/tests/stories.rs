//! One case after another: the lists of the platform, and the codes to which ids then lead.

use super::*;

/// An event, and what is shown after it.
enum Step {
    /// A list, with records of changed codes.
    List(&'static str, &'static str, &'static str),
    /// A reading of one phone.
    Note(&'static str, &'static str, &'static str),
    Restart(&'static str),
}
use Step::{List, Note, Restart};

const STORIES: &[(&str, &[Step])] = &[
    (
        "a seat that shows another code keeps its id",
        &[
            List("AC1@1 AC2@2", "", "n-ac1=AC1 n-ac2=AC2"),
            List("AC9@1 AC2@2", "", "n-ac1=AC9 n-ac2=AC2"),
            Restart("n-ac1=AC9 n-ac2=AC2"),
            Note("AC7@2", "", "n-ac1=AC9 n-ac2=AC7"),
            Restart("n-ac1=AC9 n-ac2=AC7"),
        ],
    ),
    (
        "seats that swap their codes keep their ids",
        &[
            List("A@1 B@2", "", "n-a=A n-b=B"),
            List("B@1 A@2", "", "n-a=B n-b=A"),
            Note("A@1", "", "n-a=A"),
            Note("B@2", "", "n-a=A n-b=B"),
        ],
    ),
    (
        "a code on another seat is another phone, and the one that had it is hidden until its seat is seen",
        &[
            List("A@1", "", "n-a=A"),
            List("A@2", "", "n-a-2=A"),
            Restart("n-a-2=A"),
            List("A@2 B@1", "", "n-a=B n-a-2=A"),
            List("a@3 A@2 B@1", "", "n-a=B n-a-2=A n-a-3=a"),
        ],
    ),
    (
        "a code that two seats have in one list says nothing of either",
        &[
            List("A@1 B@2", "", "n-a=A n-b=B"),
            List("A@1 A@2", "", "n-b=B"),
            List("A@1 B@2", "", "n-a=A n-b=B"),
            List("C@1 C@2 C@3", "", "n-a=A n-b=B"),
        ],
    ),
    (
        "a seat that has two codes is none",
        &[List("A@1 B@1", "", "n-a=A n-b=B"), List("A@1 B@1", "", "n-a=A n-b=B"), List("B@1", "", "n-a=A n-b=B")],
    ),
    (
        "a phone that a seat is learned of keeps its id",
        &[List("A", "", "n-a=A"), List("A@1", "", "n-a=A"), List("B@1", "", "n-a=B"), List("B", "", "n-a=B")],
    ),
    (
        "a phone is gone when two lists in a row lack it, and has its id again when it is back",
        &[
            List("A@1 B", "", "n-a=A n-b=B"),
            List("B", "", "n-a=A n-b=B"),
            List("A@1 B", "", "n-a=A n-b=B"),
            List("B", "", "n-a=A n-b=B"),
            Note("A@1", "", "n-a=A n-b=B"),
            List("B", "", "n-a=A n-b=B"),
            List("B", "", "n-b=B"),
            Restart("n-b=B"),
            List("A@2", "", "n-a-2=A n-b=B"),
            List("C@1", "", "n-a=C n-a-2=A"),
        ],
    ),
    (
        "a record moves an id to the new code, over several changes too, and once",
        &[
            List("A B", "", "n-a=A n-b=B"),
            List("C B", "A>C", "n-a=C n-b=B"),
            List("C B", "A>C", "n-a=C n-b=B"),
            List("F B", "A>C C>D D>F", "n-a=F n-b=B"),
            Restart("n-a=F n-b=B"),
            List("F G A", "A>C C>D D>F B>G", "n-a=F n-a-2=A n-b=G"),
            Note("H", "G>H", "n-a=F n-a-2=A n-b=H"),
        ],
    ),
    (
        "a record whose old code is listed, or that contradicts another, moves nothing",
        &[
            List("A B C", "", "n-a=A n-b=B n-c=C"),
            List("A B C X", "A>X", "n-a=A n-b=B n-c=C n-x=X"),
            List("C X Y", "A>Y B>Y", "n-a=A n-b=B n-c=C n-x=X n-y=Y"),
            List("X Y P Q", "C>P C>Q P>C", "n-c=C n-p=P n-q=Q n-x=X n-y=Y"),
        ],
    ),
    (
        "a record is believed before a phone that is gone",
        &[
            List("A B", "", "n-a=A n-b=B"),
            List("A", "", "n-a=A n-b=B"),
            List("A", "", "n-a=A"),
            List("B", "A>B", "n-a=B"),
            List("", "", "n-a=B"),
            List("", "", ""),
            List("B", "", "n-a=B"),
        ],
    ),
    ("what no id can be made of is left out", &[List("A A_B É", "", "n-a=A"), List(LONG, "", "n-a=A")]),
];

/// A code that is one character too long with `n-` before it.
const LONG: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

#[tokio::test]
async fn an_id_stays_with_its_phone() {
    for (story, steps) in STORIES {
        let mut kept = TestRegistry::new();
        for (n, step) in steps.iter().enumerate() {
            let began = kept.tick();
            let expected = match step {
                List(told, recoded, expected) => {
                    kept.registry.take(rows(told), records(recoded), began).await;
                    expected
                }
                Note(row, recoded, expected) => {
                    kept.registry.note(parse_row(row), records(recoded), began).await;
                    expected
                }
                Restart(expected) => {
                    kept.restart();
                    expected
                }
            };
            assert_eq!(describe(&kept.registry), *expected, "{story}: step {}", n + 1);
        }
    }
}

#[tokio::test]
async fn an_older_list_overwrites_nothing_that_was_read_later() {
    let kept = TestRegistry::new();
    let first = kept.tick();
    kept.registry.take(rows("A@1 B@2 C"), Vec::new(), first).await;
    let (list, note) = (kept.tick(), kept.tick());
    kept.registry.note(parse_row("D@1"), Vec::new(), note).await;
    kept.registry.note(parse_row("E"), records("C>E"), note).await;
    kept.registry.note(parse_row("A@2"), Vec::new(), note).await;
    kept.registry.take(rows("A@1 B@2 C"), Vec::new(), list).await;
    assert_eq!(describe(&kept.registry), "n-a=D n-b=A n-c=E");
    kept.registry.take(rows(""), Vec::new(), first).await;
    kept.registry.take(rows(""), Vec::new(), first).await;
    assert_eq!(describe(&kept.registry), "n-a=D n-b=A n-c=E");
    assert_eq!(kept.registry.age(), Some(Duration::from_secs(1)));
}

#[tokio::test]
async fn pages_continue_after_an_id_even_if_its_phone_is_gone() {
    let kept = TestRegistry::new();
    kept.registry.take(rows("A C E"), Vec::new(), kept.tick()).await;
    let after = |id: Option<&str>, limit| {
        let id = id.map(|id| DeviceId::new(id).ok().unwrap());
        let page = page(&kept.registry, id.as_ref(), limit);
        page.iter().map(|phone| phone.id.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(after(None, 2), "n-a n-c");
    assert_eq!(after(Some("n-a"), 9), "n-c n-e");
    assert_eq!(after(Some("n-b"), 1), "n-c");
    assert_eq!(after(Some("n-e"), 9), "");
}

#[tokio::test]
async fn phones_that_are_left_out_are_counted() {
    let kept = TestRegistry::new();
    kept.registry.take(rows("A A_B É"), Vec::new(), kept.tick()).await;
    assert_eq!((kept.registry.count(), kept.registry.book.lock().await.left_out), (1, 2));
    kept.registry.note(parse_row("A"), Vec::new(), kept.tick()).await;
    assert_eq!(kept.registry.book.lock().await.left_out, 2);
}

#[tokio::test]
async fn a_list_is_puzzling_if_it_has_an_unknown_phone_and_lacks_a_known_one() {
    let kept = TestRegistry::new();
    assert!(!kept.registry.is_puzzled_by(&rows("A B")).await);
    kept.registry.take(rows("A B@1"), Vec::new(), kept.tick()).await;
    for (list, puzzles) in
        [("A B@1", false), ("A B@1 C", false), ("A", false), ("C B@1", true), ("A C", true), ("A C@2", false)]
    {
        assert_eq!(kept.registry.is_puzzled_by(&rows(list)).await, puzzles, "{list}");
    }
    let mut list = rows("A C D@2");
    kept.registry.withhold_strangers(&mut list).await;
    assert_eq!(list, rows("A D@2"));
}
