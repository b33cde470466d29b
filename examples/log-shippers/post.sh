#!/bin/sh
# Posts the batches that the shippers post, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts the standard input, and expects status 200 and a text in the response.
post() {
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- -H 'Content-Type: application/x-ndjson' "$url/ingest/batch/$1")
  printf '%s\n' "POST /ingest/batch/$1: $answer"
  case $answer in
    *"$2"*200) ;;
    *) echo "expected $2 and status 200" >&2; exit 1 ;;
  esac
}

now=$(date -u +%Y-%m-%dT%H:%M:%S)
syslog() {
  cat <<LINES
{"time":"$now.123456+00:00","host":"web-1","program":"sshd","severity":"INFO","message":" Accepted publickey for ann, number $$"}
{"time":"$now.654321+00:00","host":"web-1","program":"cron","severity":"err","message":" job failed, number $$"}
LINES
}

syslog | post syslog '"accepted":2'
# A shipper that got no response sends the batch again.
syslog | post syslog '"duplicates":2'
# The line without a host is stored as rejected, the other one as usual.
printf '%s\n' "{\"time\":\"$now+00:00\",\"message\":\"no host, number $$\"}" "{\"time\":\"$now+00:00\",\"host\":\"web-2\",\"message\":\"good, number $$\"}" |
  post syslog '"accepted":1'
printf '%s\n' "{\"time\":\"$now.000001Z\",\"log\":\"plain text, number $$\"}" "{\"time\":\"$now.000002Z\",\"log\":\"{\\\"level\\\":\\\"info\\\",\\\"n\\\":$$}\"}" |
  post fluentbit '"accepted":2'
echo 'all responses are as expected'
