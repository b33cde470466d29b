#!/bin/sh
# Posts CloudEvents in each mode, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts the standard input with the headers that follow, and expects a status and a text in the response.
post() {
  expected=$1
  text=$2
  shift 2
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- "$@" "$url/cloudevents")
  printf '%s\n' "POST /cloudevents: $answer"
  case $answer in
    *"$text"*"$expected") ;;
    *) echo "expected $text and status $expected" >&2; exit 1 ;;
  esac
}

now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
event() {
  printf '{"specversion":"1.0","id":"%s","source":"/shop","type":"com.example.order","time":"%s","data":%s}' "$1-$$" "$now" "$2"
}

event 1 '{"total":12}' | post 204 '' -H 'Content-Type: application/cloudevents+json'
# The same event in binary mode, as a retry through another broker sends it.
printf '{"total": 12}' | post 204 '' -H 'Content-Type: application/json' -H 'ce-specversion: 1.0' -H "ce-id: 1-$$" -H 'ce-source: /shop' \
  -H 'ce-type: com.example.order' -H "ce-time: $now"
# A batch of which the schema rejects the second event.
printf '[%s,%s]' "$(event 2 '{"total":7}')" "$(event 3 '{"total":"x"}')" |
  post 207 '"index":1,"code":"schema"' -H 'Content-Type: application/cloudevents-batch+json'
echo '{"specversion":"1.0"}' | post 422 'is missing' -H 'Content-Type: application/cloudevents+json'
echo '{}' | post 415 'ce-' -H 'Content-Type: application/json'
echo 'all responses are as expected'
