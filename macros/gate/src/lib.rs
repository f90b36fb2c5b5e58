//! The gate of a contract: it compares two records and says whom a change hurts.
