//! The limits of a request. A change that makes a request cheaper should lower its limit.

/// Some percent above the last count.
pub(crate) struct Limit {
    pub(crate) operation: &'static str,
    /// SHA-256 in software included.
    pub(crate) instructions: f64,
    /// In threads that work once a second, so it depends on the number of requests per second.
    pub(crate) elsewhere: f64,
    pub(crate) allocations: f64,
    /// Some come once a second, too.
    pub(crate) clock_readings: f64,
}

const fn limit(operation: &'static str, of: [f64; 4]) -> Limit {
    let [instructions, elsewhere, allocations, clock_readings] = of;
    Limit { operation, instructions, elsewhere, allocations, clock_readings }
}

pub(crate) const LIMITS: [Limit; 9] = [
    limit("initialize", [36_400.0, 500.0, 9.8, 9.9]),
    limit("tools/list", [47_300.0, 500.0, 9.9, 9.9]),
    limit("get_device", [42_500.0, 14_500.0, 13.2, 14.2]),
    limit("list_devices", [68_800.0, 14_500.0, 21.0, 15.5]),
    limit("get_device 2025-06-18", [44_500.0, 14_500.0, 16.5, 14.2]),
    limit("get_device 2025-11-25", [44_500.0, 14_500.0, 16.5, 14.2]),
    limit("get_device 2026-07-28", [53_200.0, 14_500.0, 19.8, 14.2]),
    limit("get_device signed", [71_000.0, 14_500.0, 28.6, 17.2]),
    limit("set_power", [410_000.0, 540_000.0, 450.0, 180.0]),
];
