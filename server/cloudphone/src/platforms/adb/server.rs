//! A client of the adb server. It starts no program and no server.
//!
//! Each type proves a step: [`AskedServer`] that the server accepted a request, [`PhoneStream`]
//! that the connection leads to the phone, and [`ReadyPhone`] that a command waits there for a
//! word. Until [`ReadyPhone::go`] sends the word, nothing was done on the phone, whatever hangs. A
//! request that a phone takes late finds no word and does nothing. Each wait has a deadline, and
//! each length a limit.

use super::address::AdbAddress;
use super::facts::{PhoneFacts, script};
use super::wire::{FrameDecoder, PhoneAddress, STREAM_MAX, ShellFrame, encode_input, encode_request, parse_length};
use crate::adapter_kit::readings::DialedConnection;
use crate::phones::port::Unreachable;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::net::{TcpStream, UnixStream};
use toolwarrant::base::hex;
use toolwarrant::tasks::{Leave, Refusal, Sent};
use toolwarrant::{Clock, Random, Timestamp};

const ANSWER_WITHIN: Duration = Duration::from_secs(4);

const WORD_SECONDS: u8 = 5;

const CONNECTION_BUFFER: usize = 4 << 10;

const REFUSES: &str = "the adb server refuses";

const REPORT_WITHIN: Duration = Duration::from_secs(8);

const NO_WORD: u8 = 41;
const OTHER_WORD: u8 = 42;
const ACT_FAILED: u8 = 43;

#[derive(Clone, Debug)]
pub(super) struct AdbServer {
    pub(super) address: AdbAddress,
    pub(super) clock: Clock,
    pub(super) random: Random,
}

struct AskedServer {
    stream: DialedConnection,
    clock: Clock,
    until: Timestamp,
}

pub(super) struct PhoneStream(AskedServer);

pub(super) struct ReadyPhone {
    phone: AskedServer,
    frames: FrameDecoder,
    word: String,
}

impl AdbServer {
    async fn ask(&self, service: &str, until: Timestamp) -> Result<AskedServer, Unreachable> {
        let connect = async {
            let stream: DialedConnection = match &self.address {
                AdbAddress::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    Box::new(stream)
                }
                AdbAddress::Unix(path) => Box::new(UnixStream::connect(path).await?),
            };
            Ok(stream)
        };
        let stream = limit(&self.clock, until, connect).await?;
        let mut asked = AskedServer { stream, clock: self.clock.clone(), until };
        asked.request(service).await?;
        Ok(asked)
    }

    /// Returns the deadline of an answer that comes at once.
    pub(super) fn soon(&self) -> Timestamp {
        self.clock.now().plus(ANSWER_WITHIN)
    }

    /// Returns a word that nobody can know.
    pub(super) fn make_word(&self) -> Result<String, Unreachable> {
        let bytes = self.random.bytes::<16>().map_err(|_| Unreachable("the system has no randomness".into()))?;
        Ok(hex::encode(&bytes))
    }

    /// Returns the server's own answer.
    pub(super) async fn tell(&self, service: &str) -> Result<String, Unreachable> {
        self.ask(service, self.soon()).await?.text().await
    }

    /// Returns the output of a script. After an error it may still run later, so it must do no harm
    /// then.
    pub(super) async fn run(&self, phone: &PhoneAddress, script: &str) -> Result<String, Unreachable> {
        let (output, _) = self.reach(phone, self.soon()).await?.exchange(script, b"", STREAM_MAX).await?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }

    pub(super) async fn read_facts(&self, phone: &PhoneAddress) -> Result<PhoneFacts, Unreachable> {
        let read = PhoneFacts::parse(&self.run(phone, &script()).await?);
        read.map(|(facts, _)| facts).ok_or_else(|| Unreachable("the readings of the phone are not whole".into()))
    }

    pub(super) async fn reach(&self, phone: &PhoneAddress, until: Timestamp) -> Result<PhoneStream, Unreachable> {
        let asked = self.ask(&format!("host:transport:{phone}"), until).await;
        match (asked, phone.as_str().strip_prefix("usb:")) {
            // A server that uses libusb knows the path without its prefix.
            (Err(Unreachable(why)), Some(path)) if why.as_str().starts_with(REFUSES) => {
                Ok(PhoneStream(self.ask(&format!("host:transport:{path}"), until).await?))
            }
            (asked, _) => Ok(PhoneStream(asked?)),
        }
    }
}

impl AskedServer {
    /// Waits until the service is accepted. The server drops a request that comes before its answer
    /// to the last one.
    async fn request(&mut self, service: &str) -> Result<(), Unreachable> {
        self.send(&encode_request(service)?).await?;
        match &*self.read(4).await? {
            b"OKAY" => Ok(()),
            b"FAIL" => Err(Unreachable(format!("{REFUSES}: {}", self.text().await?).into())),
            _ => Err(Unreachable("the adb server gives an answer that is none".into())),
        }
    }

    async fn text(&mut self) -> Result<String, Unreachable> {
        let length = parse_length(&self.read(4).await?);
        let length = length.ok_or_else(|| Unreachable("the adb server sends a length that is none".into()))?;
        Ok(String::from_utf8_lossy(&self.read(length).await?).into_owned())
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Unreachable> {
        let send = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        limit(&self.clock, self.until, send).await
    }

    async fn read(&mut self, length: usize) -> Result<Vec<u8>, Unreachable> {
        let mut bytes = vec![0; length];
        limit(&self.clock, self.until, self.stream.read_exact(&mut bytes)).await?;
        Ok(bytes)
    }

    async fn read_frame(&mut self, frames: &mut FrameDecoder) -> Result<ShellFrame, Unreachable> {
        loop {
            if let Some(frame) = frames.next_frame()? {
                return Ok(frame);
            }
            let mut bytes = [0; 4 << 10];
            match limit(&self.clock, self.until, self.stream.read(&mut bytes)).await? {
                0 => return Err(Unreachable("the connection to the phone ended before its command did".into())),
                count => frames.feed(&bytes[..count]),
            }
        }
    }
}

impl PhoneStream {
    /// Returns the output of at most `bound` bytes, frames included, and the exit status. After an
    /// error the command may still run later.
    pub(super) async fn exchange(self, script: &str, input: &[u8], bound: usize) -> Result<(Vec<u8>, u8), Unreachable> {
        let (mut frames, mut output) = (FrameDecoder::of_at_most(bound), Vec::new());
        let mut phone = self.open_shell(script).await?;
        if !input.is_empty() {
            phone.send(&encode_input(input)).await?;
        }
        loop {
            match phone.read_frame(&mut frames).await? {
                ShellFrame::Output(data) => output.extend(data),
                ShellFrame::Exit(status) => return Ok((output, status)),
                ShellFrame::Other => {}
            }
        }
    }

    /// Starts a command that makes a check, waits for `word` and then does `act`, all plain words
    /// of a shell. After an error it never does `act`.
    pub(super) async fn prepare(self, check: &str, act: &str, word: String) -> Result<ReadyPhone, Unreachable> {
        let script = format!(
            "{check}echo ready;read -t {WORD_SECONDS} go||exit {NO_WORD};[ \"$go\" = {word} ]||exit {OTHER_WORD};\
             {act}||exit {ACT_FAILED}"
        );
        let (mut phone, mut frames, mut output) =
            (self.open_shell(&script).await?, FrameDecoder::of_at_most(STREAM_MAX), Vec::new());
        while output != b"ready\n" {
            match phone.read_frame(&mut frames).await? {
                ShellFrame::Output(data) if b"ready\n".starts_with(&[&output[..], &data].concat()) => {
                    output.extend(data)
                }
                ShellFrame::Output(_) => return Err(Unreachable("the phone prints something other than asked".into())),
                ShellFrame::Exit(status) => {
                    return Err(Unreachable(format!("the phone's shell ended at once, with status {status}").into()));
                }
                ShellFrame::Other => {}
            }
        }
        Ok(ReadyPhone { phone, frames, word })
    }

    /// Starts a command whose input and output are a connection, such as `nc`. It ends when the
    /// connection is dropped, and at the deadline.
    pub(super) async fn connect(self, command: &str) -> Result<DuplexStream, Unreachable> {
        let AskedServer { stream, clock, until } = self.open_shell(command).await?;
        let (ours, theirs) = duplex(CONNECTION_BUFFER);
        tokio::spawn(async move { clock.before(until, pass_on(stream, theirs)).await });
        Ok(ours)
    }

    async fn open_shell(mut self, script: &str) -> Result<AskedServer, Unreachable> {
        self.0.request(&format!("shell,v2,raw:{script}")).await?;
        Ok(self.0)
    }
}

impl ReadyPhone {
    /// Sends the word, and waits for the exit status. Without one, the command may have been
    /// carried out.
    pub(super) async fn go(self, leave: Leave) -> Sent {
        let Self { mut phone, mut frames, word } = self;
        if let Err(why) = leave.confirm() {
            return Sent::NotSent(why);
        }
        phone.until = phone.clock.now().plus(REPORT_WITHIN);
        let report = async {
            phone.send(&encode_input(format!("{word}\n").as_bytes())).await?;
            loop {
                if let ShellFrame::Exit(status) = phone.read_frame(&mut frames).await? {
                    return Ok(status);
                }
            }
        };
        report.await.map_or_else(|Unreachable(what)| Sent::NoAnswer(what), interpret)
    }
}

async fn pass_on(shell: DialedConnection, connection: DuplexStream) -> io::Result<()> {
    let ((mut from_shell, mut to_shell), (mut read, mut write)) = (split(shell), split(connection));
    let (mut sent, mut received) = ([0; CONNECTION_BUFFER], [0; CONNECTION_BUFFER]);
    let up = async {
        loop {
            match read.read(&mut sent).await? {
                0 => return Ok(()),
                count => to_shell.write_all(&encode_input(&sent[..count])).await?,
            }
            to_shell.flush().await?;
        }
    };
    let down = async {
        let mut frames = FrameDecoder::of_at_most(STREAM_MAX);
        loop {
            match from_shell.read(&mut received).await? {
                0 => return Ok(()),
                count => frames.feed(&received[..count]),
            }
            while let Some(frame) = frames.next_frame().map_err(|_| io::ErrorKind::InvalidData)? {
                match frame {
                    ShellFrame::Output(data) => write.write_all(&data).await?,
                    ShellFrame::Exit(_) => return Ok(()),
                    ShellFrame::Other => {}
                }
            }
        }
    };
    tokio::select! {
        ended = up => ended,
        ended = down => ended,
    }
}

fn interpret(status: u8) -> Sent {
    let undone =
        |why: &str| Sent::Refused(Refusal { code: status.into(), why: why.into(), precedes_act: true, is_busy: true });
    match status {
        0 => Sent::Ok,
        NO_WORD => undone("the word came too late, so the phone did nothing"),
        OTHER_WORD => undone("the word did not arrive whole, so the phone did nothing"),
        ACT_FAILED => Sent::Err("the phone could not carry it out".into()),
        other => Sent::NoAnswer(format!("the phone's shell was ended, with status {other}").into()),
    }
}

async fn limit<T>(
    clock: &Clock,
    until: Timestamp,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, Unreachable> {
    match clock.before(until, work).await {
        Some(done) => done.map_err(|error| Unreachable(format!("the adb server: {error}").into())),
        None => Err(Unreachable("the adb server or the phone did not answer in time".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;
    use tokio::io::{AsyncBufReadExt, BufReader};
    use tokio::net::UnixListener;
    use tokio::task::JoinHandle;

    /// Answers one connection, lets time pass, and returns the next line, or the rest.
    async fn serve(folder: &TempDir, answers: Vec<Vec<u8>>, then: Duration) -> (AdbServer, JoinHandle<Vec<u8>>) {
        let path = folder.path().join("adb.sock");
        drop(std::fs::remove_file(&path));
        let listener = UnixListener::bind(&path).unwrap();
        let clock = Clock::manual(Timestamp(1));
        let time = clock.clone();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for answer in answers {
                assert_ne!(stream.read(&mut [0; 4_096]).await.unwrap(), 0);
                // The client may leave early.
                let _ = stream.write_all(&answer).await;
            }
            time.advance(then);
            let mut rest = Vec::new();
            let _ = BufReader::new(stream).read_until(b'\n', &mut rest).await;
            rest
        });
        (AdbServer { address: AdbAddress::Unix(path), clock, random: Random::from_seed(1) }, serving)
    }

    fn frame(kind: u8, data: &[u8]) -> Vec<u8> {
        [&[kind], &u32::try_from(data.len()).unwrap().to_le_bytes()[..], data].concat()
    }

    #[tokio::test]
    async fn whatever_answers_in_place_of_an_adb_server_is_an_error_in_time() {
        let folder = TempDir::new().unwrap();
        let bytes =
            [&b""[..], b"OKAY", b"OKAY00", b"OKAYzzzz", b"OKAYffffshort", b"FAIL", b"FAIL0002no", b"HTTP/1.1 400"];
        for answer in bytes {
            let (server, _serving) = serve(&folder, vec![answer.to_vec()], REPORT_WITHIN).await;
            let until = server.clock.now().plus(REPORT_WITHIN);
            let text = async { server.ask("host:devices-l", until).await?.text().await };
            assert!(text.await.is_err(), "{answer:?}");
        }
        let (server, serving) = serve(&folder, vec![b"OKAY0004list".to_vec()], Duration::ZERO).await;
        let text = server.ask("host:devices-l", server.clock.now().plus(REPORT_WITHIN)).await.unwrap().text().await;
        assert_eq!((text.unwrap(), serving.await.unwrap()), ("list".to_owned(), Vec::new()));
    }

    #[tokio::test]
    async fn the_word_is_sent_only_to_a_phone_that_says_that_it_waits() {
        let folder = TempDir::new().unwrap();
        let phone = PhoneAddress::parse("emulator-5554").unwrap();
        let ready = |frames: &[Vec<u8>]| vec![b"OKAY".to_vec(), [b"OKAY".to_vec(), frames.concat()].concat()];
        let silent: [&[Vec<u8>]; 6] = [
            &[],
            &[frame(1, b"rea")],
            &[frame(1, b"ready to go\n")],
            &[frame(2, b"ready\n")],
            &[frame(3, &[41])],
            &[frame(2, &[0; 60_000]), frame(2, &[0; 60_000])],
        ];
        for frames in silent {
            let (server, serving) = serve(&folder, ready(frames), REPORT_WITHIN).await;
            let until = server.clock.now().plus(REPORT_WITHIN);
            let prepared = async { server.reach(&phone, until).await?.prepare("", "act", "word".to_owned()).await };
            assert!(prepared.await.is_err(), "{frames:?}");
            assert_eq!(serving.await.unwrap(), b"", "{frames:?}");
        }
        for (is_late, sent) in [(false, &b"\0\x05\0\0\0word\n"[..]), (true, b"")] {
            let (server, serving) =
                serve(&folder, ready(&[frame(2, b"warning"), frame(1, b"ready\n")]), Duration::ZERO).await;
            let now = server.clock.now();
            let stream = server.reach(&phone, now.plus(REPORT_WITHIN)).await.unwrap();
            let ready = stream.prepare("", "act", "word".to_owned()).await.unwrap();
            let not_after = if is_late { Timestamp(0) } else { now.plus(REPORT_WITHIN) };
            let leave = Leave::until(not_after, &server.clock);
            assert_eq!(matches!(ready.go(leave).await, Sent::NotSent(_)), is_late);
            assert_eq!(serving.await.unwrap(), sent);
        }
    }

    #[test]
    fn only_a_status_of_our_own_command_is_a_report_and_two_of_them_say_that_nothing_was_done() {
        let undone = |status| matches!(interpret(status), Sent::Refused(Refusal { precedes_act: true, .. }));
        assert_eq!(interpret(0), Sent::Ok);
        assert!(undone(41) && undone(42) && matches!(interpret(43), Sent::Err(_)));
        for status in (1..=255).filter(|status| ![41, 42, 43].contains(status)) {
            assert!(matches!(interpret(status), Sent::NoAnswer(_)), "{status}");
        }
    }
}
