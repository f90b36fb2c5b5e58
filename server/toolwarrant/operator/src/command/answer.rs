//! Helpers for the answers to commands.

use crate::answers::{ActMade, ApplicationName, OperatorAnswer};
use crate::context::OperatorContext;
use crate::error::OperatorError;
use std::collections::HashMap;
use toolwarrant_base::text::find_deceiving;
use toolwarrant_core::act::{Changes, Origin};
use toolwarrant_core::registry::{Changed, Durability};
use toolwarrant_core::store::{ApplicationRow, Labels};

pub type CommandAnswer = Result<OperatorAnswer, OperatorError>;

pub(super) fn describe_act(changed: Changed) -> ActMade {
    let Changed { object: _, act_id, durability } = changed;
    let note = match durability {
        Durability::Owed(why) => Some(format!(
            "in force, but not yet on the disk ({why}); the server writes it as soon as it can, and a restart before that undoes it"
        )),
        Durability::Stored => None,
    };
    ActMade { act_id, note }
}

pub(super) async fn put_act(
    context: &OperatorContext,
    origin: &Origin,
    changes: Changes,
) -> Result<String, OperatorError> {
    context.registry.wait_for_lease().await?;
    let act = context.registry.act(origin, None, changes)?;
    let id = act.id.clone();
    context.store.put_acts(vec![act]).await?;
    Ok(id)
}

pub(super) fn refusal(why: impl Into<String>) -> OperatorError {
    OperatorError::refusal(why)
}

/// Returns the names of applications by their ids.
pub(super) async fn names(context: &OperatorContext) -> HashMap<String, ApplicationName> {
    let names = context.registry.names().await.into_iter();
    names.map(|(id, name, deleted_at)| (id, ApplicationName { name, deleted_at })).collect()
}

pub(super) fn name_application(names: &HashMap<String, ApplicationName>, id: &str) -> ApplicationName {
    names.get(id).cloned().unwrap_or_else(|| id.into())
}

pub(super) async fn resolve(context: &OperatorContext, named: &str) -> Option<String> {
    match context.registry.find(named).await {
        Ok(row) => Some(row.id),
        Err(_) => context.registry.key(named).await.ok().map(|key| key.id),
    }
}

pub(super) async fn find_application(
    context: &OperatorContext,
    app: Option<&str>,
) -> Result<Option<ApplicationRow>, OperatorError> {
    Ok(match app {
        Some(app) => Some(context.registry.find(app).await?),
        None => None,
    })
}

const LABELS_MAX: usize = 16;

const LABEL_NAME_MAX: usize = 32;
const LABEL_TEXT_MAX: usize = 128;

pub(super) fn parse_label(text: &str) -> Result<(String, String), &'static str> {
    let (name, text) = text.split_once('=').ok_or("expected NAME=TEXT, such as owner=Ada")?;
    Ok((name.to_owned(), text.to_owned()))
}

pub(super) fn change_labels(labels: &mut Labels, changes: &[(String, String)]) -> Result<(), OperatorError> {
    let mut changed = labels.clone();
    for (name, text) in changes {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if name.is_empty() || name.len() > LABEL_NAME_MAX || !name.chars().all(is_name) {
            return Err(refusal(format!(
                "{name:?} cannot be the name of a label: it has 1 to {LABEL_NAME_MAX} of the characters a-z, 0-9, -, _ and ."
            )));
        }
        if text.chars().count() > LABEL_TEXT_MAX || find_deceiving(text).is_some() {
            return Err(refusal(format!(
                "the label `{name}` has a text that is too long or not printable: at most {LABEL_TEXT_MAX} printable characters are allowed"
            )));
        }
        match text.is_empty() {
            true => drop(changed.remove(name)),
            false => drop(changed.insert(name.clone(), text.clone())),
        }
    }
    match changed.len() {
        0..=LABELS_MAX => {
            *labels = changed;
            Ok(())
        }
        n => Err(refusal(format!("that would be {n} labels; at most {LABELS_MAX} are allowed"))),
    }
}
