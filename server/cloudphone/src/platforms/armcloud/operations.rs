//! The progress of a task that the platform has accepted (`padTaskDetail`).

use super::api::{Api, ApiCall, ApiError, Number, Rows, Text};
use serde::Deserialize;
use serde_json::json;
use serde_with::As;
use toolwarrant::tasks::Sent;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(default, deserialize_with = "As::<Number>::deserialize")]
    task_id: Option<i64>,
    #[serde(default, deserialize_with = "As::<Text>::deserialize")]
    pad_code: Option<String>,
    #[serde(default, deserialize_with = "As::<Number>::deserialize")]
    task_status: Option<i64>,
    #[serde(default, deserialize_with = "As::<Text>::deserialize")]
    task_result: Option<String>,
    #[serde(default, deserialize_with = "As::<Text>::deserialize")]
    error_msg: Option<String>,
}

/// Reads the report about a task, and the output of a command. The report does not yet prove an
/// effect on the phone. A new task may be absent for a moment. Another pad may have the task, if
/// the platform has begun its numbers again.
pub(super) async fn look_up(api: &Api, task_id: i64, pad_code: &str) -> Result<(Sent, String), ApiError> {
    let asked = json!({"taskIds": [task_id]});
    let rows: Rows<Row> = api.read(ApiCall::TaskDetail, &asked).await?;
    let row = rows.rows.into_iter().find(|row| row.is_of(task_id, pad_code));
    Ok(row.map_or_else(|| (Sent::Pending(task_id.to_string()), String::new()), Row::report))
}

impl Row {
    fn is_of(&self, task_id: i64, pad_code: &str) -> bool {
        self.task_id == Some(task_id) && self.pad_code.as_ref().is_none_or(|code| code == pad_code)
    }

    /// Interprets the status: 1 waiting, 2 running, 3 done, 9 queued, -1 all failed, -2 part
    /// failed, -3 cancelled, -4 timed out, -5 abnormal. For one pad, "part failed" is not
    /// conclusive, and neither is an unknown number. No status is known to pass, so the engine does
    /// not send again.
    fn report(self) -> (Sent, String) {
        let Self { task_id, pad_code: _, task_status, task_result, error_msg } = self;
        let [result, error] = [task_result, error_msg].map(|text| text.filter(|text| !text.is_empty()));
        let sent = match task_status {
            // The output of a command is in either of them.
            Some(3) => return (Sent::Ok, [result, error].into_iter().flatten().collect::<Vec<_>>().join("\n")),
            Some(-1 | -3) => Sent::Err(error.or(result).unwrap_or_default().into()),
            Some(status) if status < 0 => Sent::Unsure(format!("the task ended with status {status}").into()),
            _ => Sent::Pending(task_id.unwrap_or_default().to_string()),
        };
        (sent, String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarrant::base::json;

    #[test]
    fn a_task_of_another_pad_is_not_seen_and_the_output_is_in_either_text() {
        let row = |more: &str| json::read::<Row>(&format!(r#"{{"taskId":"7","taskStatus":3{more}}}"#)).unwrap();
        for (more, is_ours) in
            [("", true), (r#","padCode":null"#, true), (r#","padCode":"AC1""#, true), (r#","padCode":"AC2""#, false)]
        {
            assert_eq!(row(more).is_of(7, "AC1"), is_ours, "{more}");
        }
        assert!(!row("").is_of(8, "AC1"));
        for (more, output) in [
            (r#","taskResult":"out""#, "out"),
            (r#","errorMsg":"out""#, "out"),
            (r#","taskResult":"Success","errorMsg":"out""#, "Success\nout"),
        ] {
            assert_eq!(row(more).report(), (Sent::Ok, output.to_owned()));
        }
    }
}
