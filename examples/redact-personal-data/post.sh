#!/bin/sh
# Posts a sign-up, and checks that nothing personal comes back. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts the standard input, and expects a status.
post() {
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- -H 'Forebay-Ack: stored' "$url$2")
  printf '%s\n' "POST $2: $answer"
  if [ "$(printf '%s\n' "$answer" | tail -n 1)" != "$1" ]; then
    echo "expected status $1" >&2
    exit 1
  fi
}

id="s-$(date +%s)-$$"
post 200 /ingest/event/signup <<EVENT
{"id":"$id","email":"ann@example.org","password":"correct horse","birthday":"1990-01-31","card":"4111111111111111","client":"192.0.2.77","plan":"team","notes":"write to ann@example.org"}
EVENT
post 422 /ingest/event/signup <<EVENT
{"id":"$id-b","email":"ann@example.org","passport":"C01X00T47"}
EVENT

stored=$(curl -sS "$url/events?type=signup&order=desc&limit=1")
printf '%s\n' "stored: $stored"
case $stored in
  *"$id"*) ;;
  *) echo "the event isn't stored" >&2; exit 1 ;;
esac
case $stored in
  *ann@*|*horse*|*1990*|*41111111*|*192.0.2.77*) echo 'personal data is stored' >&2; exit 1 ;;
esac
echo 'all responses are as expected'
