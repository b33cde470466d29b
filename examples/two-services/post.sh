#!/bin/sh
# Posts an order to the gateway, waits until the writer has stored it, and reads it back. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts an order, and expects status 200.
post() {
  status=$(curl -sS -o /dev/null -w '%{http_code}' -d "{\"order\": \"$order\", \"total\": 20}" "$@" "$url/ingest/event/order")
  echo "POST /ingest/event/order: $status"
  if [ "$status" != 200 ]; then
    echo 'expected status 200' >&2
    exit 1
  fi
}

order="o-$(date +%s)-$$"
# On the gateway's disk. The writer may be down.
post
# The same order again: a duplicate. This response waits until the writer has stored the order.
post -H 'Forebay-Ack: stored'

stored=$(curl -sS "$url/events?type=order&order=desc&limit=2")
printf '%s\n' "stored: $stored"
if [ "$(printf '%s' "$stored" | grep -o "$order" | wc -l)" -ne 1 ]; then
  echo 'the order is not stored exactly once' >&2
  exit 1
fi
echo 'all responses are as expected'
