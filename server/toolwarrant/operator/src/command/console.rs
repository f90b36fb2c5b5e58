//! Commands about the console: a link into it, and the sessions of those who have used one. The
//! console itself is a crate above this one, and stands behind
//! [`ConsoleDoor`](crate::ConsoleDoor).

use super::answer::{CommandAnswer, put_act, refusal};
use crate::answers::{ActMade, ConsoleLink, SessionsEnded};
use crate::console::LinkRequest;
use crate::context::OperatorContext;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwarrant_core::act::{Changes, Channel, Operator, Origin, Role};

/// Makes a link into the console, or manages its sessions.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ConsoleCommand {
    /// Without one, a link is made.
    #[command(subcommand)]
    pub act: Option<ConsoleAct>,
    /// The link.
    #[command(flatten)]
    pub link: LinkRequest,
}

/// Manages the sessions of the console.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ConsoleAct {
    /// List the sessions of the console
    List,
    /// End a session of the console at once, or all of them and the console
    End {
        /// The session
        #[arg(required_unless_present = "all")]
        session: Option<String>,
        /// Every session, and every link that was not used
        #[arg(long, conflicts_with = "session")]
        all: bool,
    },
}

pub(super) async fn execute(context: &OperatorContext, origin: &Origin, command: ConsoleCommand) -> CommandAnswer {
    let door = context.console.as_ref().ok_or_else(|| refusal("no server runs in this process"))?;
    let ConsoleCommand { act, link } = command;
    match act {
        None => {
            if origin.operator.channel == Channel::Console {
                return Err(refusal("a link into the console is made with the command line"));
            }
            let role = if link.operate { Role::Operate } else { Role::View };
            let act_id = put_act(context, origin, Changes::of("role", Value::Null, json!(role))).await?;
            let operator = Operator { role, channel: Channel::Console, ..origin.operator.clone() };
            let made = Some(ActMade { act_id, note: None });
            Ok(ConsoleLink { made, ..door.make_link(operator, link).await? }.into())
        }
        Some(ConsoleAct::List) => Ok(door.list_sessions().into()),
        Some(ConsoleAct::End { session, all: _ }) => {
            let ended = door.end_sessions(session.as_deref());
            if let (Some(session), true) = (&session, ended.is_empty()) {
                return Err(refusal(format!("there is no session `{session}`; `console list` shows them")));
            }
            let act_id = put_act(context, origin, Changes::of("sessions", ended.clone(), Vec::<String>::new())).await?;
            Ok(SessionsEnded { ended, made: ActMade { act_id, note: None } }.into())
        }
    }
}
