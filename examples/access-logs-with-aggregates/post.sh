#!/bin/sh
# Posts lines of an access log, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts the standard input with more options of curl, and expects a status and a text in the response.
post() {
  expected=$1 text=$2 path=$3
  shift 3
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- "$@" "$url$path")
  status=$(printf '%s\n' "$answer" | tail -n 1)
  printf '%s\n' "POST $path: $answer"
  if [ "$status" != "$expected" ]; then
    echo "expected status $expected" >&2
    exit 1
  fi
  case $answer in
    *"$text"*) ;;
    *) echo "expected $text in the response" >&2; exit 1 ;;
  esac
}

# The key makes a retry safe: the same batch again is stored once.
batch() {
  post "$1" "$2" /ingest/batch/access -H 'Content-Type: application/x-ndjson' -H "Idempotency-Key: $3" -H 'Forebay-Ack: stored'
}

good() {
  cat <<'LINES'
{"line":"192.0.2.1 - - [21/Nov/2025:10:05:03 +0000] \"GET /shop?user=ann HTTP/1.1\" 200 1000 \"-\" \"curl/8.5\""}
{"line":"192.0.2.2 - - [21/Nov/2025:10:05:20 +0000] \"GET /missing HTTP/1.1\" 404 10 \"-\" \"curl/8.5\""}
{"line":"192.0.2.1 - - [21/Nov/2025:10:06:10 +0000] \"GET /shop/cart HTTP/1.1\" 200 500 \"-\" \"curl/8.5\""}
LINES
}

key="access-$(date +%s)-$$"
good | batch 200 '"accepted":3' "$key"
good | batch 200 '"duplicates":3' "$key"
printf '%s\n' '{"line":"no line of an access log"}' | batch 422 '"code":"transform"' "$key-wrong"
echo 'all responses are as expected'
