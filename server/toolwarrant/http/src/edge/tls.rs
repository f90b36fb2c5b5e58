//! The server's own TLS: a certificate and its key from two files, which are read again when they
//! change.
//!
//! The server does not start with an unusable pair. If a later pair is unusable, it continues with
//! the previous one, and a warning says why. All functions except [`Tls::watch`] may block. Start
//! at [`Tls::load`].

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use toolwarrant_base::ignore_poison;
use toolwarrant_base::secret_file::SecretFile;

pub const TLS_CERT: &str = "tls-cert";

pub const TLS_KEY: &str = "tls-key";

const LOOK_EVERY: Duration = Duration::from_secs(10);

pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    pair: Mutex<Pair>,
}

struct Pair {
    /// The last contents, usable or not, or the error of reading them.
    read: Result<Contents, TlsError>,
    config: Arc<ServerConfig>,
}

#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    warning: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--{0}")]
pub struct TlsError(String);

impl Tls {
    /// Reads a certificate, optionally with intermediate ones, and its key, both in PEM format.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Arc<Self>, TlsError> {
        let contents = Contents::read(&certificate, &key)?;
        let config = contents.config(&certificate, &key)?;
        Ok(Arc::new(Self { certificate, key, pair: Mutex::new(Pair { read: Ok(contents), config }) }))
    }

    pub fn reload(&self) {
        let read = Contents::read(&self.certificate, &self.key);
        if read == self.pair().read {
            return;
        }
        let config = read.as_ref().map_err(Clone::clone).and_then(|new| new.config(&self.certificate, &self.key));
        let mut pair = self.pair();
        match config {
            Ok(config) => {
                pair.config = config;
                tracing::info!(certificate = %self.certificate.display(), "the certificate was read again");
            }
            Err(error) => tracing::warn!(%error, "the new certificate cannot be used; the previous one stays in use"),
        }
        pair.read = read;
    }

    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            sleep(LOOK_EVERY).await;
            let tls = Arc::clone(&self);
            // A read that hangs on a faulty disk blocks only this task.
            let _ = spawn_blocking(move || tls.reload()).await;
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.pair().config).into()
    }

    fn pair(&self) -> MutexGuard<'_, Pair> {
        ignore_poison(self.pair.lock())
    }
}

impl Contents {
    fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let certificate = fs::read(certificate).map_err(|error| unreadable(TLS_CERT, certificate, &error))?;
        let mut secret = Vec::new();
        let opened = SecretFile::open(key).and_then(|SecretFile { mut file, warning }| {
            file.read_to_end(&mut secret)?;
            Ok(warning)
        });
        let warning = opened.map_err(|error| unreadable(TLS_KEY, key, &error))?;
        Ok(Self { certificate, key: secret, warning })
    }

    fn config(&self, certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
        let not_pem = |flag, file: &Path, expected| {
            TlsError(format!("{flag} {}: expected {expected} in PEM format", file.display()))
        };
        let chain = CertificateDer::pem_slice_iter(&self.certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| not_pem(TLS_CERT, certificate, "a certificate"))?;
        let secret = PrivateKeyDer::from_pem_slice(&self.key).ok();
        let secret = secret.ok_or_else(|| not_pem(TLS_KEY, key, "a private key without a password"))?;
        let unfit = |error: rustls::Error| {
            let (certificate, key) = (certificate.display(), key.display());
            TlsError(format!("{TLS_CERT} {certificate} and --{TLS_KEY} {key} do not go together: {error}"))
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_protocol_versions(rustls::ALL_VERSIONS).map_err(unfit)?;
        let mut config = builder.with_no_client_auth().with_single_cert(chain, secret).map_err(unfit)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if let Some(warning) = &self.warning {
            tracing::warn!(key = %key.display(), "{warning}");
        }
        Ok(Arc::new(config))
    }
}

fn unreadable(flag: &'static str, file: &Path, error: &io::Error) -> TlsError {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "this program may not read it".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder; a file is expected".to_owned(),
        _ => error.to_string(),
    };
    TlsError(format!("{flag} {}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test(start_paused = true)]
    async fn files_that_change_are_read_again_by_themselves() {
        let home = tempfile::tempdir().expect("a temporary folder");
        let [certificate, key] = ["certificate", "key"].map(|name| home.path().join(name));
        let write = || {
            let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
            fs::write(&certificate, signed.cert.pem()).expect("written");
            fs::write(&key, signed.signing_key.serialize_pem()).expect("written");
            fs::set_permissions(&key, Permissions::from_mode(0o600)).expect("it is ours");
        };
        write();
        let tls = Tls::load(certificate.clone(), key.clone()).expect("usable");
        let current = || Arc::clone(&tls.pair().config);
        let watch = tokio::spawn(Arc::clone(&tls).watch());
        let first = current();
        sleep(5 * LOOK_EVERY).await;
        assert!(Arc::ptr_eq(&first, &current()), "nothing has changed");
        write();
        sleep(5 * LOOK_EVERY).await;
        let second = current();
        assert!(!Arc::ptr_eq(&first, &second));
        fs::write(&key, "nonsense").expect("written");
        sleep(5 * LOOK_EVERY).await;
        assert!(Arc::ptr_eq(&second, &current()), "the previous one stays in use");
        watch.abort();
    }
}
