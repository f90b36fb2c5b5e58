# Runs a phone in the network of this shell until it is killed: ROOT FOLDER NUMBER. The folder is /run on the
# phone. The phone stays off for as long as `off` is there.
root=$1 folder=$2 number=$3
until ip link set eth0 up 2> /dev/null; do sleep 0.02; done
ip link set lo up
ip addr add "10.9.$number.2/24" dev eth0
ip addr add "fd00:9:$number::2/64" dev eth0 nodad
ip route add default via "10.9.$number.1"
ip route add default via "fd00:9:$number::1"
echo "RACK$number" > "$folder/serial"
while :; do
    while [ -e "$folder/off" ]; do sleep 0.05; done
    cat /proc/sys/kernel/random/uuid > "$folder/boot_id"
    echo "$(date +%s.%6N) start" >> "$folder/journal"
    unshare --pid --mount --uts --fork --kill-child sh -c '
        mount -t proc proc "$0/proc" && mount --bind "$1/boot_id" "$0/proc/sys/kernel/random/boot_id" &&
            mount --bind "$1" "$0/run" && mkdir -p "$1/tmp" "$0/data/local/tmp" &&
            mount --bind "$1/tmp" "$0/data/local/tmp" && [ ! -e "$1/off" ] && exec chroot "$0" /usr/sbin/init' "$root" "$folder"
done
