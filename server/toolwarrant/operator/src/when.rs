//! Times on a command line: a moment, or a time span before or after now.

use clap::Args;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePoint {
    At(Timestamp),
    Span(Duration),
}

impl TimePoint {
    #[must_use]
    pub fn ago(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Span(span) => now.minus(span),
        }
    }

    #[must_use]
    pub fn ahead(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Span(span) => now.plus(span),
        }
    }
}

impl FromStr for TimePoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        span(text).map(Self::Span).or_else(|| text.parse().ok().map(Self::At)).ok_or(
            "expected a time span such as 30m, 12h or 90d, a day such as 2026-12-31, or a time such as 2026-12-31T18:00Z",
        )
    }
}

/// A range of time, in the past.
#[derive(Clone, Copy, Debug, Default, Args, Serialize, Deserialize)]
pub struct TimeRange {
    /// Only those at this time or later: 2h, 2026-11-22, or 2026-11-22T18:00 with Z or +02:00
    #[arg(long, value_name = "TIME")]
    pub since: Option<TimePoint>,
    /// Only those before this time, in the same forms
    #[arg(long, value_name = "TIME")]
    pub until: Option<TimePoint>,
}

impl TimeRange {
    /// Returns the beginning, and the end, which is excluded.
    #[must_use]
    pub fn moments(self, now: Timestamp) -> [Option<Timestamp>; 2] {
        [self.since, self.until].map(|at| at.map(|at| at.ago(now)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyEnd {
    Never,
    At(TimePoint),
}

impl KeyEnd {
    #[must_use]
    pub fn moment(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Never => None,
            Self::At(at) => Some(at.ahead(now)),
        }
    }
}

impl FromStr for KeyEnd {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let end = match text {
            "never" => Some(Self::Never),
            days if is_number => span(&format!("{days}d")).map(|span| Self::At(TimePoint::Span(span))),
            text => text.parse().ok().map(Self::At),
        };
        // A longer time span could lead to a moment that has no text.
        end.filter(|end| !matches!(end, Self::At(TimePoint::Span(span)) if *span > SPAN_MAX)).ok_or(
            "expected a number of days up to 365000, a time span such as 12h or 90d, a day such as 2026-12-31 and before 9999-12-31, a time such as 2026-12-31T18:00Z, or never",
        )
    }
}

const SPAN_MAX: Duration = Duration::from_hours(365_000 * 24);

pub(crate) fn span(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    let number = Some(number).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))?;
    number.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_span_a_day_or_a_moment() {
        let now = Timestamp(1_800_000_000_000);
        for (text, ago) in [
            ("30m", Some(now.0 - 1_800_000)),
            ("0s", Some(now.0)),
            ("2w", Some(now.0 - 1_209_600_000)),
            ("1970-01-02", Some(86_400_000)),
            ("1970-01-01T18:00Z", Some(64_800_000)),
            ("1970-01-01T18:00:01.5+01:00", Some(61_201_500)),
            ("", None),
            ("h", None),
            ("12", None),
            ("-1h", None),
            ("1.5h", None),
            ("9é", None),
            ("99999999999999999999d", None),
            ("18446744073709551615w", None),
            ("2026-13-01", None),
            ("2026-12-31T18:00", None),
        ] {
            assert_eq!(text.parse::<TimePoint>().ok().map(|when| when.ago(now).0), ago, "{text}");
        }
        for (text, is_end) in [
            ("365000", true),
            ("9999-12-30", true),
            ("365001", false),
            ("365001d", false),
            ("99999999999999999999", false),
            ("9999-12-31", false),
        ] {
            assert_eq!(text.parse::<KeyEnd>().is_ok(), is_end, "{text}");
        }
        assert_eq!("12h".parse::<TimePoint>().unwrap().ahead(now), now.plus(Duration::from_hours(12)));
    }
}
