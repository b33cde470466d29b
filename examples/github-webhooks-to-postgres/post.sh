#!/bin/sh
# Posts deliveries as GitHub does, and checks each response. Use: sh post.sh [URL]
# With tokens the URL contains one: https://hook:fb_…@events.example.org
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts the standard input as a delivery, waits until it is stored, and expects a status and a text in the response.
deliver() {
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- -H 'Content-Type: application/json' -H 'User-Agent: GitHub-Hookshot/044aadd' \
    -H "X-GitHub-Event: $3" -H "X-GitHub-Delivery: $4" -H 'Accept: application/json' -H 'Forebay-Ack: stored' "$url/ingest/event/github")
  printf '%s\n' "$3: $answer"
  case $answer in
    *"$2"*"$1") ;;
    *) echo "expected $2 and status $1" >&2; exit 1 ;;
  esac
}

id="72d3162e-cc78-11e3-81ab-$(date +%s)-$$"
deliver 200 '"duplicate":false' push "$id" < cases/push/input.ndjson
# The button "Redeliver" sends the same delivery again.
deliver 200 '"duplicate":true' push "$id" < cases/push/input.ndjson
deliver 200 '"duplicate":false' issues "$id-i" <<'EVENT'
{"action":"opened","issue":{"number":7,"title":"Wrong total"},"repository":{"full_name":"octo/shop"},"sender":{"login":"bob"}}
EVENT
deliver 200 '"filtered"' ping "$id-p" < cases/ping/input.ndjson
echo '{"hello":"world"}' | deliver 422 '"code":"schema"' push "$id-r"
echo 'all responses are as expected'
