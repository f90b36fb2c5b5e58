//! The text of a start. The first start creates demo applications, and prints their keys with
//! commands to paste.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use toolwarrant_core::access::Grants;
use toolwarrant_core::act::{Channel, Claims, Origin};
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::registry::{NewApplication, NewKey, Registry};
use toolwarrant_operator::flags::{DATA, DEMO, PERMISSION};
use toolwarrant_operator::local_operator;

#[derive(Clone, Default)]
pub(crate) struct Demo {
    pub(crate) applications: Vec<(&'static str, &'static [&'static str])>,
    pub(crate) first_call: Option<(&'static str, Value)>,
    pub(crate) hint: &'static str,
}

pub(crate) struct DemoKey {
    application: &'static str,
    permissions: String,
    key: NewKey,
}

impl DemoKey {
    /// Uses the names of `key create --json`.
    pub(crate) fn json(&self) -> Value {
        let Self { application, permissions: _, key: NewKey { key_id, secret, .. } } = self;
        json!({"application": application, "key_id": key_id, "secret": secret.expose()})
    }
}

impl Demo {
    /// Creates the applications at the first start, and the missing ones if that was interrupted.
    pub(crate) async fn keys(&self, registry: &Registry, catalogue: &Catalogue) -> Result<Vec<DemoKey>> {
        let operator = local_operator(Channel::Start, Claims::default());
        let origin = Origin { operator, command: "serve".to_owned() };
        let mut keys = Vec::new();
        let first = registry.is_empty().await;
        for (name, permissions) in &self.applications {
            let application = match registry.find(name).await {
                Ok(known) if registry.keys(|key| key.application == known.id).await.is_empty() => known.id,
                Ok(_) => continue,
                Err(_) if first || !keys.is_empty() => {
                    let new = NewApplication {
                        name: (*name).to_owned(),
                        permissions: permissions.iter().map(|name| (*name).to_owned()).collect(),
                        grants: Grants::everything(),
                        requests_per_minute: catalogue.service.requests_per_minute,
                    };
                    registry.create(new, &origin).await.context("cannot make the demo applications")?.object
                }
                Err(_) => continue,
            };
            let key = registry.issue_key(&application, None, &origin).await.context("cannot make a key")?;
            keys.push(DemoKey { application: name, permissions: permissions.join(", "), key });
        }
        Ok(keys)
    }

    pub(crate) fn first_steps(&self, program: &str, catalogue: &Catalogue, folder: &Path) -> String {
        let (name, permissions) = self.applications.first().copied().unwrap_or(("NAME", &["PERMISSION"]));
        let permissions =
            permissions.iter().map(|permission| format!(" --{PERMISSION} {permission}")).collect::<String>();
        let assign = catalogue.resources.iter().map(|resource| format!(" --assign '{}:*'", resource.name));
        let assign = assign.collect::<String>();
        let folder = shell_quote(&folder.display().to_string());
        format!(
            "There is no application. This command makes one that sees everything, and shows the secret of its key this once:\n\n  \
             {program} app create {name}{permissions}{assign} --key --{DATA} {folder}\n\n--{DEMO} at the first start does it as well.\n"
        )
    }

    pub(crate) fn text(&self, program: &str, url: &str, keys: &[DemoKey]) -> String {
        let mut out = String::new();
        for DemoKey { application, permissions, key } in keys {
            let _ = writeln!(out, "application {application} may {permissions}");
            let _ = writeln!(out, "  X-Api-Key:    {}\n  X-Api-Secret: {}", key.key_id, key.secret.expose());
        }
        let first = self.applications.first().map(|(name, _)| *name);
        if let Some(DemoKey { application, key: NewKey { key_id, secret, .. }, .. }) = keys.first() {
            let secret = secret.expose();
            let (method, params) = match &self.first_call {
                Some((tool, arguments)) => ("tools/call", json!({"name": tool, "arguments": arguments})),
                None => ("tools/list", json!({})),
            };
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let entry = format!(
                r#""{program}":{{"type":"http","url":"{url}/mcp","headers":{{"Authorization":"Bearer {key_id}:{secret}"}}}}"#
            );
            let _ = write!(
                out,
                "\nThese secrets are shown this once; `{program} key create {application}` makes another key.\n\n\
                 Try it:\n\n  curl {url}/mcp -H 'Content-Type: application/json' \\\n    -H 'X-Api-Key: {key_id}' \\\n    \
                 -H 'X-Api-Secret: {secret}' \\\n    -d '{call}'\n\n\
                 Connect a client:\n\n  \
                 Claude Code  claude mcp add --transport http {program} {url}/mcp \\\n                 \
                 --header 'Authorization: Bearer {key_id}:{secret}'\n  \
                 Cursor       .cursor/mcp.json  {{\"mcpServers\":{{{entry}}}}}\n  \
                 VS Code      .vscode/mcp.json  {{\"servers\":{{{entry}}}}}\n\n{}",
                self.hint
            );
        } else if let Some(first) = first {
            let _ = writeln!(
                out,
                "This folder has been used, so no key was made; `{program} key create {first}` makes one, of this or another application.\n\
                 `{program} app list` shows which there are, and `{program} task list` how writes went."
            );
        } else {
            let _ = writeln!(
                out,
                "`{program} app create NAME --{PERMISSION} PERMISSION` and `{program} key create NAME` make a key."
            );
        }
        out
    }
}

fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
