#!/bin/sh
# Posts events as Splunk's libraries do, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}/hec/services/collector

# Posts the standard input to a path, and expects a status and a text in the response.
post() {
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- -H 'Authorization: Splunk any' "$url$1")
  printf '%s\n' "POST $1: $answer"
  case $answer in
    *"$3"*"$2") ;;
    *) echo "expected $3 and status $2" >&2; exit 1 ;;
  esac
}

now=$(date -u +%s)
event() {
  printf '{"time":%s.25,"host":"web-1","sourcetype":"app_log","event":%s}' "$now" "$1"
}
events=$(event "\"number $$\""; event "{\"level\":\"info\",\"n\":$$}")

curl -sS "$url/health"; echo
printf '%s' "$events" | post /event 200 '"Success"'
# A sender that got no response sends the same bytes again: Forebay stores them once.
printf '%s' "$events" | post /event 200 '"Success"'
# Raw lines. The time is that of the arrival, so the schema rejects them, and nothing of the request is stored.
printf 'line %s\n' "$$" | post '/raw?sourcetype=app_log' 400 '"invalid-event-number":0'
{ event '"good"'; printf '{"host":"web-1"}'; } | post /event 400 '"code":12,"invalid-event-number":1'
printf '' | post /event 400 '"code":5'
# With a channel, senders ask whether a request is on disk.
event "\"last $$\"" | post '/event?channel=c1' 200 '"ackId":'
printf '{"acks":[0]}' | post '/ack?channel=c1' 200 '{"acks":{"0":true}}'
echo 'all responses are as expected'
