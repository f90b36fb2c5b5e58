//! A service whose handlers forget the grants: the framework lets no id through that the
//! application may not see, however the handler makes its result.

mod contract {
    toolwarrant::contract!("../../tests/services/library/spec");
}

use crate::harness::shop::Mute;
use crate::harness::{Key, Server, Tenant, serve};
use crate::wire::hostile::{Log, listen};
use contract::*;
use serde_json::{Value, json};
use std::sync::Arc;
use toolwarrant::contract::PermissionSet;
use toolwarrant::handler::{Call, Caller, Flag, Granted, Grants, Reply, Resource, Target, Unresolved};
use toolwarrant::rendered::{ListWriter, Rendered};

/// The book `b-1` is on the shelf `s-1`, and the book `b-2` on the shelf `s-2`.
struct Library;

impl Resource<BookId> for Library {
    type View = Book;
    type Capability = BookCapability;

    async fn resolve(&self, _: &Caller, id: &BookId) -> Result<Book, Unresolved> {
        Ok(Book { book_id: id.clone() })
    }

    fn flag(_: &Book, BookCapability::Lend: BookCapability) -> Flag {
        Flag::Offered
    }
}

impl BooksTools for Library {
    async fn list_books(&self, _: &Call<'_>, _: ListBooksArgs) -> Result<Reply<Books>, ListBooksError> {
        Ok(Books { books: vec![book("b-1"), book("b-2")] }.into())
    }

    /// Confuses two books, and cannot find the book `lost`.
    async fn get_book(&self, _: &Call<'_>, _: &Target<Book>, args: GetBookArgs) -> Result<Reply<Book>, GetBookError> {
        if args.book_id.as_str() == "lost" {
            return Err(GetBookError::Internal("the card of\u{1b}[31m b-2 is torn".into()));
        }
        Ok(Book { book_id: book("b-2") }.into())
    }

    async fn show_hall(&self, call: &Call<'_>, args: ShowHallArgs) -> Result<Reply<Hall>, ShowHallError> {
        let ShowHallArgs { id, r#type: place, form } = args;
        let [mut shelf, mut desk] =
            [(); 2].map(|()| Shelf { shelf_id: shelf("s-1"), books: vec![], newest_book: None });
        let mut returned = None;
        match place {
            Place::Shelf => shelf.shelf_id = self::shelf(id.as_str()),
            Place::Listed => shelf.books = vec![book("b-1"), id],
            Place::Optional => shelf.newest_book = Some(id),
            Place::Nested => desk.books = vec![id],
            Place::Last => returned = Some(id),
        }
        let rest = Hall { shelves: Vec::new(), desk: Some(desk), last_returned: returned };
        Ok(match form {
            Form::Value => Hall { shelves: vec![shelf], ..rest }.into(),
            Form::Rendered => Rendered::of(&Hall { shelves: vec![shelf], ..rest }).reply(call),
            Form::Joined => {
                let mut joined = ListWriter::begin(call);
                joined.extend(&[&Rendered::of(&shelf)]);
                joined.finish(rest)
            }
        })
    }
}

fn book(id: &str) -> BookId {
    BookId::new(id).expect("an id")
}

fn shelf(id: &str) -> ShelfId {
    ShelfId::new(id).expect("an id")
}

/// Serves one application that sees `b-1` and `s-1`, and one that sees everything.
async fn library() -> (Server, [Key; 2]) {
    let few = Grants::nothing().with("book", Granted::some(["b-1"])).with("shelf", Granted::some(["s-1"]));
    let tenant = |grants| Tenant { grants, ..Tenant::with(PermissionSet(u64::MAX)) };
    let tenants = [few, Grants::everything()].map(tenant).into();
    let (server, keys) = serve(|_| (Contract(Arc::new(Library)), Arc::new(Mute)), tenants).await;
    (server, [keys[0][0].clone(), keys[1][0].clone()])
}

fn assert_internal(failure: &Value) {
    assert_eq!(failure["code"], "internal", "{failure}");
    let keys: Vec<_> = failure.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["code", "message", "retryable", "retry_after_seconds", "request_id"], "{failure}");
    assert!(!failure.to_string().contains("b-2"), "{failure}");
}

pub(crate) fn collect_log() -> (Log, impl Sized) {
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    (log, listen(lines))
}

#[tokio::test]
async fn a_handlers_fault_has_its_text_in_the_log_and_fixed_words_for_the_client() {
    let (log, logged) = collect_log();
    let (server, [_, all]) = library().await;
    let failure = server.call(&all, "get_book", json!({"book_id": "lost"})).await.expect_err("a fault");
    assert_internal(&failure);
    drop(logged);
    let request = failure["request_id"].as_str().expect("an id");
    let told = |line: &&str| line.contains("the card of b-2 is torn") && line.contains(request);
    assert_eq!(log.text().lines().filter(told).count(), 1, "{}", log.text());
    assert!(server.audit().await.contains("\"outcome\":\"internal\""));
}

#[tokio::test]
async fn a_list_that_forgets_the_grants_is_internal_and_shows_nothing() {
    let (log, logged) = collect_log();
    let (server, [few, all]) = library().await;
    let both = json!({"books": ["b-1", "b-2"]});
    for path in ["list_books", "get_book"] {
        let arguments = if path == "get_book" { json!({"book_id": "b-1"}) } else { json!({}) };
        assert_internal(&server.call(&few, path, arguments.clone()).await.expect_err("a foreign id"));
        server.call(&all, path, arguments).await.expect("it sees everything");
    }
    assert_eq!(server.call(&all, "list_books", json!({})).await, Ok(both.clone()));
    for path in ["/v1/books", "/v1/books/b-1"] {
        let refused = server.v1(&server.sign(&few, "GET", path)).await;
        assert_eq!(refused.status, 500, "{refused:?}");
        assert_internal(&refused.body);
        assert_eq!(server.v1(&server.sign(&all, "GET", path)).await.status, 200);
    }
    drop(logged);
    let why = "the result holds the book `b-2`, which is not granted to the application";
    assert_eq!(log.text().matches(why).count(), 4, "{}", log.text());
    let audit = server.audit().await;
    let line = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["outcome"].clone();
    assert_eq!(audit.lines().filter(|text| line(text) == "internal").count(), 4, "{audit}");
}

/// An id that the caller sends itself proves nothing.
#[tokio::test]
async fn an_id_is_checked_in_every_place_of_a_result_and_in_every_form_of_it() {
    let (server, [few, all]) = library().await;
    for place in Place::ALL {
        for form in Form::ALL {
            let granted = if *place == Place::Shelf { "s-1" } else { "b-1" };
            // A book's id is no grant of the shelf with the same id.
            for (id, shown) in [(granted, true), ("b-2", false), ("s-2", false), ("b-1", granted == "b-1")] {
                let arguments = json!({"id": id, "type": place, "form": form});
                let name = arguments.to_string();
                server.call(&all, "showHall", arguments.clone()).await.expect("it sees everything");
                match server.call(&few, "showHall", arguments).await {
                    Ok(hall) => assert!(shown && hall.to_string().contains(id), "{name}: {hall}"),
                    Err(failure) if shown => panic!("{name}: {failure}"),
                    Err(failure) => assert_internal(&failure),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_name_that_rust_would_not_take_is_the_name_on_the_wire() {
    let (server, [few, _]) = library().await;
    for (place, at) in [("optional", "/shelves/0/newestBook"), ("last", "/last-returned")] {
        let hall = server.call(&few, "showHall", json!({"id": "b-1", "type": place, "form": "JOINED"})).await;
        assert_eq!(hall.expect("a hall").pointer(at), Some(&json!("b-1")));
        let path = format!("/v1/hall?id=b-1&type={place}&form=value");
        let twin = server.v1(&server.sign(&few, "GET", &path)).await;
        assert_eq!(twin.body.pointer(at), Some(&json!("b-1")), "{twin:?}");
    }
    let refused = server.call(&few, "showHall", json!({"id": "b-1", "Type": "last", "form": "value"})).await;
    let message = refused.expect_err("a misspelt name")["message"].to_string();
    assert!(message.contains("`type` is required") && message.contains("`Type` is no argument"), "{message}");
}
