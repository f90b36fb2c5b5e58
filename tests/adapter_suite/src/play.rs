//! One case: the call, the wait for its end, and the comparison.

use crate::case::{Mishap, Operation};
use crate::judge::{CaseEnd, judge};
use crate::rig::Rig;
use serde_json::{Value, json};

/// Returns `None` if the platform cannot have this fault.
pub(crate) async fn carry_out(rig: &Rig, operation: Operation, fault: Mishap) -> Option<CaseEnd> {
    let device = rig.double.stage(operation, fault).await?;
    let before = rig.double.deeds(&device).await.len();
    let (tool, arguments) = operation.call(&device);
    let mut told = rig.call(tool, arguments).await;
    if let Ok(task) = &told
        && operation != Operation::Session
    {
        let id = task["task_id"].clone();
        while let Ok(task) = &told
            && task["terminal"] != true
        {
            // The server holds the answer until the task ends, on the clock that `pass` moves.
            told = rig.call("get_task", json!({"task_id": id, "wait_seconds": 50})).await;
        }
    }
    let deeds = rig.double.deeds(&device).await.split_off(before);
    let lacks = rig.double.lacks(operation);
    Some(judge((operation, lacks), fault, told, &deeds))
}

impl Rig {
    #[expect(clippy::expect_used, reason = "a suite without answers must fail")]
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let params = json!({"name": tool, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = self.http.post(&self.server.url).header("content-type", "application/json");
        let request = request.header("x-api-key", &self.key.id).header("x-api-secret", &self.key.secret);
        let answer = request.body(body.to_string()).send().await.expect("an answer").bytes().await.expect("a body");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
        let value = serde_json::from_str(text).expect("JSON in the text");
        if answer["result"]["isError"] == true { Err(value) } else { Ok(value) }
    }
}
