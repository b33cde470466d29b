#!/bin/sh
# Posts an image of one pixel, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts the standard input, waits until it is stored, and expects a status.
post() {
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- -H 'Forebay-Ack: stored' "$url/ingest/event/shot")
  printf '%s\n' "POST /ingest/event/shot: $answer"
  if [ "$(printf '%s\n' "$answer" | tail -n 1)" != "$1" ]; then
    echo "expected status $1" >&2
    exit 1
  fi
}

id="c7-$(date +%s)-$$"
# 200 means that the image and the line with its name are in Swift.
post 200 <<EVENT
{"id":"$id","camera":7,"image":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7","type":"image/gif"}
EVENT
# Clients choose the content type, so the schema allows only images.
post 422 <<EVENT
{"id":"$id-b","camera":7,"image":"PGI+","type":"text/html"}
EVENT
echo 'all responses are as expected'
