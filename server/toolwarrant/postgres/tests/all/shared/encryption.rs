//! URL parameters, certificates and passwords.

use super::*;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, SignatureAlgorithm};
use std::os::unix::fs::chown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolwarrant_base::text::Secret;

const PASSWORD: &str = "hidden-7f3a";

async fn refusal(url: String) -> String {
    let address = Address { url, password: Some(Secret::new(PASSWORD.to_owned())) };
    Postgres::read(&address, KEY, "one".to_owned()).await.expect_err("there is no store").to_string()
}

#[tokio::test]
async fn a_parameter_that_cannot_be_kept_is_refused_with_what_is_allowed() {
    let database = "postgres://u@db.invalid/x";
    for (parameters, why) in [
        ("sslmode=verify_full", "`sslmode` can be disable, allow, prefer, require, verify-ca or verify-full"),
        ("sslmode=%00", "`sslmode` can be"),
        ("sslrootcert=", "`sslrootcert` can be a file, or `system`"),
        ("sslrootcert=%2Fnowhere%2Froot.crt", "`sslrootcert` /nowhere/root.crt: No such file"),
        ("sslrootcert=/dev/null", "`sslrootcert` /dev/null: it has no certificate in PEM format"),
        ("channel_binding=yes", "`channel_binding` can be disable, prefer or require"),
        ("sslmode=disable&channel_binding=require", "`channel_binding=require` needs an encrypted connection"),
        ("sslnegotiation=tls", "`sslnegotiation` can be postgres or direct"),
        ("target_session_attrs=standby", "`target_session_attrs` can be any, read-write or primary, because the store"),
        ("hostaddr=10.0.0.1", "the parameter `hostaddr`; allowed are host, port"),
        ("connect_timeout=3&pgbouncer=true", "the parameter `pgbouncer`; allowed are"),
        ("user=v&password=hidden", "it contains a password"),
        ("host=/run/postgresql", "connections to a socket cannot be encrypted"),
    ] {
        let said = refusal(format!("{database}?{parameters}")).await;
        assert!(said.contains(why) && said.contains("the URL of the store"), "{parameters}: {said}");
        assert!(!said.contains("hidden"), "{said}");
    }
    let said = refusal("postgres://u:hid?den=x@db.invalid/x".to_owned()).await;
    assert!(said.contains("it contains a password") && !said.contains("den"), "{said}");
    let said = refusal("postgres://u@/x?host=%2Frun&channel_binding=require".to_owned()).await;
    assert!(said.contains("over TCP"), "{said}");
}

#[tokio::test]
async fn a_server_that_asks_for_the_password_without_encryption_does_not_get_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    // In plain text, as MD5 with its salt, and in plain text after a notice.
    let asks: [&[u8]; 3] =
        [b"R\0\0\0\x08\0\0\0\x03", b"R\0\0\0\x0c\0\0\0\x05salt", b"N\0\0\0\x05\0R\0\0\0\x08\0\0\0\x03"];
    for (parameters, ask) in ["", "?sslmode=disable", "?sslmode=prefer&connect_timeout=9"].into_iter().zip(asks) {
        let asked = tokio::spawn(refusal(format!("postgres://u@127.0.0.1:{port}/x{parameters}")));
        let (mut client, _) = listener.accept().await.expect("it connects");
        let length = client.read_u32().await.expect("a first message");
        client.read_exact(&mut vec![0; length as usize - 4]).await.expect("a first message");
        for byte in ask {
            client.write_all(&[*byte]).await.expect("it waits for the server");
            client.flush().await.expect("it waits for the server");
        }
        let mut got = Vec::new();
        // A connection that is reset has sent nothing either.
        let _ = client.read_to_end(&mut got).await;
        assert!(got.is_empty(), "{ask:?}: {}", String::from_utf8_lossy(&got));
        let said = asked.await.expect("no panic");
        assert!(ask[0] == b'N' || said.contains("another method than SCRAM"), "{said}");
    }
}

struct Encrypted {
    server: TestPostgres,
    place: String,
    folder: TempDir,
}

const ACCOUNTS: &str = "local all all trust\nhost all clear all password\nhost all hashed all md5\n\
                        host all all all scram-sha-256\n";

impl Encrypted {
    async fn start(network: u8, algorithm: &'static SignatureAlgorithm) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let id = std::process::id();
        let place = format!("127.{network}.{}.{}", id / 250 % 250 + 1, id % 250 + 1);
        let path = |name: &str| folder.path().join(name).display().to_string();
        for (name, host) in [("own", &*place), ("other", "db.example")] {
            let key = KeyPair::generate_for(algorithm).expect("a key");
            let certificate = CertificateParams::new([host.to_owned()]).and_then(|of| of.self_signed(&key));
            fs::write(path(name), certificate.expect("a certificate").pem()).expect("written");
            fs::write(path("key"), key.serialize_pem()).expect("written");
            if name == "own" {
                fs::rename(path("key"), path("own.key")).expect("written");
            }
        }
        fs::set_permissions(path("own.key"), fs::Permissions::from_mode(0o600)).expect("it is ours");
        // Root starts the server as another user, who must own the key.
        let _ = chown(path("own.key"), Some(65_534), Some(65_534));
        fs::write(path("hba"), ACCOUNTS).expect("written");
        let settings = [
            format!("listen_addresses={place}"),
            format!("hba_file={}", path("hba")),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", path("own")),
            format!("ssl_key_file={}", path("own.key")),
            "fsync=off".to_owned(),
        ];
        let server = TestPostgres::start_with(&settings.each_ref().map(|setting| &**setting))?;
        let direct = server.schema().await.expect("the server runs");
        let role = |name, method| {
            format!("SET password_encryption = '{method}'; CREATE ROLE {name} LOGIN SUPERUSER PASSWORD '{PASSWORD}';")
        };
        let roles = [role("clear", "scram-sha-256"), role("hashed", "md5"), role("scram", "scram-sha-256")].concat();
        server.count(&direct, &format!("DO $$ BEGIN {roles} END $$")).await;
        Some(Self { server, place, folder })
    }

    async fn open(&self, account: &str, parameters: &str) -> Result<(), String> {
        let schema = self.server.schema().await.expect("the server runs");
        let (_, options) = schema.split_once("options=").expect("a schema");
        let file = |name| self.folder.path().join(name).display().to_string();
        let parameters = parameters.replace("OWN", &file("own")).replace("OTHER", &file("other"));
        let url = format!("postgres://{account}@{}/postgres?options={options}&{parameters}", self.place);
        let address = Address { url, password: Some(Secret::new(PASSWORD.to_owned())) };
        // A handshake can take longer than the patience of a start while other tests compute.
        let mut opened = Ok(());
        for _ in 0..10 {
            opened = Postgres::init(&address, KEY).await.map_err(|error| error.to_string());
            if !opened.as_ref().is_err_and(|said| said.contains("has not answered for")) {
                break;
            }
        }
        opened
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_is_taken_as_psql_takes_it_and_the_certificate_is_verified() {
    let Some(server) = Encrypted::start(77, &PKCS_ECDSA_P256_SHA256).await else { return };
    for (account, parameters, expected) in [
        ("scram", "sslmode=verify-full&sslrootcert=OWN&channel_binding=require", ""),
        ("scram", "sslmode=require&sslrootcert=OWN&channel_binding=disable&target_session_attrs=primary", ""),
        ("scram", "sslrootcert=OWN&channel_binding=require&target_session_attrs=read-write", ""),
        ("clear", "ssl=true&sslrootcert=OWN", ""),
        ("scram", "sslmode=disable", ""),
        ("scram", "", ""),
        ("scram", "sslmode=verify-full&sslrootcert=OTHER", "name its authority with `sslrootcert`"),
        ("scram", "sslmode=require&sslrootcert=system", "invalid peer certificate"),
        ("scram", "sslmode=verify-ca", "invalid peer certificate"),
        ("scram", "channel_binding=require", "invalid peer certificate"),
        ("clear", "sslrootcert=OWN&channel_binding=require", "server did not use channel binding"),
        ("clear", "", "another method than SCRAM"),
        ("hashed", "sslmode=disable", "another method than SCRAM"),
    ] {
        let opened = server.open(account, parameters).await;
        match expected {
            "" => assert_eq!(opened, Ok(()), "{account} {parameters}"),
            why => assert!(opened.as_ref().is_err_and(|said| said.contains(why)), "{account} {parameters}: {opened:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scram_is_bound_by_the_hash_that_the_certificate_is_signed_with() {
    let Some(server) = Encrypted::start(78, &PKCS_ECDSA_P384_SHA384).await else { return };
    assert_eq!(server.open("scram", "sslrootcert=OWN&channel_binding=require").await, Ok(()));
}
