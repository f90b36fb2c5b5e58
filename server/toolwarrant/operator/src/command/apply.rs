//! Applies a state file: shows or carries out the commands that lead to it.

use super::answer::{CommandAnswer, refusal};
use super::applications::AppCommand;
use super::operator::OperatorCommand;
use super::targets::TargetCommand;
use super::{state_file, targets};
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::flags;
use serde_json::json;
use std::path::Path;
use tokio::task::spawn_blocking;
use toolwarrant_base::BoxFuture;

pub(super) async fn apply<'a>(
    context: &OperatorContext,
    (path, text, dry_run): (&Path, &str, bool),
    carry_out: impl Fn(OperatorCommand) -> BoxFuture<'a, CommandAnswer>,
) -> CommandAnswer {
    // Two files at once would mix.
    let _alone = if dry_run { None } else { Some(context.applying.lock().await) };
    let (rows, catalogue) = (context.registry.applications().await, context.catalogue);
    let (path, text) = (path.to_owned(), text.to_owned());
    let plan = spawn_blocking(move || state_file::plan(catalogue, &path, &text, &rows));
    let plan = plan.await.map_err(|error| refusal(error.to_string()))?.map_err(|error| refusal(error.to_string()))?;
    for command in &plan {
        if let OperatorCommand::Target { resource, command: TargetCommand::Set { terms, .. } } = command
            && let Some(def) = context.catalogue.resource(resource)
        {
            let is_id = |term: &&String| !term.ends_with('*');
            let ids =
                terms.iter().filter(is_id).map(|term| term.trim_start_matches('!').to_owned()).collect::<Vec<_>>();
            targets::must_exist(context, def, &ids).await?;
        }
    }
    let lines: Vec<_> = plan.iter().map(line).collect();
    if dry_run {
        return Ok(json!({"would_do": lines.iter().map(|line| json!({"command": line})).collect::<Vec<_>>()}));
    }
    let (mut done, count) = (Vec::new(), plan.len());
    for (command, line) in plan.into_iter().zip(&lines) {
        let answer = carry_out(command).await;
        let answer = answer.map_err(|error| OperatorError {
            message: format!("{} of {count} commands were carried out; then `{line}` failed: {error}", done.len()),
            ..error
        })?;
        done.push(json!({"command": line, "act_id": answer["act_id"]}));
    }
    Ok(json!({"done": done}))
}

pub(super) async fn export(context: &OperatorContext) -> CommandAnswer {
    let rows = context.registry.applications().await;
    Ok(json!({"state": state_file::export(context.catalogue, &rows)}))
}

fn line(command: &OperatorCommand) -> String {
    let pair = |(name, text): &(String, String)| quote(&format!("{name}={text}"));
    let mut words = vec![command.row().name];
    let rest: Vec<String> = match command {
        OperatorCommand::App(AppCommand::Create { name, permissions, requests_per_minute }) => {
            let permissions = permissions.iter().flat_map(|name| [format!("--{}", flags::PERMISSION), name.clone()]);
            let rate =
                requests_per_minute.iter().flat_map(|rate| ["--requests-per-minute".to_owned(), rate.to_string()]);
            [quote(name)].into_iter().chain(permissions).chain(rate).collect()
        }
        OperatorCommand::App(AppCommand::Rename { app, name }) => vec![quote(app), quote(name)],
        OperatorCommand::App(AppCommand::Grant { app, permissions } | AppCommand::Revoke { app, permissions }) => {
            [quote(app)].into_iter().chain(permissions.iter().cloned()).collect()
        }
        OperatorCommand::App(AppCommand::Rate { app, requests_per_minute }) => {
            vec![quote(app), requests_per_minute.to_string()]
        }
        OperatorCommand::App(AppCommand::Label { app, labels }) => {
            [quote(app)].into_iter().chain(labels.iter().map(pair)).collect()
        }
        OperatorCommand::Target { command: TargetCommand::Set { app, terms }, .. } => {
            [app].into_iter().chain(terms).map(|word| quote(word)).collect()
        }
        _ => Vec::new(),
    };
    words.extend(rest);
    words.join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=@/+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
