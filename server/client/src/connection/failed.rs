//! An exchange without an answer: how far it got, and what that means for a repeat.

use super::{CONNECT, EXCHANGE, LARGEST_ANSWER, RETRY_SECONDS, Repeat};
use crate::error::ClientError;
use crate::server_url::ServerUrl;
use std::error::Error;
use std::io;

/// Why an exchange has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nothing listens there.
    Refused,
    /// There is no connection, for this reason.
    Unreachable(String),
    /// The certificate is not trusted, for this reason.
    Certificate(String),
    /// The connection ended, for this reason.
    Lost(String),
    /// The deadline has passed.
    Late,
    /// The answer is too large.
    TooLarge,
}

impl Failed {
    /// Finds out how far an exchange got.
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        if let Some(why) = causes(error).find_map(certificate_fault) {
            return Self::Certificate(why);
        }
        let connecting = error.downcast_ref().is_some_and(hyper_util::client::legacy::Error::is_connect);
        let io = causes(error).find_map(|cause| cause.downcast_ref()).map(io::Error::kind);
        match (connecting, io) {
            (true, Some(io::ErrorKind::ConnectionRefused)) => Self::Refused,
            (true, Some(io::ErrorKind::TimedOut)) => {
                Self::Unreachable(format!("there is no connection after {} s", CONNECT.as_secs()))
            }
            (true, _) => Self::Unreachable(innermost(error)),
            (false, _) => Self::Lost(innermost(error)),
        }
    }

    /// What is wrong, and what to do.
    pub(super) fn explain(self, url: &ServerUrl, repeat: Repeat) -> ClientError {
        let unreachable = |why: &str| {
            let message = format!(
                "No server can be reached at {url}: {why}. Nothing was sent. Repeat the call later; if that does not help, the server must \
                 be started, or --url corrected."
            );
            ClientError::retryable("unreachable", message, RETRY_SECONDS)
        };
        let unanswered = |what: String| match repeat {
            Repeat::Harmless => {
                ClientError::retryable("no_answer", format!("{what} Repeat the call later."), RETRY_SECONDS)
            }
            Repeat::Never => {
                let unknown = "Whether the call was carried out is unknown: before any repeat, read what it acts on.";
                ClientError::final_one("no_answer", format!("{what} {unknown}"))
            }
        };
        match self {
            Self::Refused => unreachable("nothing listens there"),
            Self::Unreachable(why) => unreachable(&why),
            Self::Certificate(why) => {
                let remedy = "Correct --url, or let the system trust the authority that signed it.";
                let message = format!("The certificate of {url} is not trusted: {why}. Nothing was sent. {remedy}");
                ClientError::final_one("untrusted_server", message)
            }
            Self::Lost(why) => unanswered(format!("The connection to {url} ended before the answer came: {why}.")),
            Self::Late => unanswered(format!("{url} did not answer within {} s.", EXCHANGE.as_secs())),
            Self::TooLarge => {
                let message =
                    format!("The answer is larger than {} MiB. Ask for less at a time.", LARGEST_ANSWER >> 20);
                ClientError::final_one("answer_too_large", message)
            }
        }
    }
}

/// The innermost reason, which says most.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| Error::source(*error))
}

/// What is wrong with a server's certificate, if that is what `cause` is about. TLS errors stand inside of input and output errors,
/// which pass over them when they are asked for their cause.
fn certificate_fault<'a>(cause: &'a (dyn Error + 'static)) -> Option<String> {
    let inside = |cause: &&'a (dyn Error + 'static)| -> Option<&'a (dyn Error + 'static)> {
        Some(cause.downcast_ref::<io::Error>()?.get_ref()?)
    };
    let fault = std::iter::successors(Some(cause), inside).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    matches!(fault, rustls::Error::InvalidCertificate(_)).then(|| fault.to_string())
}
