//! An exchange without an answer: what happened, and whether any of the request can have left. What to do about it, the caller knows.

use std::error::Error;
use std::io;
use std::time::Duration;

/// Time until there is a TCP connection.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// Why an exchange has no answer. The texts may quote the other side's certificate, and quote nothing that was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpFailure {
    /// Nothing listens there.
    #[error("nothing listens there")]
    Refused,
    /// There was no connection, for this reason.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The certificate is not trusted, for this reason.
    #[error("the certificate is not trusted: {0}")]
    Certificate(String),
    /// The request was not to leave any more when the connection stood.
    #[error("its time had passed when the connection stood")]
    TooLate,
    /// The connection ended, for this reason.
    #[error("the connection ended before the answer was whole: {0}")]
    Lost(String),
    /// The deadline has passed.
    #[error("there was no whole answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The answer is larger than this many bytes.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

impl HttpFailure {
    /// Whether it is certain that no byte of the request has left, or will. `false` says nothing.
    #[must_use]
    pub fn nothing_left(&self) -> bool {
        match self {
            Self::Refused | Self::Unreachable(_) | Self::Certificate(_) | Self::TooLate => true,
            Self::Lost(_) | Self::Late(_) | Self::TooLarge(_) => false,
        }
    }

    /// What an error of the library says. Where it calls one an error of connecting, the request was not handed to a connection.
    pub(super) fn of(error: &hyper_util::client::legacy::Error) -> Self {
        if !error.is_connect() {
            return Self::Lost(innermost(error));
        }
        if let Some(why) = causes(error).find_map(certificate_fault) {
            return Self::Certificate(why);
        }
        let io = causes(error).find_map(|cause| cause.downcast_ref()).map(io::Error::kind);
        match io {
            Some(io::ErrorKind::ConnectionRefused) => Self::Refused,
            Some(io::ErrorKind::TimedOut) => {
                Self::Unreachable(format!("there is no connection after {} s", CONNECT.as_secs()))
            }
            _ => Self::Unreachable(innermost(error)),
        }
    }

    /// The same failure where the gate says that nothing has left.
    pub(super) fn while_nothing_left(self) -> Self {
        match self {
            Self::Lost(why) => Self::Unreachable(why),
            Self::Late(deadline) => Self::Unreachable(format!("there is no connection after {} s", deadline.as_secs())),
            other => other,
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
