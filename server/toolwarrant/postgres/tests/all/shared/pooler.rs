//! A pooler in front of a server: all its clients share one session, a transaction at a time.

use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Mutex;
use toolwarrant_postgres::Address;

struct Pooled {
    session: Mutex<UnixStream>,
    welcome: Vec<u8>,
}

/// Returns the pooler's own address. Its session has the schema of `direct`.
pub(crate) async fn start(socket: PathBuf, direct: &Address) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let (_, path) = direct.url.split_once("search_path%3D").expect("a schema");
    let mut session = UnixStream::connect(socket).await.expect("the server runs");
    let settings = format!("user\0tests\0database\0postgres\0options\0-csearch_path={path}\0\0");
    let length = u32::try_from(settings.len() + 8).expect("a short message");
    let start = [&length.to_be_bytes()[..], &196_608_u32.to_be_bytes(), settings.as_bytes()].concat();
    session.write_all(&start).await.expect("the server runs");
    let mut welcome = Vec::new();
    loop {
        let message = read(&mut session).await.expect("the server runs");
        let is_last = message[0] == b'Z';
        welcome.extend(message);
        if is_last {
            break;
        }
    }
    let pooled = Arc::new(Pooled { session: Mutex::new(session), welcome });
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, Arc::clone(&pooled)));
        }
    });
    Address { url: format!("postgres://tests@127.0.0.1:{port}/postgres"), password: None }
}

async fn serve(mut client: TcpStream, pooled: Arc<Pooled>) -> Option<()> {
    let length = client.read_u32().await.ok()?;
    client.read_exact(&mut vec![0; length as usize - 4]).await.ok()?;
    client.write_all(&pooled.welcome).await.ok()?;
    loop {
        let mut message = read(&mut client).await?;
        let mut session = pooled.session.lock().await;
        loop {
            if message[0] == b'X' {
                return None;
            }
            session.write_all(&message).await.ok()?;
            // The answer ends with the state of the session, which is `I` outside of a transaction.
            let mut answer = Vec::new();
            while matches!(message[0], b'Q' | b'S') && answer.first() != Some(&b'Z') {
                answer = read(&mut *session).await?;
                client.write_all(&answer).await.ok()?;
            }
            if answer.last() == Some(&b'I') {
                break;
            }
            message = read(&mut client).await?;
        }
    }
}

async fn read(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let kind = from.read_u8().await.ok()?;
    let length = from.read_u32().await.ok()?;
    let mut message = vec![kind];
    message.extend(length.to_be_bytes());
    message.resize(length as usize + 1, 0);
    from.read_exact(&mut message[5..]).await.ok()?;
    Some(message)
}
