#!/bin/sh
# Becomes the first process of a box (box.ts): in namespaces of its own, with LOWER below the folder UPPER as its whole disk, it hands over to
# the systemd that lies there. sh test/kit/box-init.sh LOWER FOLDER
set -eu
lower=$1 folder=$2
root=$folder/root
mount --make-rprivate /
mkdir -p "$folder/upper" "$folder/work" "$root"
mount -t overlay box -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for device in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
  # shellcheck disable=SC2086
  set -- $device
  mknod -m 666 "$root/dev/$1" c "$2" "$3"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for name in stdin:0 stdout:1 stderr:2; do ln -s "/proc/self/fd/${name#*:}" "$root/dev/${name%:*}"; done
# What systemd says before its journal is up.
: >"$root/dev/console"
cd "$root"
mkdir -p .before
pivot_root . .before
umount -l /.before
rmdir /.before
exec env -i container=box PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /sbin/init
