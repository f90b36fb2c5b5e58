//! The most that a request may take. Whoever makes one cheaper lowers its limit; a table says where one has become loose.

/// The most of one operation, some percent above what was counted last.
pub(crate) struct Limit {
    pub(crate) operation: &'static str,
    /// In the thread that serves the request, SHA-256 in software included.
    pub(crate) instructions: f64,
    /// In all other threads, which do their part by the second: it depends on how many requests a second has.
    pub(crate) elsewhere: f64,
    /// In all threads.
    pub(crate) allocations: f64,
    /// In all threads. Some of them come by the second, too.
    pub(crate) clock_readings: f64,
}

const fn limit(operation: &'static str, of: [f64; 4]) -> Limit {
    let [instructions, elsewhere, allocations, clock_readings] = of;
    Limit { operation, instructions, elsewhere, allocations, clock_readings }
}

/// What callgrind may count.
pub(crate) const LIMITS: [Limit; 9] = [
    limit("initialize", [50_100.0, 500.0, 21.6, 14.2]),
    limit("tools/list", [45_500.0, 500.0, 21.6, 14.2]),
    limit("get_device", [56_700.0, 15_000.0, 29.0, 19.6]),
    limit("list_devices", [1_348_000.0, 15_000.0, 1_622.0, 22.0]),
    limit("get_device 2025-06-18", [60_000.0, 15_000.0, 32.1, 19.6]),
    limit("get_device 2025-11-25", [60_100.0, 15_000.0, 32.6, 19.6]),
    limit("get_device 2026-07-28", [74_200.0, 15_000.0, 36.2, 19.6]),
    limit("get_device signed", [138_300.0, 15_300.0, 56.0, 23.0]),
    limit("set_power", [419_000.0, 540_000.0, 500.0, 180.0]),
];
