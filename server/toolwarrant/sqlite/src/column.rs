//! Rows and columns: times as columns hold them, and errors that name the place of a wrong value.

use super::fault::Fault;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_tasks::task::TaskId;

/// Names the table, the row and the column of a value that does not fit.
pub(super) fn read<T>(
    table: &str,
    row: &Row<'_>,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<T, Fault> {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType};
    read(row).map_err(|error| {
        let (number, why) = match &error {
            IntegralValueOutOfRange(number, value) => (*number, format!("{value} is out of range")),
            InvalidColumnType(number, _, kind) => (*number, format!("its type is {kind}")),
            FromSqlConversionFailure(number, ..) => (*number, error.to_string()),
            _ => return error.into(),
        };
        let column = row.as_ref().column_name(number).unwrap_or_default();
        let key = match row.get_ref(0) {
            Ok(ValueRef::Integer(number)) => number.to_string(),
            Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
            Ok(ValueRef::Blob(id)) => {
                id.try_into().map_or_else(|_| "?".to_owned(), |id| TaskId::from_bytes(id).to_string())
            }
            _ => "?".to_owned(),
        };
        Fault::corrupt(format!(
            "the table {table} cannot be read: in the row {key}, the column {column} is wrong: {why}"
        ))
    })
}

pub(super) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

pub(super) fn moment(millis: i64) -> Timestamp {
    Timestamp(u64::try_from(millis).unwrap_or(0))
}
