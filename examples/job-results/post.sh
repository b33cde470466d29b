#!/bin/sh
# Posts an event of each type, waits until its store has it, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

# Posts the standard input, and expects a status and a text in the response.
post() {
  answer=$(curl -sS -w '\n%{http_code}' --data-binary @- -H 'Accept: application/json' -H 'Forebay-Ack: stored' "$url/ingest/event")
  printf '%s\n' "POST /ingest/event: $answer"
  case $answer in
    *"$2"*"$1") ;;
    *) echo "expected $2 and status $1" >&2; exit 1 ;;
  esac
}

job="c4bb6d-$(date +%s)-$$"
result() {
  echo "{\"type\":\"job-result\",\"data\":\"{'job_id':'$job','container_id':'ab7b85dcac72','status':'$1'}\"}"
}

echo "{\"type\":\"job-progress\",\"job_id\":\"$job\",\"percent\":40}" | post 200 '"duplicate":false'
echo "{\"type\":\"job-log\",\"job_id\":\"$job\",\"time\":\"$(date -u +%Y-%m-%dT%H:%M:%SZ)\",\"text\":\"loading 12 files\"}" | post 200 '"duplicate":false'
echo "{\"type\":\"job-report\",\"job_id\":\"$job\",\"report\":{\"files\":12}}" | post 200 '"duplicate":false'
result 'Success: process exited with code 0.' | post 200 '"duplicate":false'
# The worker got no response, and reports the job again.
result 'Success: process exited with code 0.' | post 200 '"duplicate":true'
result 'Lost' | post 422 '"code":"transform"'
echo '{"type":"job"}' | post 404 '"code":"unknown_type"'
echo 'all responses are as expected'
