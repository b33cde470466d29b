#!/bin/sh
# Posts an order, and asks both services. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Expects this text in the response or its status.
expect() {
  text=$1
  shift
  response=$(curl -sS -w ' %{http_code}' "$@")
  echo "$response"
  case $response in
    *"$text"*) ;;
    *) echo "expected $text" >&2; exit 1 ;;
  esac
}

expect 3.5 "$url/prices/tea"
expect ' 404' "$url/prices/hat"
expect ' 200' -H 'Accept: application/json' -H 'Forebay-Ack: stored' -d '{"product": "tea"}' "$url/ingest/event/order"
id=${response#*\"id\":\"}
expect tea "$url/orders/${id%%\"*}"
expect ' 404' "$url/orders/00000000-0000-0000-0000-000000000000"
echo 'all responses are as expected'
