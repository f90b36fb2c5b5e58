//! The list of jobs: `spec/tools/jobs.toml`. A job is a task, so the framework stores it.

use crate::contract::{Job, JobId, JobPage, JobState, JobsTools, ListJobsArgs, ListJobsError, PrinterId, TrayId};
use crate::shop::Shop;
use toolwarrant::handler::{Call, Reply};
use toolwarrant::tasks::{TaskQuery, TaskStatus, TaskView};

impl JobsTools for Shop {
    async fn list_jobs(&self, call: &Call<'_>, args: ListJobsArgs) -> Result<Reply<JobPage>, ListJobsError> {
        let ListJobsArgs { state, printer_id, tray_id, after, limit } = args;
        let printer = printer_id.as_ref().map(|id| ("printer", id.as_str()));
        let (resource, target) = printer.or(tray_id.as_ref().map(|id| ("tray", id.as_str()))).unzip();
        let status = state.and_then(|state| TaskStatus::ALL.iter().copied().find(|it| it.as_str() == state.as_str()));
        let (before, limit) = (after.as_ref().map(JobId::as_str), u16::try_from(limit.get()).unwrap_or_default());
        let page = call.tasks(TaskQuery { status, resource, target, before, limit }).await;
        let page = page.map_err(|error| ListJobsError::Internal(error.to_string().into()))?;
        let jobs = page.tasks.iter().map(job).collect::<Option<_>>();
        let jobs = jobs.ok_or_else(|| ListJobsError::Internal("a job does not fit the contract".into()))?;
        Ok(JobPage { jobs, next: page.next.and_then(|id| JobId::new(&id).ok()) }.into())
    }
}

/// Returns `None` if an earlier contract accepted what this one does not admit.
fn job(task: &TaskView) -> Option<Job> {
    let on = |resource: &str| (task.resource == resource).then_some(task.target.as_str());
    Some(Job {
        task_id: JobId::new(&task.id).ok()?,
        printer_id: on("printer").map(PrinterId::new).transpose().ok()?,
        tray_id: on("tray").map(TrayId::new).transpose().ok()?,
        state: JobState::ALL.iter().copied().find(|state| state.as_str() == task.status.as_str())?,
        created_at: task.created_at,
    })
}
