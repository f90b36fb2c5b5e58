//! The names of applications, and the creation of the first one.

use crate::harness::program::{Program, json_of, key_of, operate, says};
use crate::harness::writes::open_database;
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

#[tokio::test]
async fn an_application_can_be_made_before_the_first_start() {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let data = home.path().join("data");
    for refused in ["app list", "key create demo", "doctor"] {
        says(&data, refused, 4, "`cloudphone app create`").await;
        assert!(!data.exists(), "{refused}");
    }
    json_of(&data, "app create first --permission device").await;
    json_of(&data, "device assign first phone-0000001").await;
    let key = key_of(&data, "first").await;
    let program = Program::start_at(home, &[]).await;
    assert_eq!(program.status(&key).await, 200);
    assert!(program.keys.is_empty(), "it begins with what is there");
}

/// Data folders of earlier versions can have such names.
#[tokio::test]
async fn a_folder_with_names_that_can_no_longer_be_given_opens_and_the_doctor_tells() {
    let program = Program::start_and_stop().await;
    let data = program.data.clone();
    let apps = json_of(&data, "app list").await;
    let id = |name: &str| {
        let rows = apps.as_array().expect("a list");
        rows.iter().find(|row| row["name"] == name).expect("it is there")["id"].as_str().expect("text").to_owned()
    };
    let (demo, read) = (id("demo"), id("demo-read"));
    // One application is named like the other's id; a third one has a colour code in its name.
    json_of(&data, "app create third --permission stream").await;
    let db = open_database(&data);
    let rename = "UPDATE application SET name = ?2 WHERE name = ?1";
    assert_eq!(db.execute(rename, ["demo-read", &demo]).expect("SQL"), 1);
    assert_eq!(db.execute(rename, ["third", "\u{1b}[31mred"]).expect("SQL"), 1);
    drop(db);

    let mut program = program.again(&[]).await;
    for running in [true, false] {
        if !running {
            program.stop().await;
        }
        assert_eq!(json_of(&data, &format!("app show {demo}")).await["name"], "demo", "an id is nobody's name");
        assert_eq!(json_of(&data, &format!("app show {read}")).await["name"], json!(demo));
        let (_, listed) = operate(&data, "app list").await;
        assert!(listed.contains("red") && !listed.contains('\u{1b}'), "{listed:?}");
        let (code, said) = operate(&data, "doctor --json").await;
        let told: Value = serde_json::from_str(&said).expect("JSON");
        let found: Vec<_> = told["faults"].as_array().expect("faults").iter().map(|fault| &fault["check"]).collect();
        assert_eq!((code, found), (1, vec![&json!("names"); 2]), "{said}");
    }
    json_of(&data, &format!("app rename {read} demo-read")).await;
    let red = json_of(&data, "app list").await;
    let red = red.as_array().expect("a list").iter().find(|row| row["name"] == "\u{1b}[31mred").expect("it is there");
    json_of(&data, &format!("app rename {} third", red["id"].as_str().expect("text"))).await;
    assert_eq!(json_of(&data, "doctor").await["healthy"], true);
}
