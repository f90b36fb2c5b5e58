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
    limit("initialize", [36_400.0, 500.0, 6.6, 9.9]),
    limit("tools/list", [47_300.0, 500.0, 6.6, 9.9]),
    limit("get_device", [41_900.0, 14_500.0, 10.9, 14.2]),
    limit("list_devices", [74_700.0, 14_500.0, 17.2, 15.5]),
    limit("get_device 2025-06-18", [43_000.0, 14_500.0, 11.9, 14.2]),
    limit("get_device 2025-11-25", [43_100.0, 14_500.0, 11.9, 14.2]),
    limit("get_device 2026-07-28", [51_500.0, 14_500.0, 15.0, 14.2]),
    limit("get_device signed", [76_500.0, 14_500.0, 35.3, 17.2]),
    limit("set_power", [410_000.0, 540_000.0, 450.0, 180.0]),
];
