//! Commands about the audit trail. Files are read on threads that may block.

use super::answer::{Answer, refusal};
use super::trail::{self, read};
use crate::command::AuditCommand;
use crate::context::OperatorContext;
use crate::data::{AUDIT, read_master_key};
use crate::error::OperatorError;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use toolwarrant_audit::verify::{Fault, Scope, Verified, verify};
use toolwarrant_audit::{Anchor, end_of_trail, read_after, tail};
use toolwarrant_base::keyring::{ChainKey, KeyRing};
use toolwarrant_base::random::Random;

/// Maximum number of faults shown. Further faults are only counted.
const FAULTS_SHOWN: usize = 100;

pub(super) async fn execute(context: &OperatorContext, command: AuditCommand) -> Answer {
    flush(context).await;
    match command {
        AuditCommand::After { place } => {
            let place = place.map(|place| trail::parse_place(&place)).transpose()?;
            let found = read(context.folder.join(AUDIT), move |folder| match place {
                Some(place) => read_after(folder, place),
                None => Ok((Vec::new(), end_of_trail(folder)?)),
            });
            let (lines, end) = found.await?;
            let lines: Vec<_> = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect();
            Ok(json!({"lines": lines, "next": format!("{}:{}", end.day, end.offset)}))
        }
        AuditCommand::Tail { lines, follow: _ } => {
            let lines = read(context.folder.join(AUDIT), move |folder| tail(folder, lines)).await?;
            Ok(lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect())
        }
        AuditCommand::List(query) => trail::list(context, *query).await,
        AuditCommand::Verify => verify_trail(context).await,
    }
}

/// Makes a running server write the lines that wait.
pub(super) async fn flush(context: &OperatorContext) {
    if let Some(audit) = &context.audit {
        audit.flush().await;
    }
}

async fn verify_trail(context: &OperatorContext) -> Answer {
    let folder = context.folder.clone();
    let salt = context.names.salt.clone();
    let key = spawn_blocking(move || read_master_key(&folder).map(|key| KeyRing::new(&salt, &key, Random::System)));
    let key = key.await.map_err(|error| refusal(error.to_string()))?.map_err(|error| refusal(error.to_string()))?;
    let mut found = look(context, &key.chain_key()).await?;
    // A running server may have begun or pruned a file meanwhile, which looks like a fault. A real
    // fault is found again.
    if !found.faults.is_empty() && context.serves {
        found = look(context, &key.chain_key()).await?;
    }
    let mut described = describe_verification(found);
    if let Some(shared) = &context.shared {
        // Each is verified in the folder of its replica. One that nobody has is missing.
        let (_, others) = shared.audit_anchors().await?;
        let row = |(replica, Anchor { newest, .. })| json!({"replica": replica, "last_seal": newest.number});
        described["other_trails"] = others.into_iter().map(row).collect();
    }
    Ok(described)
}

async fn look(context: &OperatorContext, key: &ChainKey) -> Result<Verified, OperatorError> {
    let (anchor, key): (Option<Anchor>, _) = (context.store.audit_anchor().await?, key.clone());
    read(context.folder.join(AUDIT), move |folder| verify(folder, &key, anchor.as_ref(), Scope::All)).await
}

fn describe_verification(found: Verified) -> Value {
    let Verified { files, sealed_lines, found_lines, unsealed_lines, pruned_seal, last_seal, faults } = found;
    let (sound, more) = (faults.is_empty(), faults.len().saturating_sub(FAULTS_SHOWN));
    let fault = |Fault { file, lines, what }| {
        let lines = match lines {
            (0, _) => String::new(),
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        json!({"file": file, "lines": lines, "found": what})
    };
    let more = (more > 0).then(|| json!({"file": "", "lines": "", "found": format!("and {more} more")}));
    json!({
        "sound": sound,
        "files": files,
        "last_seal": last_seal,
        "pruned_through_seal": pruned_seal,
        "sealed_lines": sealed_lines,
        // A killed process left these lines without a seal, and the next process sealed them
        // unchanged.
        "of_these_found_unsealed": found_lines,
        "lines_not_sealed": unsealed_lines,
        "faults": faults.into_iter().take(FAULTS_SHOWN).map(fault).chain(more).collect::<Value>(),
    })
}
