//! The exchange of commands, and the bounds on connections.

use super::places::{CONNECTIONS_MAX, CONNECTIONS_OF_USER};
use super::*;
use crate::answers::OperatorAnswer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Notify, oneshot};

/// A server that was stopped with SIGSTOP still has a socket.
#[tokio::test(start_paused = true)]
async fn an_operator_waits_for_a_silent_server_as_long_as_the_command_may_take() {
    let folder = TempDir::new().unwrap();
    let socket = UnixSocket::new_stream().unwrap();
    let socket_path = folder.path().join(SOCKET);
    socket.bind(&socket_path).unwrap();
    let request = |command| SocketRequest { program: "p".to_owned(), command, claims: Claims::default() };
    let _listener = socket.listen(0).unwrap();
    let begin = tokio::time::Instant::now();
    let ask_for = async |command| {
        let request = request(command);
        let patient = timeout(Duration::from_hours(1), ask(&socket_path, &request));
        patient.await.expect("it ends").expect("a server").unwrap_err().to_string()
    };
    let said = ask_for(OperatorCommand::Tools { name: None }).await;
    assert!(said.contains("has not answered for 30 s") && said.contains("stop the server"), "{said}");
    assert_eq!(begin.elapsed().as_secs(), 30);
    let said = ask_for(OperatorCommand::Doctor).await;
    assert!(said.contains("has not answered for 600 s"), "{said}");
    let said = ask_for(OperatorCommand::Own { command: Value::Null, patience: Duration::from_secs(90) }).await;
    assert!(said.contains("has not answered for 90 s"), "{said}");
}

#[tokio::test]
async fn an_operator_whose_server_ends_without_an_answer_is_told_that_the_command_may_be_done() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(SOCKET);
    let listener = UnixListener::bind(&path).unwrap();
    let command = OperatorCommand::Tools { name: None };
    let request = SocketRequest { program: "p".to_owned(), command, claims: Claims::default() };
    for (written, why) in [
        ("", "ended before it answered, and may have carried the command out; `p acts` shows it"),
        ("{\"Ok\":{\"json\":{}", "ended before it answered"),
        ("{\"Ok\":{\"name\":\"demo\"}}", "of another version, so its answer cannot be read"),
    ] {
        let end = async {
            let (mut stream, _) = read_line(listener.accept().await.unwrap().0).await.unwrap();
            stream.write_all(written.as_bytes()).await.unwrap();
        };
        let (answer, ()) = tokio::join!(ask(&path, &request), end);
        let said = answer.expect("a server").unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
}

struct Answers;

impl CommandReceiver for Answers {
    fn program(&self) -> &'static str {
        "p"
    }

    fn carry_out<'a>(&'a self, _: &'a Operator, _: OperatorCommand) -> BoxFuture<'a, CommandAnswer> {
        Box::pin(async { Ok(OperatorAnswer::Sessions(Vec::new())) })
    }
}

struct Waits {
    begun: Notify,
    goes_on: Notify,
}

impl CommandReceiver for Waits {
    fn program(&self) -> &'static str {
        "p"
    }

    fn carry_out<'a>(&'a self, _: &'a Operator, _: OperatorCommand) -> BoxFuture<'a, CommandAnswer> {
        Box::pin(async {
            self.begun.notify_one();
            self.goes_on.notified().await;
            Ok(OperatorAnswer::Sessions(Vec::new()))
        })
    }
}

#[tokio::test]
async fn a_server_that_stops_finishes_the_commands_that_it_has_begun_and_answers_them() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(SOCKET);
    let receiver = Arc::new(Waits { begun: Notify::new(), goes_on: Notify::new() });
    let (stop, stopped) = oneshot::channel::<()>();
    let socket = OperatorSocket::open(folder.path()).unwrap();
    let serving = tokio::spawn(socket.serve(receiver.clone(), Box::pin(async { drop(stopped.await) })));
    // A connection without a command keeps no stop waiting.
    let _idle = UnixStream::connect(&path).await.unwrap();
    let asked = path.clone();
    let command = OperatorCommand::Tools { name: None };
    let request = SocketRequest { program: "p".to_owned(), command, claims: Claims::default() };
    let asking = tokio::spawn(async move { ask(&asked, &request).await });
    receiver.begun.notified().await;
    drop(stop);
    while path.exists() {
        tokio::task::yield_now().await;
    }
    assert!(!serving.is_finished());
    receiver.goes_on.notify_one();
    assert_eq!(asking.await.unwrap().unwrap().unwrap().json, json!([]));
    serving.await.unwrap();
}

#[tokio::test]
async fn a_user_has_a_bounded_number_of_connections_and_the_owner_a_socket_apart() {
    let folder = TempDir::new().unwrap();
    let paths = ["view.sock", SOCKET].map(|name| folder.path().join(name));
    let serve = |(path, channel): (&PathBuf, _)| {
        let socket = OperatorSocket::listen(path.clone(), None, channel).unwrap();
        tokio::spawn(socket.serve(Arc::new(Answers), Box::pin(std::future::pending())))
    };
    let [view, owner] = [&paths[0], &paths[1]];
    let _serving = [(view, Channel::ViewSocket), (owner, Channel::OwnerSocket)].map(serve);
    let ask_on = async |path: &Path, name: String| {
        let command = OperatorCommand::Tools { name: Some(name) };
        let request = SocketRequest { program: "p".to_owned(), command, claims: Claims::default() };
        let answer = ask(path, &request).await.expect("a server");
        answer.map(|answer| answer.json).map_err(|error| (error.code, error.message))
    };
    let short = || "t".to_owned();
    for (path, most) in [(view, CONNECTIONS_OF_USER), (owner, CONNECTIONS_MAX)] {
        assert_eq!(ask_on(path, short()).await, Ok(json!([])));
        let mut idle = Vec::new();
        for _ in 0..most {
            idle.push(UnixStream::connect(path).await.unwrap());
        }
        for name in [short(), "t".repeat(900_000)] {
            let (code, why) = ask_on(path, name).await.unwrap_err();
            assert!(code == FailureCode::Unavailable && why.contains("too many commands"), "{why}");
        }
        drop(idle);
        while ask_on(path, short()).await.is_err() {
            tokio::task::yield_now().await;
        }
        let (code, why) = ask_on(path, "t".repeat(1 << 20)).await.unwrap_err();
        assert!(code == FailureCode::Refused && why.contains("at most 1048576 bytes"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_command_ends_after_10_seconds_and_a_long_command_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(SOCKET);
    let socket = OperatorSocket::open(folder.path()).unwrap();
    let _serving = tokio::spawn(socket.serve(Arc::new(Answers), Box::pin(std::future::pending())));
    let begin = tokio::time::Instant::now();
    let mut idle = UnixStream::connect(&path).await.unwrap();
    idle.write_all(b"{").await.unwrap();
    assert_eq!(idle.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    assert_eq!(begin.elapsed().as_secs(), 10);
    let mut long = UnixStream::connect(&path).await.unwrap();
    let (mut answer, endless) = (Vec::new(), vec![b' '; 4 << 20]);
    let _ = long.write_all(&endless).await;
    let _ = long.read_to_end(&mut answer).await;
    assert!(String::from_utf8_lossy(&answer).contains("at most 1048576 bytes"));
    assert_eq!(begin.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn a_stop_does_not_remove_the_socket_of_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let first = OperatorSocket::open(folder.path()).unwrap();
    let second = OperatorSocket::open(folder.path()).unwrap();
    drop(first);
    UnixStream::connect(folder.path().join(SOCKET)).await.unwrap();
    drop(second);
    assert!(!folder.path().join(SOCKET).exists());
}
