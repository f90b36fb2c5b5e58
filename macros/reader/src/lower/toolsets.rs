//! Lowers toolsets.
//!
//! A reader of texts has a set of bits, and a sentence that names a tool needs the bit of the tool.
//! A tool in a toolset has a bit for its permission in that set, which only those have whose server
//! offers the set.

use super::require::{at, require_name, require_positive, require_text, tools_of};
use crate::model::{Domain, ReadersSpec, ToolsetSpec};
use crate::raw::{At, Files};
use crate::report::Report;
use crate::rules::Rule;
use crate::source::SERVICE;
use std::sync::Arc;

/// A set of permissions is one machine word.
pub(super) const MAX_PERMISSIONS: usize = 64;

pub(super) fn lower(files: &Files, readers: &ReadersSpec, report: &mut Report) -> Vec<Arc<ToolsetSpec>> {
    let toolsets = files.service.toolset.iter().enumerate().map(|(index, (name, toolset))| {
        require_name(SERVICE, name, report);
        require_text(SERVICE, &toolset.doc, report);
        let is_used =
            tools_of(files).any(|(_, tool)| tool.toolset.as_ref().is_some_and(|used| used.as_str() == name.as_str()));
        if files.is_whole && !is_used {
            let help = format!("write `toolset = \"{}\"` at a tool, or remove the toolset", **name);
            report.add(Rule::Toolset, at(SERVICE, name.span()), format!("`{}` has no tool", **name), Some(help));
        }
        let mut limit = |own: &Option<At<u32>>, all| own.as_ref().map_or(all, |own| require_positive(own, report));
        Arc::new(ToolsetSpec {
            name: name.to_string(),
            doc: toolset.doc.to_string(),
            index,
            list: limit(&toolset.list, readers.list),
            list_with_outputs: limit(&toolset.list_with_outputs, readers.list_with_outputs),
        })
    });
    toolsets.collect()
}

pub(super) fn number_rights(domains: &mut [Domain], permissions: usize, files: &Files, report: &mut Report) {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for tool in domains.iter_mut().flat_map(|domain| &mut domain.tools) {
        let Some(toolset) = &tool.toolset else { continue };
        let pair = (tool.permission.index, toolset.index);
        let position = pairs.iter().position(|known| *known == pair).unwrap_or_else(|| {
            pairs.push(pair);
            pairs.len() - 1
        });
        tool.right = permissions + position;
    }
    if permissions <= MAX_PERMISSIONS && permissions + pairs.len() > MAX_PERMISSIONS {
        let place = files.service.toolset.keys().next().map(|name| at(SERVICE, name.span()));
        let message = format!("more than {MAX_PERMISSIONS} permissions, with each that the tools of a toolset need");
        place.into_iter().for_each(|place| report.add(Rule::TooLong, place, message.clone(), None));
    }
}
