//! Reading tasks: `spec/tools/tasks.toml`.

use crate::framework::handler::Call;
use crate::framework::reply::Reply;
use crate::phones::contract::{GetTaskArgs, GetTaskError, Task, TasksTools};
use crate::phones::devices::Phones;

impl TasksTools for Phones {
    async fn get_task(&self, _: &Call<'_>, _: GetTaskArgs) -> Result<Reply<Task>, GetTaskError> {
        Err(GetTaskError::NotFound { what: "no such task for this application".into() })
    }
}
