#!/bin/sh
# Posts webhooks as GitHub does, and checks each response. Use: GITHUB_SECRET=… sh post.sh [URL]
set -eu
url=${1:-${FOREBAY_URL:-http://127.0.0.1:8080}}

sign() {
  printf %s "$1" | openssl dgst -sha256 -hmac "$2" -r | cut -d ' ' -f 1
}

# Posts a body with a signature, a delivery and a content type, and expects a status.
deliver() {
  status=$(curl -sS -o answer.json -w '%{http_code}' --data-binary "$2" -H "X-Hub-Signature-256: sha256=$3" -H "X-GitHub-Delivery: $4" \
    -H "Content-Type: ${5:-application/json}" -H 'X-GitHub-Event: push' -H 'User-Agent: GitHub-Hookshot/044aadd' "$url/hooks/github")
  printf '%s\n' "delivery $4: $status $(cat answer.json)"
  rm -f answer.json
  [ "$status" = "$1" ] || { echo "expected $1" >&2; exit 1; }
}

after=$(date +%s)-$$
push="{\"ref\":\"refs/heads/main\",\"after\":\"$after\",\"repository\":{\"full_name\":\"octo/shop\"},\"sender\":{\"login\":\"ann\"}}"
signature=$(sign "$push" "$GITHUB_SECRET")
deliver 204 "$push" "$signature" 1
# An attacker sends the recorded request again, with another delivery. It is a duplicate.
deliver 204 "$push" "$signature" 2
# With another body, the signature is wrong; and so is that of another secret.
deliver 401 "$(printf %s "$push" | sed s/ann/eve/)" "$signature" 3
deliver 401 "$push" "$(sign "$push" another)" 4
# The content type that GitHub has by default.
form="payload=%7B%22action%22%3A%22opened%22%2C%22number%22%3A$$%2C%22organization%22%3A%7B%7D%2C%22sender%22%3A%7B%22login%22%3A%22bob%22%7D%7D"
deliver 204 "$form" "$(sign "$form" "$GITHUB_SECRET")" 5 application/x-www-form-urlencoded
other="{\"hello\":\"world, number $after\"}"
deliver 422 "$other" "$(sign "$other" "$GITHUB_SECRET")" 6
echo 'all responses are as expected'
