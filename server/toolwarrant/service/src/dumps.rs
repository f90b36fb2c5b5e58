//! Keeps the memory of this process, which holds secrets, from core dumps and debuggers.

use std::io;

/// Forbids core dumps. On Linux, files below `/proc` that show memory and open files then belong to
/// root.
pub(crate) fn forbid() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_can_no_longer_be_dumped_or_looked_into() {
        use rustix::process::{DumpableBehavior, Resource, Rlimit, dumpable_behavior, getrlimit};
        super::forbid().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        let Rlimit { current, maximum } = getrlimit(Resource::Core);
        assert_eq!((current, maximum), (Some(0), Some(0)));
    }
}
