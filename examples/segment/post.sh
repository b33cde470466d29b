#!/bin/sh
# Posts calls as Segment's SDKs do, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}/segment

# Posts the standard input to a path, and expects a status and a text in the response.
post() {
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- -H 'Content-Type: text/plain' "$url$1")
  printf '%s\n' "POST $1: $answer"
  case $answer in
    *"$3"*"$2") ;;
    *) echo "expected $3 and status $2" >&2; exit 1 ;;
  esac
}

now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
track() {
  printf '{"type":"track","messageId":"%s-%s","userId":"u1","event":"Order Completed","properties":{"total":%s},"timestamp":"%s"}' "$1" "$$" "$2" "$now"
}
identify="{\"type\":\"identify\",\"messageId\":\"i-$$\",\"userId\":\"u1\",\"traits\":{\"email\":\"ann@example.com\"},\"timestamp\":\"$now\"}"
batch="$(track a 12),$identify"

printf '{"batch":[%s],"sentAt":"%s","writeKey":"any"}' "$batch" "$now" | post /v1/batch 200 '{"success":true}'
# A retry: only `sentAt` has changed, so both messages are duplicates.
printf '{"batch":[%s],"sentAt":"later","writeKey":"any"}' "$batch" | post /v1/batch 200 '{"success":true}'
# analytics.js posts single messages to short paths.
track b 7 | post /v1/t 200 '{"success":true}'
# The schema rejects it. SDKs can't use that information, so the response is 200, and `rejected` has the message.
track c '"x"' | post /v1/track 200 '{"success":true}'
printf 'no JSON' | post /v1/batch 400 '"code":"invalid_json"'
echo 'all responses are as expected'
