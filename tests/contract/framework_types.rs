//! A contract whose own tools take and return the types of the framework: `framework_types/`.

use jobs::{Evidence, IdempotencyKey, Job, JobPage, Permission, Probe, Refund, TaskId, TaskStatus, UpstreamReport};
use serde_json::{Value, json};
use toolwarrant::Timestamp;

pub(crate) mod jobs {
    toolwarrant::contract!("../../tests/contract/framework_types");
}

fn list_jobs() -> &'static toolwarrant::contract::ToolDef {
    jobs::CATALOGUE.tools.iter().find(|tool| tool.name == "list_jobs").expect("a tool of the contract")
}

#[test]
fn a_result_holds_the_types_of_the_framework_as_its_schema_says() {
    let job = Job {
        job_id: TaskId::new(&format!("task_{}", "0".repeat(32))).expect("an id"),
        key: IdempotencyKey::new("k").ok(),
        status: TaskStatus::FailedSilent,
        evidence: Some(Evidence {
            checked: "light".to_owned(),
            expected: "on".into(),
            observed: "off".into(),
            reported: UpstreamReport::NoAnswer,
            checked_at: Timestamp(0),
        }),
        refund: Some(Refund { units: 1, refunded_at: Timestamp(0) }),
        readers: vec![Permission::Look, Permission::Switch],
        probe: Probe::Light,
    };
    let page = serde_json::to_value(JobPage { jobs: vec![job.clone(), Job { evidence: None, refund: None, ..job }] });
    let page = page.expect("JSON");
    let job = &page["jobs"][0];
    assert_eq!(job["status"], "failed_silent");
    assert_eq!(job["evidence"]["reported"], "no_answer");
    assert_eq!((&job["readers"], &job["probe"]), (&json!(["look", "switch"]), &json!("light")));
    let schema: Value = serde_json::from_str(list_jobs().output_schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(validator.is_valid(&page), "{page} does not fit {schema}");
}
