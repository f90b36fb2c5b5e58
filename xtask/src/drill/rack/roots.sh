# Makes the folders of the rack below the current one. `trixie` is the root of the phones, and has the newer
# adb server and the proxies. `bookworm` has the older server. Packages come from the machine's own sources,
# with another suite, into a private folder. Nothing is installed.
set -eu
. /etc/os-release

unpack() { # SUITE PACKAGE...
    suite=$1
    shift
    [ "$*" != "$(cat "$suite/packages" 2> /dev/null)" ] || return 0
    rm -rf apt "$suite"
    mkdir -p apt/parts apt/lists/partial apt/archives/partial apt/tree/usr/bin apt/tree/usr/sbin apt/tree/usr/lib apt/tree/usr/lib64
    : > apt/status
    cp /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources apt/parts 2> /dev/null || true
    sed -Ei "/^(deb|Suites:)/s/\b$VERSION_CODENAME\b/$suite/g" apt/parts/*
    apt="apt-get -qq --yes --no-install-recommends -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$PWD/apt/parts
        -o Dir::State::lists=$PWD/apt/lists -o Dir::State::status=$PWD/apt/status -o Dir::Cache=$PWD/apt -o APT::Sandbox::User=root"
    # A source without this suite is no failure, unless a package is missing then.
    $apt update || true
    $apt --download-only install "$@"
    cd apt/tree
    ln -s usr/bin usr/sbin usr/lib usr/lib64 .
    mkdir dev proc run data tmp
    mknod -m 666 dev/null c 1 3
    for package in ../archives/*.deb; do dpkg -x "$package" .; done
    cd ../..
    echo "$*" > apt/tree/packages
    mv apt/tree "$suite"
}

unpack bookworm adb
unpack trixie adbd adb mksh toybox microsocks tinyproxy-bin redsocks nftables jq optipng
cd trixie/usr
ln -sf mksh bin/sh
for tool in cat chown date df env grep head id kill ls mkfifo mv nc ps rm sed sleep tail touch uname wc wget; do ln -sf toybox "bin/$tool"; done

# The first process of a phone. If it is asked to restart, it ends a moment later, and all others with it.
cat > sbin/init <<'END'
#!/bin/sh
rm -f /run/power
mkfifo /run/power
ADBD_PORT=5555 adbd > /run/adbd.log 2>&1 &
# The end of a process that has lost its parent interrupts this.
until read act < /run/power; do :; done
sleep 0.3
END
cat > bin/getprop <<'END'
#!/bin/sh
case $1 in
sys.boot_completed) echo 1 ;;
ro.serialno) cat /run/serial ;;
ro.product.model) echo Rack ;;
ro.build.version.release) echo 13 ;;
esac
END
# Each act is a line of the phone's journal.
cat > bin/setprop <<'END'
#!/bin/sh
[ "$*" = "sys.powerctl reboot," ] || exit 1
if [ -e /run/swallow ]; then
    echo "$EPOCHREALTIME swallow" >> /run/journal
else
    echo "$EPOCHREALTIME restart" >> /run/journal
    echo reboot > /run/power
fi
END
# Two pictures in turn. They are noise, so each has 1.5 MB.
for picture in odd even; do
    [ ! -e "share/$picture.png" ] || continue
    { echo P6 540 960 255; head -c 1555200 /dev/urandom; } > "share/$picture.ppm"
    chroot .. optipng -quiet -o0 "/usr/share/$picture.ppm" -out "/usr/share/$picture.png"
done
# It takes as long as on a phone. A picture that nobody reads to its end does not count.
cat > bin/screencap <<'END'
#!/bin/sh
sleep 0.3
if [ -e /run/odd ]; then
    cat /usr/share/odd.png && rm /run/odd
else
    cat /usr/share/even.png && touch /run/odd
fi
END
cat > bin/input <<'END'
#!/bin/sh
echo "$*" >> /run/inputs
END
chmod 755 sbin/init bin/getprop bin/setprop bin/screencap bin/input
