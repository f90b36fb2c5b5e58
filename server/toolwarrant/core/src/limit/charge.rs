//! The answers of a budget.

/// A request that was admitted before its messages were counted. If this is dropped, the request
/// stays charged.
#[derive(Clone, Copy, Debug)]
pub struct HeadCharge(
    /// The tick in which it was logged.
    pub(super) u64,
);

/// The error that the budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// Seconds until the same requests fit, if no others arrive; at least 1.
    pub seconds: u64,
}

/// The reason why requests are not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The budget is spent.
    Spent(RetryAfter),
    /// This replica holds too little of the budget, and does not know how much is free.
    Unknown,
}
