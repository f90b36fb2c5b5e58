//! Commands about the audit trail. Files are read on threads that may block.

use super::answer::{CommandAnswer, refusal};
use super::trail::{self, AuditQuery, read};
use crate::answers::{OtherTrail, TrailFault, TrailLine, Verification};
use crate::context::OperatorContext;
use crate::data::{AUDIT, read_master_key};
use crate::error::OperatorError;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use toolwarrant_audit::verify::{Fault, Scope, Verified, verify};
use toolwarrant_audit::{Anchor, TAIL_MAX, tail};
use toolwarrant_base::json;
use toolwarrant_base::keyring::{ChainKey, KeyRing};
use toolwarrant_base::random::Random;

/// Commands about the audit trail.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AuditCommand {
    /// Show its last lines
    Tail {
        /// Number of lines, at most 10000
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
              value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=TAIL_MAX as u64))]
        lines: usize,
    },
    /// List lines, newest first, by caller, tool, outcome, operator or time
    ///
    /// Examines at most 1 GiB. The answer says how far it looked, and where the next page begins.
    List(Box<AuditQuery>),
    /// Check that its lines were not changed, removed or added after they were written
    ///
    /// After the lines of each second comes a seal: a hash of these lines and of the previous seal,
    /// keyed by the master key. The database records a recent seal, and the pruned files. The
    /// command fails if a line does not match its seal, or if a file or the end of the trail is
    /// missing. Lines without a seal, such as those of the last second before a kill, are counted
    /// and are not faults. Each replica of a shared store has a trail of its own. Verify each in
    /// its folder; the answer names the others.
    Verify,
}

const FAULTS_SHOWN: usize = 100;

pub(super) async fn execute(context: &OperatorContext, command: AuditCommand) -> CommandAnswer {
    flush(context).await;
    match command {
        AuditCommand::Tail { lines } => {
            let lines = read(context.folder.join(AUDIT), move |folder| tail(folder, lines)).await?;
            let lines: Vec<TrailLine> = lines.iter().filter_map(|line| json::read(line).ok()).collect();
            Ok(lines.into())
        }
        AuditCommand::List(query) => Ok(trail::list(context, *query).await?.into()),
        AuditCommand::Verify => Ok(verify_trail(context).await?.into()),
    }
}

pub(super) async fn flush(context: &OperatorContext) {
    if let Some(audit) = &context.audit {
        audit.flush().await;
    }
}

async fn verify_trail(context: &OperatorContext) -> Result<Verification, OperatorError> {
    let folder = context.folder.clone();
    let salt = context.program.names.salt.clone();
    let key = spawn_blocking(move || read_master_key(&folder).map(|key| KeyRing::new(&salt, &key, Random::System)));
    let key = key.await.map_err(|error| refusal(error.to_string()))?.map_err(|error| refusal(error.to_string()))?;
    let mut found = look(context, &key.chain_key()).await?;
    // A running server may have begun or pruned a file meanwhile. A real fault is found again.
    if !found.faults.is_empty() && context.server.is_some() {
        found = look(context, &key.chain_key()).await?;
    }
    let mut described = describe_verification(found);
    if let Some(shared) = &context.shared {
        // Each is verified in the folder of its replica.
        let (_, others) = shared.audit_anchors().await?;
        let row = |(replica, Anchor { newest, .. })| OtherTrail { replica, last_seal: newest.number };
        described.other_trails = Some(others.into_iter().map(row).collect());
    }
    Ok(described)
}

async fn look(context: &OperatorContext, key: &ChainKey) -> Result<Verified, OperatorError> {
    let (anchor, key): (Option<Anchor>, _) = (context.store.audit_anchor().await?, key.clone());
    read(context.folder.join(AUDIT), move |folder| verify(folder, &key, anchor.as_ref(), Scope::All)).await
}

fn describe_verification(found: Verified) -> Verification {
    let Verified { files, sealed_lines, found_lines, unsealed_lines, pruned_seal, last_seal, faults } = found;
    let (sound, more) = (faults.is_empty(), faults.len().saturating_sub(FAULTS_SHOWN));
    let fault = |Fault { file, lines, what }| {
        let lines = match lines {
            (0, _) => String::new(),
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        TrailFault { file, lines, found: what }
    };
    let rest = |more| TrailFault { file: String::new(), lines: String::new(), found: format!("and {more} more") };
    let rest = (more > 0).then(|| rest(more));
    Verification {
        sound,
        files,
        last_seal,
        pruned_through_seal: pruned_seal,
        sealed_lines,
        of_these_found_unsealed: found_lines,
        lines_not_sealed: unsealed_lines,
        faults: faults.into_iter().take(FAULTS_SHOWN).map(fault).chain(rest).collect(),
        other_trails: None,
    }
}
