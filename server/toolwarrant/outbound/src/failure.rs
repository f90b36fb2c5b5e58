//! An exchange without an answer: the cause, and the certainty that no byte of the request has
//! left. Start at [`HttpFailure::nothing_left`].

use std::error::Error;
use std::io;
use std::time::Duration;

pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// The reason why an exchange has no answer. The texts may quote the other side's certificate, but
/// nothing that was sent.
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
    /// The request was no longer allowed to leave when the connection was ready.
    #[error("its time had passed when the connection stood")]
    TooLate,
    /// The connection ended before the whole answer, for this reason.
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
    /// Returns true if no byte of the request has left, or can leave later. `false` means that this
    /// is unknown.
    #[must_use]
    pub fn nothing_left(&self) -> bool {
        match self {
            Self::Refused | Self::Unreachable(_) | Self::Certificate(_) | Self::TooLate => true,
            Self::Lost(_) | Self::Late(_) | Self::TooLarge(_) => false,
        }
    }

    /// Takes a connect error of the library to mean that no connection got the request.
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

    /// Converts the failure of a request of which the gate let no byte pass.
    pub(super) fn while_nothing_left(self) -> Self {
        match self {
            Self::Lost(why) => Self::Unreachable(why),
            Self::Late(deadline) => Self::Unreachable(format!("there is no connection after {} s", deadline.as_secs())),
            other => other,
        }
    }
}

pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| Error::source(*error))
}

/// Looks into I/O errors for TLS errors, which their `source` skips.
fn certificate_fault<'a>(cause: &'a (dyn Error + 'static)) -> Option<String> {
    let inside = |cause: &&'a (dyn Error + 'static)| -> Option<&'a (dyn Error + 'static)> {
        Some(cause.downcast_ref::<io::Error>()?.get_ref()?)
    };
    let fault = std::iter::successors(Some(cause), inside).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    matches!(fault, rustls::Error::InvalidCertificate(_)).then(|| fault.to_string())
}
