#!/bin/sh
# Posts what exporters of OTLP post, in JSON, and checks each response. Use: sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}/otlp

# Posts the standard input, and expects a response.
post() {
  response=$(curl -sS --data-binary @- -H 'Content-Type: application/json' "$url/v1/$1")
  printf '%s\n' "POST /v1/$1: $response"
  case $response in
    *"$2"*) ;;
    *) echo "expected $2" >&2; exit 1 ;;
  esac
}

now=$(date +%s)000000000
log() {
  cat <<JSON
{"resourceLogs":[{"resource":{"attributes":[{"key":"$1","value":{"stringValue":"checkout"}}]},"scopeLogs":[{"logRecords":[
  {"timeUnixNano":"$now","severityNumber":13,"body":{"stringValue":"order $$ failed"}}]}]}]}
JSON
}

log service.name | post logs '{}'
# An exporter that got no response sends the request again. The record is stored once.
log service.name | post logs '{}'
# The schema rejects a record without service.name: the exporter doesn't send it again.
log host.name | post logs '"rejectedLogRecords":"1"'
trace=$(printf '%032x' $$)
post traces '{}' <<JSON
{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"$trace","spanId":"00f067aa0ba902b7","name":"POST /pay","kind":2,
  "startTimeUnixNano":"$now","endTimeUnixNano":"$now"}]}]}]}
JSON
post metrics '{}' <<JSON
{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"orders","sum":{"aggregationTemporality":2,"isMonotonic":true,
  "dataPoints":[{"timeUnixNano":"$now","asInt":"$$"}]}}]}]}]}
JSON
echo 'all responses are as expected'
