//! Encryption of connections. The certificate of the server is always verified, with its name: by
//! the authorities that the system trusts, or by those in a file.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls_improved::MakeRustlsConnect;

pub(crate) fn make_encryption(authorities: Option<&Path>) -> Result<MakeRustlsConnect, String> {
    let failed = |error: rustls::Error| format!("cannot set up TLS: {error}");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    let config = match authorities {
        None => config.with_platform_verifier().map_err(failed)?,
        Some(path) => config.with_root_certificates(read(path)?),
    };
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(MakeRustlsConnect::new(config))
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
