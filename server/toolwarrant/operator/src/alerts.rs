//! The alert rules of a service, for Prometheus: `files/rules.yml`. In it, `$NAME` stands for the
//! metric of that name, and `$program` for the program. Start at [`rules`].
//!
//! No rule finds that a program is down: that is `up`, whose `job` only the operator's own
//! configuration knows. If a program is up and not ready, the rule of the reason fires.

use crate::metric::TABLE;
use crate::names::Names;

const RULES: &str = include_str!("files/rules.yml");

/// Returns a file of rules in YAML, with one group that has the name of the program. The `$` of a
/// name without a metric stays; a test finds it.
#[must_use]
pub fn rules(names: &Names) -> String {
    let mut parts = RULES.split('$');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let prefix = match TABLE.iter().find(|metric| metric.name == name) {
            Some(metric) => metric.prefix(names),
            None if name == "program" => return text + names.program + rest,
            None => "$",
        };
        text + prefix + name + rest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_all_parts_and_names_only_metrics_of_the_table() {
        let rules = rules(&Names::of("print-shop", "1.0.0"));
        assert!(!rules.contains('$'), "{rules}");
        assert!(
            rules.contains("print_shop_tasks_ended_total{") && rules.contains("Run `print-shop doctor`"),
            "{rules}"
        );
        let all = rules.matches("\n  - alert: ").count();
        for part in ["expr: ", "for: ", "labels: {severity: ", "annotations:\n      summary: "] {
            assert_eq!(rules.matches(&format!("\n    {part}")).count(), all, "{part}");
        }
    }
}
