#!/bin/sh
# Pushes lines as Loki's clients do, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}/loki

# Pushes the standard input, and expects a status and a text in the response.
push() {
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- -H 'Content-Type: application/json' "$url/loki/api/v1/push")
  printf '%s\n' "push: $answer"
  case $answer in
    *"$2"*"$1") ;;
    *) echo "expected $2 and status $1" >&2; exit 1 ;;
  esac
}

now=$(date -u +%s)000000000
lines="{\"streams\":[{\"stream\":{\"job\":\"web\",\"host\":\"web-1\"},\"values\":[[\"$now\",\"GET /$$ 200\"],[\"$now\",\"{\\\"level\\\":\\\"info\\\",\\\"n\\\":$$}\",{\"trace_id\":\"a1\"}]]}]}"

curl -sS "$url/ready"
printf '%s' "$lines" | push 204 ''
# A sender that got no response sends the same bytes again: Forebay stores the lines once.
printf '%s' "$lines" | push 204 ''
# The second line has no time. The first one is stored.
printf '{"streams":[{"stream":{"job":"web"},"values":[["%s","good %s"],["soon","bad"]]}]}' "$now" "$$" | push 400 '1 of 2 lines are rejected'
printf 'no JSON' | push 400 'no JSON'
echo 'all responses are as expected'
