#!/bin/sh
# Posts two orders, one of them invalid, and checks the responses. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts a payload, and expects a status.
post() {
  status=$(curl -sS -o /dev/null -w '%{http_code}' "$url/ingest/event/order" -d "$2")
  if [ "$status" != "$1" ]; then
    echo "expected status $1, got $status" >&2
    exit 1
  fi
}

post 200 '{"product": "tea"}'
post 422 '{"product": 7}'
echo 'all responses are as expected'
