//! What the system says of processes.

use std::fs;

/// What a process takes at a moment.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Resident memory, in KiB.
    pub(crate) memory: u64,
    pub(crate) files: u64,
    pub(crate) threads: u64,
}

impl Sample {
    /// Nothing if the process has ended.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().trim_end_matches(" kB").parse().ok()
        };
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count();
        Some(Self { memory: value("VmRSS:")?, files: files as u64, threads: value("Threads:")? })
    }
}

/// Whether the environment or the command line of a process contains a text.
pub(crate) fn is_marked(process: u32, mark: &str) -> bool {
    ["environ", "cmdline"].iter().any(|file| {
        let content = fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
        content.windows(mark.len()).any(|window| window == mark.as_bytes())
    })
}

/// The processes with a text in their environment or command line.
pub(crate) fn marked(mark: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("the system has /proc");
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number| is_marked(*number, mark)).collect()
}
