//! Kills the program while operators change applications and keys over its socket, one of them with
//! a state file. Then compares the rows, the acts, and the lines of the audit trail.

use super::{Options, options};
use crate::harness::program::{Program, json_of, key_of, send};
use crate::harness::writes::{database, phone};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use toolwarrant_base::random::SplitMix;

/// The operators who send single commands. One more applies a state file.
const OPERATORS: u32 = 4;

/// The applications of the state file.
const APPLIED: u32 = 20;

/// Number of milliseconds that an act may wait for its line.
const LINE_WAIT: i64 = 1_000;

/// An operator of the socket, who gives each command a number of its own.
#[derive(Clone)]
struct Sender {
    operator: u32,
    socket: PathBuf,
    key: String,
    next: Arc<AtomicU32>,
    told: UnboundedSender<AnsweredCommand>,
}

/// An answered command, with the ids of its acts.
struct AnsweredCommand {
    operator: u32,
    number: u32,
    command: Value,
    acts: Vec<String>,
}

impl AnsweredCommand {
    /// Returns true if the application that all operators change does not show the command, nor a
    /// later one in its place.
    fn is_undone(&self, demo: &Value) -> bool {
        let label = || demo["labels"][format!("o{}", self.operator)].as_str().and_then(|text| text.parse::<u32>().ok());
        let excepted = || json!(format!("!{}", phone(self.number)));
        match (self.command.pointer("/app/label"), self.command.get("target")) {
            (Some(_), _) => label().is_none_or(|number| number < self.number),
            (_, Some(_)) => !demo["devices"].as_array().is_some_and(|terms| terms.contains(&excepted())),
            _ => false,
        }
    }
}

impl Sender {
    /// Sends commands until the program is killed.
    fn work(self) {
        loop {
            let number = self.next.fetch_add(1, Relaxed);
            let command = self.command(number);
            let Ok(answer) = send(&self.socket, &command) else { return };
            let done = answer.get("Ok").unwrap_or_else(|| panic!("{command}: {answer}"));
            let acts = done["done"].as_array().into_iter().flatten().chain([done]);
            let acts = acts.filter_map(|act| act["act_id"].as_str().map(str::to_owned)).collect();
            let _ = self.told.send(AnsweredCommand { operator: self.operator, number, command, acts });
        }
    }

    fn command(&self, number: u32) -> Value {
        let (app, label) = ("demo", json!([[format!("o{}", self.operator), number.to_string()]]));
        // Several operators send the same command at a time.
        match number / OPERATORS % 7 {
            _ if self.operator == OPERATORS => apply(number, false),
            0 => json!({"app": {"create": {"name": format!("app-{number}"), "permissions": ["device"]}}}),
            1 => json!({"app": {"label": {"app": app, "labels": label}}}),
            2 => json!({"app": {"rate": {"app": app, "requests_per_minute": number}}}),
            3 => json!({"app": {"suspend": {"app": app}}}),
            4 => json!({"app": {"resume": {"app": app}}}),
            5 => {
                let unassign = json!({"app": app, "ids": [phone(number)], "all": false, "prefixes": []});
                json!({"target": {"resource": "device", "command": {"unassign": unassign}}})
            }
            _ => json!({"key": {"label": {"key": self.key, "labels": label}}}),
        }
    }
}

/// Returns the command that applies a state file with this number.
fn apply(number: u32, dry_run: bool) -> Value {
    let text = (0..APPLIED).fold(String::new(), |mut text, n| {
        let labels = format!("labels = {{ n = \"{number}\" }}");
        let _ = writeln!(text, "[application.s{n}]\npermissions = [\"device\"]\n{labels}");
        text
    });
    json!({"apply": {"file": "/state.toml", "dry_run": dry_run, "text": text}})
}

/// The accounts of a run. Each must be empty or 0, except the figures at the end.
#[derive(Debug, Default)]
struct ActBooks {
    /// Changes that no act tells, and acts whose change is not there.
    unmatched: Vec<String>,
    /// Answered commands whose act is not stored.
    lost: u64,
    /// Answered commands that another one has undone.
    undone: u64,
    /// Acts that the store says have a line, and have none.
    without_line: u64,
    /// Acts that still have no line after the next life.
    forgotten: u64,
    kills: u64,
    acts: u64,
    answers: u64,
    /// Acts that waited for their lines at a kill, and how old the oldest was.
    waited: u64,
    oldest: i64,
    twice: u64,
}

/// Kills the program at least `kills` times, until there are `acts` acts.
async fn kill_among_acts(acts: u64, kills: u64, seed: u64) -> ActBooks {
    let home = Arc::new(TempDir::new().expect("a temporary folder"));
    let mut program = Program::start_at(Arc::clone(&home), &[]).await;
    let data = program.data.clone();
    let (key, next) = (key_of(&data, "demo").await.id, Arc::new(AtomicU32::new(1)));
    let (mut books, mut lives) = (ActBooks::default(), SplitMix(seed));
    let (mut told, mut waiting) = (Vec::new(), HashSet::new());
    while books.acts < acts || books.kills < kills {
        let (tell, mut answers) = unbounded_channel();
        let (socket, key, next) = (data.join("admin.sock"), key.clone(), Arc::clone(&next));
        let sender = Sender { operator: 0, socket, key, next, told: tell };
        let mut operators = JoinSet::new();
        for operator in 0..=OPERATORS {
            let sender = Sender { operator, ..sender.clone() };
            operators.spawn_blocking(move || sender.work());
        }
        drop(sender);
        let before = told.len();
        for _ in 0..lives.below(2 * acts / kills) {
            told.push(answers.recv().await.expect("it runs"));
        }
        program.kill().await;
        while let Some(done) = operators.join_next().await {
            done.expect("no command is refused");
        }
        while let Some(answer) = answers.recv().await {
            told.push(answer);
        }
        books.kills += 1;
        // Each answer comes after the lines of all earlier acts.
        let earlier = std::mem::take(&mut waiting);
        waiting = books.compare(&data, &told).await;
        if told.len() > before {
            books.forgotten += earlier.intersection(&waiting).count() as u64;
        }
        books.waited += waiting.len() as u64;
        program = program.again(&[]).await;
    }
    // The next apply finishes one that a kill ended.
    let [applied, left] =
        [false, true].map(|dry_run| send(&data.join("admin.sock"), &apply(0, dry_run)).expect("an answer"));
    assert_eq!((&applied["Err"], &left["Ok"]["would_do"]), (&Value::Null, &json!([])));
    program.stop().await;
    books.forgotten += books.compare(&data, &told).await.len() as u64;
    books
}

impl ActBooks {
    /// Compares the accounts. The exit codes of the checks say that they find no fault. Returns the
    /// acts that wait for their lines.
    async fn compare(&mut self, data: &Path, told: &[AnsweredCommand]) -> HashSet<String> {
        for check in ["doctor", "audit verify"] {
            json_of(data, check).await;
        }
        let trail = toolwarrant_audit::days(&data.join("audit")).expect("a trail").into_iter();
        let trail: String = trail.map(|day| fs::read_to_string(day).expect("text")).collect();
        let mut lines: HashMap<&str, u64> = HashMap::new();
        for part in trail.split("\"act_id\":\"").skip(1) {
            *lines.entry(part.split('"').next().unwrap_or_default()).or_default() += 1;
        }
        self.twice = lines.values().filter(|count| **count > 1).count() as u64;

        let (mut facts, mut ids, mut waiting) = (BTreeMap::new(), HashSet::new(), Vec::new());
        let mut last = 0;
        for (act, at, has_line) in acts(data) {
            let (id, object) = (act["id"].as_str().expect("text").to_owned(), act["object"].to_string());
            if !follow(facts.entry(object).or_default(), &act["changes"]) {
                self.unmatched.push(format!("a change before {id} has no act: {act}"));
            }
            last = at;
            match lines.contains_key(&*id) {
                true => {}
                false if has_line => self.without_line += 1,
                false => waiting.push((id.clone(), at)),
            }
            ids.insert(id);
        }
        self.acts = ids.len() as u64;
        self.oldest = waiting.iter().map(|(_, at)| last - at).fold(self.oldest, i64::max);
        let rows = rows(data).await;
        for (id, row) in &rows {
            let known = facts.remove(&json!(id).to_string()).unwrap_or_default();
            for (name, value) in row {
                let known =
                    known.get(name).cloned().unwrap_or_else(|| if name == "labels" { json!([]) } else { Value::Null });
                if known != *value {
                    self.unmatched.push(format!("{id} has the {name} {value}, and its acts lead to {known}"));
                }
            }
        }
        self.unmatched.extend(facts.into_keys().map(|id| format!("{id} has acts and is not there")));

        self.answers = told.len() as u64;
        self.lost = told.iter().flat_map(|answer| &answer.acts).filter(|id| !ids.contains(*id)).count() as u64;
        let demo = json_of(data, "app show demo").await;
        self.undone += told.iter().filter(|answer| answer.is_undone(&demo)).count() as u64;
        waiting.into_iter().map(|(id, _)| id).collect()
    }

    fn assert_sound(&self) {
        let Self { unmatched, lost, undone, without_line, forgotten, .. } = self;
        assert_eq!((unmatched, [lost, undone, without_line, forgotten]), (&Vec::new(), [&0; 4]), "{self:#?}");
    }
}

/// Returns all acts as the database has them, oldest first, with their times in milliseconds, and
/// true for those that have their lines.
fn acts(data: &Path) -> Vec<(Value, i64, bool)> {
    let db = database(data);
    let mut select = db.prepare("SELECT act, at, has_line FROM act ORDER BY number").expect("the table that it is");
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))).expect("rows");
    let parse = |(act, at, has_line): (String, i64, bool)| (serde_json::from_str(&act).expect("JSON"), at, has_line);
    rows.map(|row| parse(row.expect("a row"))).collect()
}

/// Returns the facts of each application and key that acts tell, as the operator sees them.
async fn rows(data: &Path) -> BTreeMap<String, Map<String, Value>> {
    let mut rows = BTreeMap::new();
    for (line, id, names) in [
        ("app list", "id", &["name", "requests_per_minute", "suspended_at"][..]),
        ("key list", "key_id", &["live_secrets"]),
    ] {
        for row in json_of(data, line).await.as_array().expect("rows") {
            let labels = row["labels"].as_object().expect("labels").iter();
            let labels = labels.map(|(name, text)| format!("{name}={}", text.as_str().expect("text")));
            let labels: BTreeSet<_> = labels.collect();
            let facts = names.iter().map(|name| ((*name).to_owned(), row[*name].clone()));
            let facts = facts.chain([("labels".to_owned(), json!(labels))]).collect();
            rows.insert(row[id].as_str().expect("text").to_owned(), facts);
        }
    }
    rows
}

/// Changes facts as an act tells. Returns false if they were not what the act has as `before`.
fn follow(facts: &mut Map<String, Value>, changes: &Value) -> bool {
    let texts = |list: &Value| -> BTreeSet<String> { serde_json::from_value(list.clone()).unwrap_or_default() };
    changes.as_object().expect("differences").iter().fold(true, |follows, (name, change)| {
        let fact = facts.entry(name).or_insert(Value::Null);
        let (is_as_before, after) = match change.get("added") {
            Some(added) => {
                let (held, added, removed) = (texts(fact), texts(added), texts(&change["removed"]));
                let after: BTreeSet<_> = held.difference(&removed).chain(&added).cloned().collect();
                (removed.is_subset(&held) && added.is_disjoint(&held), json!(after))
            }
            None => (*fact == change["before"], change["after"].clone()),
        };
        *fact = after;
        follows && is_as_before
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kill_separates_a_change_from_its_act_or_an_act_from_its_line() {
    kill_among_acts(150, 4, 1).await.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: cargo xtask drill crash"]
async fn no_kill_among_thousands_of_acts_separates_a_change_from_its_act_or_an_act_from_its_line() {
    let Options { acts, kills, seed, .. } = options();
    let books = kill_among_acts(acts, kills, seed).await;
    println!("{books:#?}");
    books.assert_sound();
    assert!(books.oldest <= LINE_WAIT, "an act has waited for its line for {} ms", books.oldest);
}
