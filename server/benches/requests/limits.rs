//! The most that a request may take. Whoever makes one cheaper lowers its limit; a table says where one has become loose.

/// The most of one operation, some percent above what was counted last.
pub(crate) struct Limit {
    pub(crate) operation: &'static str,
    /// SHA-256 in software included.
    pub(crate) instructions: f64,
    pub(crate) allocations: f64,
    pub(crate) clock_readings: f64,
}

const fn limit(operation: &'static str, instructions: f64, allocations: f64, clock_readings: f64) -> Limit {
    Limit { operation, instructions, allocations, clock_readings }
}

/// What callgrind may count.
pub(crate) const LIMITS: [Limit; 9] = [
    limit("initialize", 90_000.0, 40.0, 20.0),
    limit("tools/list", 90_000.0, 40.0, 20.0),
    limit("get_device", 90_000.0, 40.0, 20.0),
    limit("list_devices", 900_000.0, 400.0, 20.0),
    limit("get_device 2025-06-18", 90_000.0, 40.0, 20.0),
    limit("get_device 2025-11-25", 90_000.0, 40.0, 20.0),
    limit("get_device 2026-07-28", 90_000.0, 40.0, 20.0),
    limit("get_device signed", 120_000.0, 60.0, 30.0),
    limit("set_power", 900_000.0, 900.0, 100.0),
];
