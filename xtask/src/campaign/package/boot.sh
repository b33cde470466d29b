# The first process of a machine whose disk is this one's, as it is, under a layer that is forgotten with the machine.
# It runs in namespaces of its own. $1 is an empty folder, $2 one that the machine has at /mnt.
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
root=$1/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$2" "$root/mnt"
# Nothing but systemd starts by itself, no disk is mounted, packages may start what they bring, and dpkg leaves out no documentation.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/usr/lib/systemd/system/*.wants
rm -rf "$root/usr/sbin/policy-rc.d" "$root"/etc/dpkg/dpkg.cfg.d/*
# The index of all manual pages takes long and isn't asked.
rm -f "$root/var/lib/man-db/auto-update"
: >"$root/etc/fstab"
# Not `chroot`: within one, no service gets a user namespace.
cd "$root"
pivot_root . .
umount --lazy .
exec env -i container=forebay-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=basic.target --log-target=journal --show-status=no
