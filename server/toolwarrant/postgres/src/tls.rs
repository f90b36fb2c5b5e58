//! Encryption of connections, to which SCRAM binds the session. The certificate of the server is
//! always verified, with its name: by the authorities that the system trusts, or by those in a
//! file.

use crate::stream::ServerStream;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{AlgorithmIdentifier, CertificateDer, InvalidDnsNameError, ServerName, alg_id};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(Clone)]
pub(crate) struct Encryption(TlsConnector);

pub(crate) struct EncryptionTo(TlsConnector, ServerName<'static>);

pub(crate) fn make_encryption(authorities: Option<&Path>) -> Result<Encryption, String> {
    let failed = |error: rustls::Error| format!("cannot set up TLS: {error}");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    let config = match authorities {
        None => config.with_platform_verifier().map_err(failed)?,
        Some(path) => config.with_root_certificates(read(path)?),
    };
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(Encryption(Arc::new(config).into()))
}

fn read(path: &Path) -> Result<RootCertStore, String> {
    let wrong = |why: String| format!("`sslrootcert` {}: {why}", path.display());
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let added = certificate.ok().and_then(|certificate| authorities.add(certificate).ok());
        added.ok_or_else(|| wrong("it has a certificate that cannot be read".to_owned()))?;
    }
    match authorities.is_empty() {
        true => Err(wrong("it has no certificate in PEM format".to_owned())),
        false => Ok(authorities),
    }
}

impl MakeTlsConnect<Socket> for Encryption {
    type Stream = ServerStream<TlsStream<Socket>>;
    type TlsConnect = EncryptionTo;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<EncryptionTo, InvalidDnsNameError> {
        Ok(EncryptionTo(self.0.clone(), ServerName::try_from(host)?.to_owned()))
    }
}

impl TlsConnect<Socket> for EncryptionTo {
    type Stream = ServerStream<TlsStream<Socket>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let inner = self.0.connect(self.1, socket).await?;
            let certificates = inner.get_ref().1.peer_certificates();
            let end_point = certificates.and_then(|certificates| hash(certificates.first()?));
            Ok(ServerStream { inner, end_point, head: None })
        })
    }
}

/// Returns what RFC 5929 calls `tls-server-end-point`. Its algorithm is that of the signature.
fn hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let (parts, _) = split(certificate)?;
    let (_, signature) = split(parts)?;
    let (algorithm, _) = split(signature)?;
    let is = |one: AlgorithmIdentifier, other: AlgorithmIdentifier| [&*one, &*other].contains(&algorithm);
    match () {
        () if is(alg_id::ECDSA_SHA256, alg_id::RSA_PKCS1_SHA256) => Some(Sha256::digest(certificate).to_vec()),
        () if is(alg_id::ECDSA_SHA384, alg_id::RSA_PKCS1_SHA384) => Some(Sha384::digest(certificate).to_vec()),
        () if is(alg_id::ECDSA_SHA512, alg_id::RSA_PKCS1_SHA512) => Some(Sha512::digest(certificate).to_vec()),
        () => None,
    }
}

/// Returns the content of a value in DER, and the bytes after the value.
fn split(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([_, length], rest) = der.split_first_chunk()?;
    let (long, rest) = rest.split_at_checked(usize::from(length.saturating_sub(0x80)))?;
    let length = match long {
        [] => usize::from(*length),
        [_] | [_, _] | [_, _, _] => long.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
        _ => return None,
    };
    rest.split_at_checked(length)
}
