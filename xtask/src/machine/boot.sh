# The first process of a machine whose disk is this machine's, under an overlay in memory.
# It runs in its own namespaces. $1 is an empty folder, $2 is the folder to mount at /mnt.
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
# Only systemd starts automatically, and no disk is mounted. Packages may start their services, and dpkg installs documentation.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/usr/lib/systemd/system/*.wants
rm -rf "$root/usr/sbin/policy-rc.d" "$root"/etc/dpkg/dpkg.cfg.d/*
# The index of all manual pages takes long and isn't used.
rm -f "$root/var/lib/man-db/auto-update"
: >"$root/etc/fstab"
# Not `chroot`: it would prevent user namespaces of services.
cd "$root"
pivot_root . .
umount --lazy .
exec env -i container=forebay-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=basic.target --log-target=journal --show-status=no
