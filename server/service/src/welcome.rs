//! What a person reads who starts a service: at the first start, keys to try it with and lines to paste.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write;
use toolwarrant_core::access::Grants;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::registry::{NewApplication, NewKey, Registry};

/// What the first start makes and shows.
#[derive(Clone, Default)]
pub(crate) struct Demo {
    /// Applications by name, and what each may do.
    pub(crate) applications: Vec<(&'static str, &'static [&'static str])>,
    /// The call to try first.
    pub(crate) first_call: Option<(&'static str, Value)>,
    /// What to try next.
    pub(crate) hint: &'static str,
}

/// A key that was made for trying the service out.
pub(crate) struct DemoKey {
    application: &'static str,
    permissions: String,
    key: NewKey,
}

impl Demo {
    /// Makes the applications with a key each: at the first start, and where that was cut short.
    pub(crate) async fn keys(&self, registry: &Registry, catalogue: &Catalogue) -> Result<Vec<DemoKey>> {
        let mut keys = Vec::new();
        let first = registry.is_empty().await;
        for (name, permissions) in &self.applications {
            let application = match registry.find(name).await {
                Ok(known) if registry.keys().await.iter().all(|key| key.application != known.id) => known.id,
                Ok(_) => continue,
                Err(_) if first || !keys.is_empty() => {
                    let new = NewApplication {
                        name: (*name).to_owned(),
                        permissions: permissions.iter().map(|name| (*name).to_owned()).collect(),
                        grants: Grants::everything(),
                        requests_per_minute: catalogue.service.requests_per_minute,
                    };
                    registry.create(new).await.context("cannot make the demo applications")?
                }
                Err(_) => continue,
            };
            let key = registry.issue_key(&application, None).await.context("cannot make a key")?;
            keys.push(DemoKey { application: name, permissions: permissions.join(", "), key });
        }
        Ok(keys)
    }

    /// The keys, and lines to paste.
    pub(crate) fn text(&self, program: &str, url: &str, keys: &[DemoKey]) -> String {
        let mut out = String::new();
        for DemoKey { application, permissions, key } in keys {
            let _ = writeln!(out, "application {application} may {permissions}");
            let _ = writeln!(out, "  X-Api-Key:    {}\n  X-Api-Secret: {}", key.key_id, key.secret.expose());
        }
        let first = self.applications.first().map(|(name, _)| *name);
        if let Some(DemoKey { application, key: NewKey { key_id, secret }, .. }) = keys.first() {
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
                "`{program} key create {first}` makes another key, `{program} task list` shows how writes went."
            );
        } else {
            let _ = writeln!(
                out,
                "`{program} app create NAME --permission PERMISSION` and `{program} key create NAME` make a key."
            );
        }
        out
    }
}
