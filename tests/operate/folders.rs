//! Data folders of other versions, and folders that change under a running program.

mod swapped;
mod unread;

use crate::harness::program::{Program, operate};
use rusqlite::Connection;

#[tokio::test]
async fn a_folder_whose_database_has_an_unknown_layout_is_refused_with_its_number_and_a_remedy() {
    let mut program = Program::start(&[]).await;
    let (data, _home) = (program.data.clone(), program.home.clone());
    program.stop().await;
    for (layout, remedy) in [(10, "start the program that wrote it"), (99, "start the newer program that wrote it")] {
        let database = Connection::open(data.join("cloudphone.db")).expect("a database");
        database.pragma_update(None, "user_version", layout).expect("written");
        drop(database);
        let (code, said) = operate(&data, "app list").await;
        assert!(code == 1 && said.contains(&format!("has layout {layout},")) && said.contains(remedy), "{said}");
    }
}
