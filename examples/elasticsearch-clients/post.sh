#!/bin/sh
# Posts what clients of Elasticsearch post, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}/es

# Posts the standard input as a bulk request, and expects a text in the response.
bulk() {
  response=$(curl -sS --data-binary @- -H 'Content-Type: application/x-ndjson' "$url/_bulk$2")
  printf '%s\n' "$response"
  case $response in
    *"$1"*) ;;
    *) echo "expected $1" >&2; exit 1 ;;
  esac
}

order() {
  printf '%s\n' "{\"create\":{\"_index\":\"orders-2026.11.28\",\"_id\":\"curl-$$-$1\"}}" "$2"
}

curl -sS "$url/" | grep '"number"'
order 1 '{"product":"tea"}' | bulk '"errors":false' ''
# A client that got no response sends the request again.
order 1 '{"product":"tea"}' | bulk '"status":201' '?filter_path=errors,items.*.error,items.*.status'
order 1 '{"product":"coffee"}' | bulk '"status":409' ''
# The order without a product is stored as rejected.
{ order 2 '{"n":2}'; order 3 '{"product":"milk"}'; } | bulk '"status":400' ''
echo 'all responses are as expected'
