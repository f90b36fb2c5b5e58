//! The figures that the system has about this process and its data folder. Reading them blocks.

use crate::data::LAST_BACKUP;
use crate::metric::{self, Metric};
use rustix::fs::statvfs;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::path::Path;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;

/// No value if the system does not tell it.
pub(crate) type SystemFigure = (&'static Metric, Option<String>);

/// Takes 1 µs for each open file, and 20 µs.
pub(crate) fn read_process() -> Vec<SystemFigure> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    // One is open for this list.
    let open = fs::read_dir("/proc/self/fd").map(|open| open.count().saturating_sub(1)).ok();
    let cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok();
    vec![
        (&metric::process_resident_memory_bytes, resident.map(|kib: u64| (kib * 1024).to_string())),
        (&metric::process_open_fds, open.map(|open| open.to_string())),
        (&metric::process_max_fds, getrlimit(Resource::Nofile).current.map(|max| max.to_string())),
        (&metric::process_cpu_seconds_total, cpu.map(|cpu| cpu.as_secs_f64().to_string())),
    ]
}

pub(crate) fn read_folder(folder: &Path) -> Vec<SystemFigure> {
    let disk = statvfs(folder).ok().map(|disk| (disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize));
    let backup = fs::read_to_string(folder.join(LAST_BACKUP)).ok();
    let backup = backup.and_then(|text| text.trim_end().parse::<Timestamp>().ok());
    vec![
        (&metric::disk_available_bytes, disk.map(|(room, _)| room.to_string())),
        (&metric::disk_size_bytes, disk.map(|(_, size)| size.to_string())),
        (&metric::last_backup_timestamp_seconds, backup.map(|at| (at.0 / 1_000).to_string())),
    ]
}
