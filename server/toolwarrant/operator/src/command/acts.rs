//! Commands about acts: who changed what.

use super::answer::{CommandAnswer, names, resolve};
use crate::answers::ActRow;
use crate::context::OperatorContext;
use crate::error::OperatorError;
use crate::when::TimeRange;
use clap::Args;
use serde::{Deserialize, Serialize};
use toolwarrant_core::act::{Act, ActFilter, Channel, Claims, Operator, StoredAct};

/// Selects acts.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActQuery {
    /// Only those of this user, as the server's machine names it
    #[arg(long, value_name = "USER")]
    pub by: Option<String>,
    /// Only those on this application or key: a name or an id
    #[arg(long, value_name = "OBJECT")]
    pub on: Option<String>,
    /// Only those of this command, such as "key revoke", or of all that begin so, such as key
    #[arg(long, value_name = "WORDS")]
    pub command: Option<String>,
    /// Their time.
    #[command(flatten)]
    #[serde(flatten)]
    pub time: TimeRange,
    /// Only those before the act with this `number`, which --json shows: the next page
    #[arg(long, value_name = "NUMBER")]
    pub before: Option<u64>,
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
}

const LATEST: u32 = 5;

pub(super) async fn list(context: &OperatorContext, query: ActQuery) -> CommandAnswer {
    let ActQuery { by: operator, on, command, time, before, limit } = query;
    let now = context.clock.latest();
    let [since, until] = time.moments(now);
    let object = match on {
        Some(named) => Some(resolve(context, &named).await.ok_or_else(|| unknown_object(&named))?),
        None => None,
    };
    let filter = ActFilter { id: None, operator, object, command, since, until, before, limit };
    Ok(rows(context, filter).await?.into())
}

fn unknown_object(named: &str) -> OperatorError {
    OperatorError::not_found(format!(
        "there is no application and no key `{named}`; `app list` and `key list` show them"
    ))
}

pub(super) async fn latest_on(context: &OperatorContext, object: &str) -> Result<Vec<ActRow>, OperatorError> {
    let of = |object: &str| ActFilter { object: Some(object.to_owned()), limit: LATEST, ..ActFilter::default() };
    let mut acts = rows(context, of(object)).await?;
    // The deletion of an application has ended its keys.
    if let Ok(key) = context.registry.key(object).await {
        let deleted = ActFilter { command: Some("app delete".to_owned()), limit: 1, ..of(&key.application) };
        let deleted = rows(context, deleted).await?;
        acts.splice(0..0, deleted);
    }
    Ok(acts)
}

pub(super) async fn rows(context: &OperatorContext, filter: ActFilter) -> Result<Vec<ActRow>, OperatorError> {
    let acts = context.store.acts(filter).await.map_err(OperatorError::from)?;
    let names = names(context).await;
    let row = |StoredAct { number, act, .. }: StoredAct| {
        let Act { id, at, operator, command, object, changes } = act;
        let Operator { role: _, name: by, uid, channel, claims } = operator;
        let Claims { sudo_user, login_uid, name, reason } = claims;
        ActRow {
            time: at,
            by,
            command,
            name: object.as_ref().and_then(|id| names.get(id)).cloned(),
            object,
            changes,
            reason,
            claims: describe_claims(sudo_user, login_uid, name),
            channel: describe_channel(channel),
            uid,
            act_id: id,
            number,
        }
    };
    Ok(acts.into_iter().map(row).collect())
}

fn describe_claims(sudo_user: Option<String>, login_uid: Option<u32>, name: Option<String>) -> Option<String> {
    let said = [
        name.map(|name| format!("as {name}")),
        sudo_user.map(|user| format!("sudo by {user}")),
        login_uid.map(|uid| format!("login uid {uid}")),
    ];
    let said: Vec<_> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(", "))
}

fn describe_channel(channel: Channel) -> &'static str {
    match channel {
        Channel::OwnerSocket => "owner's socket",
        Channel::OperateSocket => "operate.sock",
        Channel::ViewSocket => "view.sock",
        Channel::Console => "console",
        Channel::Offline => "no server",
        Channel::Start => "first start",
    }
}
