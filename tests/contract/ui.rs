//! The compiler's messages for a maintainer: each file of `ui/` must fail with the output in its
//! snapshot.

use crate::house::root;
use crate::services::outside::outside;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

#[tokio::test]
async fn mistakes_in_handlers_and_contracts_are_compile_errors_that_say_what_to_do() {
    let mut said = BTreeMap::<_, String>::new();
    for file in fs::read_dir(root().join("tests/contract/ui")).expect("a folder").flatten() {
        if let Some(name) = file.file_name().to_str().and_then(|name| name.strip_suffix(".rs")) {
            said.insert(name.to_owned(), String::new());
        }
    }
    for error in &outside().await.errors {
        let name = error["target"]["name"].as_str().expect("a name");
        *said.get_mut(name).expect("a file of the folder") += &words(&error["message"]);
    }
    for (name, said) in said {
        assert!(!said.is_empty(), "{name} compiles");
        insta::assert_snapshot!(name, said.replace(&root().display().to_string(), "WORKSPACE"));
    }
}

/// Leaves out the code that the compiler shows beside its words, and the numbers of lines, which
/// change with every edit above them.
fn words(error: &Value) -> String {
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut words = format!("error: {}\n", text(&error["message"]));
    for mut span in all(&error["spans"]) {
        let label = span["label"].take();
        // Of a macro, the place where it is used.
        while span["expansion"]["span"].is_object() {
            span = span["expansion"]["span"].take();
        }
        let code = text(&span["text"][0]["text"]);
        let at = |name: &str| span["text"][0][name].as_u64().unwrap_or(1) as usize;
        let (begin, end) = (at("highlight_start"), at("highlight_end"));
        let mark: String = code.chars().skip(begin - 1).take(end.saturating_sub(begin)).collect();
        words += &format!("  {}: {} <{mark}>\n", text(&span["file_name"]), code.trim());
        words += &label.as_str().map(|label| format!("    {label}\n")).unwrap_or_default();
    }
    for more in all(&error["children"]) {
        words += &format!("  {}: {}\n", text(&more["level"]), text(&more["message"]));
    }
    words + "\n"
}
