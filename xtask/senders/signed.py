"""Requests that the libraries of providers sign, to the intakes of webhooks.toml.

FOREBAY_URL is the URL of the gateway. If FOREBAY_METRICS is the URL of its metrics, the script checks how many events are stored, too.
It prints a line for each case and ends with 1 if one differs.
"""
import base64
import datetime
import hashlib
import hmac
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import slack_sdk.signature
import standardwebhooks
import stripe
import svix
import twilio.request_validator

URL = os.environ["FOREBAY_URL"].rstrip("/")
METRICS = os.environ.get("FOREBAY_METRICS")
RUN = uuid.uuid4().hex
NOW = int(time.time())
HOUR_AGO = NOW - 3600
STANDARD = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"]
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
failures = 0


def post(name, body, headers, query=""):
    request = urllib.request.Request(f"{URL}/hooks/{name}{query}", data=body, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def stored():
    """Events that are on disk: what was accepted, without duplicates."""
    with urllib.request.urlopen(METRICS, timeout=30) as response:
        text = response.read().decode()
    def total(name):
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)", text, re.M))
    accepted = total('forebay_intake_records_total{[^}]*result="accepted"[^}]*}')
    return accepted - total("forebay_duplicates_total")


def report(name, case, expected, got):
    global failures
    failures += expected != got
    print(f"{name} {case} expected {expected} got {got}", flush=True)


def check(name, case, expected, new_events, request):
    before = stored() if METRICS else 0
    status, body = post(name, *request)
    report(name, case, expected, status)
    if METRICS:
        report(name, f"{case}-stored", new_events, int(stored() - before))
    return body


def github(body, secret="gh-secret-1", content_type=JSON, delivery="1"):
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return body, {"X-Hub-Signature-256": signature, "X-GitHub-Event": "push", "X-GitHub-Delivery": delivery, "Content-Type": content_type}


def shopify(body, secret="shop-secret-1", webhook_id="1"):
    signature = base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()
    return body, {"X-Shopify-Hmac-Sha256": signature, "X-Shopify-Webhook-Id": webhook_id, "Content-Type": JSON}


def of_stripe(body, secret="whsec_stripe_1", at=NOW, request_id="1"):
    signature = stripe.WebhookSignature._compute_signature(f"{at}.{body.decode()}", secret)
    header = f"t={at},v1={signature},v0=0"
    if at == NOW:
        stripe.WebhookSignature.verify_header(body.decode(), header, secret, 300)
    return body, {"Stripe-Signature": header, "Idempotency-Key": request_id, "Content-Type": f"{JSON}; charset=utf-8"}


def of_slack(body, secret="slack-secret-1", at=NOW, content_type=JSON, retry="1"):
    verifier = slack_sdk.signature.SignatureVerifier(secret)
    signature = verifier.generate_signature(timestamp=str(at), body=body)
    headers = {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": signature, "X-Slack-Retry-Num": retry, "Content-Type": content_type}
    if at == NOW:
        assert verifier.is_valid_request(body, headers)
    return body, headers


class Parameters(dict):
    """Parameters of a form: some have several values. The library reads them as web frameworks have them."""

    def getlist(self, name):
        value = self[name]
        return value if isinstance(value, list) else [value]


def of_twilio(parameters, secret="twilio-token-1", trace="1", algorithm=None):
    validator = twilio.request_validator.RequestValidator(secret)
    signature = validator.compute_signature(f"{URL}/hooks/twilio", Parameters(parameters), algorithm)
    headers = {"X-Twilio-Signature": signature, "I-Twilio-Idempotency-Token": trace, "Content-Type": FORM}
    return urllib.parse.urlencode(parameters, doseq=True).encode(), headers


def of_twilio_json(body, secret="twilio-token-1"):
    query = f"?bodySHA256={hashlib.sha256(body).hexdigest()}"
    signature = twilio.request_validator.RequestValidator(secret).compute_signature(f"{URL}/hooks/twilio{query}", {})
    return body, {"X-Twilio-Signature": signature, "Content-Type": JSON}, query


def of_standard(library, prefix, body, secret=STANDARD[0], at=NOW, message=None, other="1"):
    message = message or f"msg_{RUN}{prefix}"
    time_of_message = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    webhook = library.Webhook(secret)
    headers = {
        f"{prefix}-id": message,
        f"{prefix}-timestamp": str(at),
        f"{prefix}-signature": webhook.sign(message, time_of_message, body.decode()),
        "Idempotency-Key": other,
        "Content-Type": JSON,
    }
    if at == NOW:
        webhook.verify(body, headers)
    return body, headers


def forged(request):
    """The request with another body; its parameters stay valid."""
    body, *rest = request
    return body.replace(RUN.encode(), b"x" + RUN.encode()[1:]) + b" ", *rest


def check_common(name, make, second_secret, has_time, other_header):
    body = json.dumps({"id": f"evt_{RUN}", "event_id": f"Ev{RUN}", "amount": 12}).encode()
    check(name, "good", 204, 1, make(body))
    check(name, "again", 204, 0, make(body))
    check(name, "forged", 401, 0, forged(make(body)))
    check(name, "unsigned-header", 204, 0, make(body, **{other_header: "2"}))
    if has_time:
        check(name, "old", 401, 0, make(body, at=HOUR_AGO))
        check(name, "future", 401, 0, make(body, at=NOW + 3600))
    second = json.dumps({"id": f"evt_{RUN}2", "event_id": f"Ev{RUN}2"}).encode()
    more = {"message": f"msg_{RUN}{name}2"} if name in ("standard", "svix") else {}
    check(name, "second-secret", 204, 1, make(second, secret=second_secret, **more))
    check(name, "other-secret", 401, 0, make(second, secret=STANDARD[0][:-4] + "AAAA"))


def check_forms():
    payload = urllib.parse.urlencode({"payload": json.dumps({"ref": RUN})}).encode()
    check("github", "form", 204, 1, github(payload, content_type=FORM))
    check("slack", "form", 204, 1, of_slack(payload, content_type=FORM))
    command = urllib.parse.urlencode({"command": "/deploy", "text": RUN, "trigger_id": RUN}).encode()
    check("slack", "command", 204, 1, of_slack(command, content_type=FORM))


def check_challenge():
    body = json.dumps({"token": "x", "challenge": RUN, "type": "url_verification"}).encode()
    answer = check("slack", "challenge", 200, 0, of_slack(body))
    report("slack", "challenge-body", RUN, json.loads(answer or b"{}").get("challenge"))
    check("slack", "challenge-forged", 401, 0, forged(of_slack(body)))


def check_twilio():
    message = {"MessageSid": f"SM{RUN}", "Body": "Grüße + 1 & 2", "From": "+14158675309", "Media": ["b", "a", "a"]}
    check("twilio", "form", 204, 1, of_twilio(message))
    check("twilio", "again", 204, 0, of_twilio(message))
    check("twilio", "unsigned-header", 204, 0, of_twilio(message, trace="2"))
    check("twilio", "sha256", 204, 0, of_twilio(message, algorithm="HMAC_SHA256"))
    check("twilio", "forged", 401, 0, forged(of_twilio(message)))
    check("twilio", "second-secret", 204, 1, of_twilio({"MessageSid": f"SM{RUN}2"}, secret="twilio-token-2"))
    body = json.dumps({"sid": RUN}).encode()
    check("twilio", "json", 204, 1, of_twilio_json(body))
    check("twilio", "json-forged", 401, 0, forged(of_twilio_json(body)))
    empty = (b"", {**of_twilio_json(body)[1], "Content-Type": FORM}, of_twilio_json(body)[2])
    check("twilio", "json-as-empty-form", 401, 0, empty)


def main():
    check_common("github", github, "gh-secret-2", False, "delivery")
    check_common("shopify", shopify, "shop-secret-2", False, "webhook_id")
    check_common("stripe", of_stripe, "whsec_stripe_2", True, "request_id")
    check_common("slack", of_slack, "slack-secret-2", True, "retry")
    for name, library, prefix in [("standard", standardwebhooks, "webhook"), ("svix", svix, "svix")]:
        make = lambda body, library=library, prefix=prefix, **more: of_standard(library, prefix, body, **more)
        check_common(name, make, STANDARD[1], True, "other")
    check_forms()
    check_challenge()
    check_twilio()
    sys.exit(1 if failures else 0)


main()
