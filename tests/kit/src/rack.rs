//! The rack: adb servers and phones that are real programs of AOSP and Debian. Each phone has
//! namespaces of its own, with one link to the network of this process. `cargo xtask drill rack`
//! makes the roots of their programs, and the namespaces in which all of them end. Start at
//! [`Rack`].

use crate::process::signal;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

#[derive(Clone, Debug)]
pub struct Rack {
    roots: PathBuf,
    folder: PathBuf,
}

/// Connects to its phones again and again, as an operator's script would. A drop ends it.
#[derive(Debug)]
pub struct RackServer {
    pub address: SocketAddr,
    command: Vec<String>,
    log: PathBuf,
    process: Option<Child>,
    _connecting: JoinSet<()>,
}

#[derive(Debug)]
pub struct RackPhone {
    number: u8,
    folder: PathBuf,
    shell: Child,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhoneFault {
    Freeze,
    Cut,
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhoneAct {
    Start,
    Restart,
    /// It accepts a command, and does not restart.
    Swallow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackProxy {
    Open,
    Socks5,
    Http,
}

pub const PROXY_LOGIN: (&str, &str) = ("rack", "hunter2-on-the-rack");

impl Rack {
    /// Changes the network of this process, which must not be the machine's.
    pub fn new(roots: &Path, folder: &Path) -> Result<Self> {
        run("ip link set lo up")?;
        Ok(Self { roots: roots.to_owned(), folder: folder.to_owned() })
    }

    /// Gives the phone `10.9.NUMBER.2` and `fd00:9:NUMBER::2`.
    pub async fn start_phone(&self, number: u8) -> Result<RackPhone> {
        let folder = self.folder.join(format!("phone-{number}"));
        fs::create_dir_all(&folder)?;
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", include_str!("rack/phone.sh"), "phone"]);
        command.arg(self.roots.join("trixie")).arg(&folder).arg(number.to_string());
        // The system wakes stopped processes in a group that has lost its last parent outside.
        command.process_group(0);
        let shell = command.stderr(File::create(folder.join("log"))?).spawn().context("cannot run unshare")?;
        fs::write(folder.join("pid"), shell.id().to_string())?;
        let phone = RackPhone { number, folder, shell };
        while network(phone.shell.id())? == network(std::process::id())? {
            sleep(Duration::from_millis(5)).await;
        }
        run(&format!("ip link add phone{number} type veth peer name eth0 netns {}", phone.shell.id()))?;
        // Otherwise the address is lost with the link.
        fs::write(format!("/proc/sys/net/ipv6/conf/phone{number}/keep_addr_on_down"), "1")?;
        run(&format!("ip addr add 10.9.{number}.1/24 dev phone{number}"))?;
        run(&format!("ip addr add fd00:9:{number}::1/64 dev phone{number} nodad"))?;
        run(&format!("ip link set phone{number} up"))?;
        Ok(phone)
    }

    /// Starts the server of a release of Debian. Waits until it has connected to these phones.
    pub async fn start_server(&self, release: &str, port: u16, phones: &[&RackPhone]) -> Result<RackServer> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let root = self.roots.join(release).display().to_string();
        let port = port.to_string();
        let command = [&root, "/usr/bin/adb", "-P", &port, "nodaemon", "server"].map(str::to_owned).to_vec();
        let mut connecting = JoinSet::new();
        for service in phones.iter().map(|phone| format!("host:connect:{}", phone.serial())) {
            connecting.spawn(async move {
                loop {
                    let _ = timeout(Duration::from_secs(5), ask(address, &[&service])).await;
                    sleep(Duration::from_secs(1)).await;
                }
            });
        }
        let log = self.folder.join(format!("{release}.log"));
        let mut server = RackServer { address, command, log, process: None, _connecting: connecting };
        server.start().await?;
        for phone in phones {
            while server.run(phone, "true").await.is_err() {
                sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(server)
    }

    /// Puts programs of the phones' root under their names, and an empty `/run`, into these
    /// namespaces alone.
    pub fn install(&self, programs: &[&str]) -> Result<()> {
        run("mount -t tmpfs tmpfs /usr/local/sbin")?;
        run("mount -t tmpfs tmpfs /run")?;
        let root = self.roots.join("trixie");
        for program in programs {
            let script = format!(
                "#!/bin/sh\nroot={}\nexec $root/usr/lib64/ld-linux-x86-64.so.2 --library-path $root/usr/lib/x86_64-linux-gnu \
                 $root/usr/{program} \"$@\"\n",
                root.display()
            );
            let name = Path::new(program).file_name().context("a name")?;
            write_program(&Path::new("/usr/local/sbin").join(name), &script)?;
        }
        Ok(())
    }

    pub fn add_address(&self, address: &str) -> Result<()> {
        run(&format!("ip addr add {address} dev lo"))
    }

    pub fn name_host(&self, address: &str, name: &str) -> Result<()> {
        let hosts = self.folder.join("hosts");
        fs::write(&hosts, format!("127.0.0.1 localhost\n{address} {name}\n"))?;
        let etc = self.roots.join("trixie/etc");
        fs::create_dir_all(&etc)?;
        fs::copy(&hosts, etc.join("hosts"))?;
        run(&format!("mount --bind {} /etc/hosts", hosts.display()))
    }

    /// Returns the address, `10.9.0.HOST`. The proxy ends with the namespaces.
    pub async fn start_proxy(&self, kind: RackProxy, host: u8) -> Result<SocketAddr> {
        let (ip, (user, password)) = (Ipv4Addr::new(10, 9, 0, host), PROXY_LOGIN);
        self.add_address(&format!("{ip}/32"))?;
        let address = SocketAddr::from((ip, 1_080));
        let root = self.roots.join("trixie");
        let mut command = Command::new("chroot");
        command.arg(&root).stdout(Stdio::null()).stderr(Stdio::null());
        let ip = ip.to_string();
        match kind {
            RackProxy::Open => command.args(["microsocks", "-i", &ip, "-p", "1080", "-b", &ip]),
            RackProxy::Socks5 => {
                command.args(["microsocks", "-i", &ip, "-p", "1080", "-u", user, "-P", password, "-b", &ip])
            }
            RackProxy::Http => {
                let text = format!("Port 1080\nListen {ip}\nBind {ip}\nBasicAuth {user} {password}\n");
                fs::write(root.join("tmp/tinyproxy.conf"), text)?;
                command.args(["tinyproxy", "-d", "-c", "/tmp/tinyproxy.conf"])
            }
        };
        command.spawn().context("cannot run chroot")?;
        wait_for_listener(address).await?;
        Ok(address)
    }
}

impl RackServer {
    pub async fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new("chroot");
        command.args(&self.command).env("HOME", "/tmp").stdout(log.try_clone()?).stderr(log);
        self.process = Some(command.spawn().context("cannot run chroot")?);
        wait_for_listener(self.address).await
    }

    pub fn kill(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        process.kill()?;
        process.wait()?;
        Ok(())
    }

    /// Does not wait for the phone to be ready. Returns the output.
    pub async fn run(&self, phone: &RackPhone, command: &str) -> Result<String> {
        let transport = format!("host:transport:{}", phone.serial());
        ask(self.address, &[&transport, &format!("shell,v2,raw:{command}")]).await
    }
}

impl RackPhone {
    #[must_use]
    pub fn serial(&self) -> String {
        format!("10.9.{}.2:5555", self.number)
    }

    pub fn begin(&self, fault: PhoneFault) -> Result<()> {
        match fault {
            PhoneFault::Freeze => self.signal("STOP"),
            PhoneFault::Cut => self.set_link("down"),
            PhoneFault::Kill => {
                fs::write(self.folder.join("off"), "")?;
                self.signal("KILL")
            }
        }
    }

    pub fn end(&self, fault: PhoneFault) -> Result<()> {
        match fault {
            PhoneFault::Freeze => self.signal("CONT"),
            PhoneFault::Cut => self.set_link("up"),
            PhoneFault::Kill => Ok(fs::remove_file(self.folder.join("off"))?),
        }
    }

    pub fn swallow(&self, swallows: bool) -> Result<()> {
        let switch = self.folder.join("swallow");
        match fs::remove_file(&switch) {
            _ if swallows => Ok(fs::write(switch, "")?),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Gives the phone the mark and the serial of an image; none if the mark is empty.
    pub fn mark(&self, mark: &str, serial: &str) -> Result<()> {
        fs::write(self.folder.join("serial"), serial)?;
        match mark {
            "" => match fs::remove_file(self.mark_file()) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
                _ => Ok(()),
            },
            mark => Ok(fs::write(self.mark_file(), format!("{mark} -\n"))?),
        }
    }

    pub fn read_mark(&self) -> Result<String> {
        let text = fs::read_to_string(self.mark_file())?;
        Ok(text.split_whitespace().next().unwrap_or_default().to_owned())
    }

    fn mark_file(&self) -> PathBuf {
        self.folder.join("tmp/.cloudphone")
    }

    /// Returns times in milliseconds since the Unix epoch.
    pub fn journal(&self) -> Result<Vec<(i64, PhoneAct)>> {
        let act = |line: &str| {
            let (at, act) = line.split_once(' ').context("a line of the journal")?;
            let act = match act {
                "start" => PhoneAct::Start,
                "restart" => PhoneAct::Restart,
                _ => PhoneAct::Swallow,
            };
            Ok((at.replace('.', "").parse::<i64>()? / 1_000, act))
        };
        fs::read_to_string(self.folder.join("journal"))?.lines().map(act).collect()
    }

    pub fn count_commands(&self) -> Result<usize> {
        Ok(self.journal()?.iter().filter(|(_, act)| *act != PhoneAct::Start).count())
    }

    fn set_link(&self, state: &str) -> Result<()> {
        run(&format!("ip link set phone{} {state}", self.number))
    }

    /// Sends it until the phone has no other processes. Only its shell is not killed.
    fn signal(&self, name: &str) -> Result<()> {
        let mut known = Vec::new();
        loop {
            let found = self.processes()?;
            let is_new = |id: &String| !known.contains(id) && (name != "KILL" || *id != self.shell.id().to_string());
            let new: Vec<_> = found.into_iter().filter(is_new).collect();
            if new.is_empty() {
                return Ok(());
            }
            // Processes may end meanwhile.
            new.iter().filter_map(|id| id.parse().ok()).for_each(|id| drop(signal(id, name)));
            known.extend(new);
        }
    }

    fn processes(&self) -> Result<Vec<String>> {
        let own = network(self.shell.id())?;
        let ids = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(ids.filter(|id| id.parse().is_ok_and(|id| network(id).is_ok_and(|network| network == own))).collect())
    }
}

impl Drop for RackPhone {
    fn drop(&mut self) {
        let _ = self.begin(PhoneFault::Kill);
        let _ = self.shell.kill().and_then(|()| self.shell.wait());
    }
}

impl Drop for RackServer {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Returns all that comes after the last service was accepted.
async fn ask(server: SocketAddr, services: &[&str]) -> Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    for service in services {
        stream.write_all(format!("{:04x}{service}", service.len()).as_bytes()).await?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await?;
        ensure!(&answer == b"OKAY", "{service} is refused");
    }
    let mut output = Vec::new();
    stream.read_to_end(&mut output).await?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

pub fn write_program(path: &Path, script: &str) -> Result<()> {
    fs::write(path, script)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

async fn wait_for_listener(address: SocketAddr) -> Result<()> {
    for _ in 0..1_000 {
        if TcpStream::connect(address).await.is_ok() {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    bail!("nothing listens at {address}")
}

fn network(process: u32) -> Result<PathBuf> {
    Ok(fs::read_link(format!("/proc/{process}/ns/net"))?)
}

fn run(line: &str) -> Result<()> {
    let mut words = line.split(' ');
    let output = Command::new(words.next().context("a program")?).args(words).output().context(line.to_owned())?;
    ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
