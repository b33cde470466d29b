#!/bin/sh
# Posts and reads with and without tokens, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-https://localhost:8443}}

# Runs curl with the header in a file, because other users of the machine can see arguments.
ask() {
  expected=$1 header=$2
  shift 2
  status=$(printf '%s\n' "$header" | curl -sS -o /dev/null -w '%{http_code}' --cacert server.pem -H @- "$@")
  echo "$*: $status"
  if [ "$status" != "$expected" ]; then
    echo "expected status $expected" >&2
    exit 1
  fi
}

shop=$(cat shop.token) reports=$(cat reports.token)
order="o-$(date +%s)-$$"

ask 401 'Accept: application/json' -d '{"order": "x"}' "$url/ingest/event/order"
ask 403 "Authorization: Bearer $reports" -d '{"order": "x"}' "$url/ingest/event/order"
ask 200 "Authorization: Bearer $shop" -d "{\"order\": \"$order\", \"total\": 20}" "$url/ingest/event/order"
# Clients that can't send a bearer token: an API key, or the password of HTTP Basic.
ask 200 "X-Api-Key: $shop" -d "{\"order\": \"$order-b\"}" "$url/ingest/event/order"
ask 200 "Authorization: Basic $(printf 'anybody:%s' "$shop" | base64 | tr -d '\n')" -d "{\"order\": \"$order-c\"}" "$url/ingest/event/order"
ask 403 "Authorization: Bearer $shop" "$url/events?type=order"
ask 200 "Authorization: Bearer $reports" "$url/events?type=order"
# A port with TLS answers plain HTTP, and stores nothing.
ask 400 "Authorization: Bearer none" -d '{}' "http://${url#https://}/ingest/event/order"
echo 'all responses are as expected'
