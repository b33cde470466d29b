#!/bin/sh
# Posts an event to each of two types, and reads one back. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts an event under a key, and expects status 200.
post() {
  status=$(curl -sS -o /dev/null -w '%{http_code}' -d "$3" -H "Idempotency-Key: $2" "$url/ingest/event/$1")
  echo "POST /ingest/event/$1: $status"
  if [ "$status" != 200 ]; then
    echo 'expected status 200' >&2
    exit 1
  fi
}

key="$(date +%s)-$$"
post order "$key" "{\"order\": \"$key\", \"total\": 19.90}"
post order "$key" "{\"order\": \"$key\", \"total\": 19.90}"
post login "$key" '{"user": "ann"}'

# The SQLite sink gathers events for some milliseconds.
for _ in 1 2 3 4 5 6 7 8 9 10; do
  stored=$(curl -sS "$url/events?type=order&order=desc&limit=2")
  case $stored in *"$key"*) break ;; esac
  sleep 1
done
printf '%s\n' "stored: $stored"
if [ "$(printf '%s' "$stored" | grep -o "$key" | wc -l)" -ne 1 ]; then
  echo 'the order is not stored exactly once' >&2
  exit 1
fi
echo 'all responses are as expected'
