//! The report of a check: as text and as JSON.

use crate::check::{Judged, Judgement, RefusedContract, breaks};
use crate::release::describe_verdicts;
use crate::source::{File, Spot};
use crate::version::Version;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};
use std::fmt::Write;
use toolwarrant_common::escape_line;
use toolwarrant_gate::{ContractChange, ListChange, Severity, change_json};

const LONGEST_NOTE: usize = 120;

impl Judgement {
    /// Shows the changes of the branch in full or, without one, those since the release.
    pub(crate) fn text(&self) -> String {
        let shown = self.branch.as_ref().map_or(&self.changes, |(_, changes)| changes);
        let mut out = String::new();
        for judged in shown {
            let _ = writeln!(out, "{}\n", self.excerpt(judged));
        }
        for RefusedContract { id, message, help, spot } in &self.refusals {
            let title = Level::ERROR.primary_title(escape_line(message)).id(*id);
            let group = spot.iter().fold(Group::with_title(title), |group, spot| {
                group.element(snippet(&self.files, spot, AnnotationKind::Primary, None))
            });
            let help = Group::with_title(Level::HELP.secondary_title(escape_line(help)));
            let _ = writeln!(out, "{}\n", Renderer::plain().render(&[group, help]));
        }
        if let Some((revision, changes)) = &self.branch {
            let _ = writeln!(out, "since {}: {}", escape_line(revision), count(changes));
        }
        let [before, written, required] = &self.versions.each_ref().map(|version| escape_line(version));
        let _ = writeln!(out, "since {before}, {}: {}", escape_line(&self.former), count(&self.changes));
        let _ = writeln!(out, "version: {before} released, {written} in service.toml, {required} required");
        out += &match self.refusals.len() {
            0 if written == before => "sound\n".to_owned(),
            0 => format!("sound; to release it: `contract release {written}`\n"),
            n => format!("{n} thing(s) to do: each help above says what\n"),
        };
        out
    }

    fn excerpt(&self, Judged { change, accepted, spot, former }: &Judged) -> String {
        let ContractChange { rule, verdicts, fact: _, old, new: _, message, lists, users, is_framework, consequences } =
            change;
        let level = match change.worst() {
            Severity::Breaking => Level::ERROR,
            Severity::Risky => Level::WARNING,
            Severity::Compatible => Level::NOTE,
        };
        let title = level.with_name(change.worst().name()).primary_title(escape_line(message)).id(&rule.id);
        let mut group = Group::with_title(title);
        if let Some(spot) = spot {
            group = group.element(snippet(&self.files, spot, AnnotationKind::Primary, None));
        }
        if let Some(former) = former {
            group = group.element(snippet(&self.files, former, AnnotationKind::Context, Some("before")));
        }
        let hurt = describe_verdicts(*verdicts);
        let bump = match Version::parse(&self.versions[0]) {
            Ok(version) if version.is_draft() => {
                format!("{} change of the version before 1.0", version.adapt(rule.bump).name())
            }
            _ => format!("{} change of the version", rule.bump.name()),
        };
        let mut notes = vec![format!("{hurt}; a {bump}"), rule.why.clone()];
        if let (None, Some(old)) = (former, old) {
            notes.push(format!("before: {old}"));
        }
        notes.extend(lists.iter().map(describe_list));
        let list =
            |title: &str, names: &[String]| (!names.is_empty()).then(|| format!("{title}: {}", names.join(", ")));
        notes.extend(list("used by", users));
        notes.extend(consequences.iter().map(|ContractChange { message, fact, rule, .. }| {
            let is_short = message.chars().count() <= LONGEST_NOTE;
            let message = if is_short { message.clone() } else { format!("`{fact}` has changed") };
            format!("it follows: {message} ({})", rule.id)
        }));
        notes.extend(is_framework.then(|| "the framework has caused it, and no file of the contract".to_owned()));
        notes.extend(accepted.iter().map(|accepted| format!("accepted: {}", accepted.reason)));
        let group = notes.into_iter().fold(group, |group, note| group.element(Level::NOTE.message(escape_line(&note))));
        let help = Group::with_title(Level::HELP.secondary_title(&rule.help));
        Renderer::plain().render(&[group, help])
    }

    pub(crate) fn json(&self) -> Value {
        let [released, contract, required] = &self.versions;
        let all = |changes: &[Judged]| changes.iter().map(|judged| self.change_json(judged)).collect::<Vec<_>>();
        let refusals = self.refusals.iter().map(|RefusedContract { id, message, help, spot }| {
            json!({"id": id, "message": message, "help": help, "place": self.place_json(spot.as_ref())})
        });
        json!({
            "compared": true,
            "sound": self.refusals.is_empty(),
            "former": self.former,
            "versions": {"released": released, "contract": contract, "required": required},
            "changes": all(&self.changes),
            "branch": self.branch.as_ref().map(|(revision, changes)| json!({"revision": revision, "changes": all(changes)})),
            "refusals": refusals.collect::<Vec<_>>(),
        })
    }

    fn change_json(&self, Judged { change, accepted, spot, former }: &Judged) -> Value {
        let mut value = change_json(change);
        value["accepted"] = accepted.as_ref().map(|accepted| accepted.reason.as_str()).into();
        value["place"] = self.place_json(spot.as_ref());
        value["former_place"] = self.place_json(former.as_ref());
        value
    }

    fn place_json(&self, spot: Option<&Spot>) -> Value {
        spot.map_or(
            Value::Null,
            |spot| json!({"file": self.files[spot.file].shown, "line": self.files[spot.file].line(spot)}),
        )
    }
}

fn describe_list(ListChange { permission, lost, gained }: &ListChange) -> String {
    let say = |verb: &str, tools: &[String]| (!tools.is_empty()).then(|| format!("{verb} {}", tools.join(", ")));
    let both: Vec<_> = [say("loses", lost), say("gains", gained)].into_iter().flatten().collect();
    format!("a key with `{permission}` alone {}", both.join(" and "))
}

fn count(changes: &[Judged]) -> String {
    let of = |verdict| changes.iter().filter(|judged| judged.change.worst() == verdict).count();
    let accepted = changes.iter().filter(|judged| breaks(&judged.change) && judged.accepted.is_some()).count();
    let [breaking, risky, compatible] = [Severity::Breaking, Severity::Risky, Severity::Compatible].map(of);
    format!("{breaking} breaking ({accepted} accepted), {risky} risky, {compatible} compatible")
}

fn snippet<'a>(
    files: &'a [File],
    spot: &Spot,
    kind: AnnotationKind,
    label: Option<&'a str>,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let File { shown, text } = &files[spot.file];
    let span = spot.span.start.min(text.len())..spot.span.end.min(text.len());
    Snippet::source(text.as_str()).path(escape_line(shown)).annotation(kind.span(span).label(label))
}
