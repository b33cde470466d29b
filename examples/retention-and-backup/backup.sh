#!/bin/sh
# Copies the data directory while Forebay is stopped, and keeps the newest seven copies. Use: sh backup.sh DATA BACKUPS
# It stops and starts the service if STOP and START say how, as STOP='systemctl stop forebay' START='systemctl start forebay'.
set -eu
data=$1 backups=$2

mkdir -p "$backups"
copy="$backups/forebay-$(date -u +%Y%m%dT%H%M%SZ)"
${STOP:-:}
# Forebay must start again even if the copy fails.
trap '${START:-:}' EXIT
cp -a "$data" "$copy.part"
# A copy under its last name is complete.
mv "$copy.part" "$copy"
sync
# The names sort by time.
for old in $(ls -r "$backups" | grep '^forebay-[0-9TZ]*$' | tail -n +8); do
  rm -rf "${backups:?}/$old"
done
echo "$copy"
