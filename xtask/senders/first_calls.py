"""The first calls of programs that no package registry has, with the checks that they apply to the responses, and then 1,000 marked events
by `_bulk` as they send them: first_calls.py NAME, with the intake's URL in FOREBAY_URL.

The calls are those of Filebeat 8 and 9 (connection, licence, policy, template, data stream), of the Elasticsearch output of Logstash 8
(health, version and product, licence, template) and of Vector's elasticsearch sink (health, version)."""
import gzip
import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit

URL = urlsplit(os.environ["FOREBAY_URL"])
MARKS = [f"mark-{number:04}" for number in range(1000)]
VENDOR = "application/vnd.elasticsearch+json;compatible-with=8"


def call(method, path, body=None, headers=None):
    """One request on a new connection: its status, headers and body."""
    connection = http.client.HTTPConnection(URL.hostname, URL.port, timeout=10)
    try:
        connection.request(method, URL.path + path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def check(is_right, message):
    if not is_right:
        raise SystemExit(f"the program would stop: {message}")


def found_or_created(path, body, headers):
    """A program that sets something up: it asks, and creates what a 404 says is missing."""
    status, _, answer = call("GET", path, None, headers)
    check(status in (200, 404), f"GET {path} answered {status}: {answer[:200]}")
    if status == 404:
        status, _, answer = call("PUT", path, json.dumps(body), {**headers, "Content-Type": "application/json"})
        check(status < 300, f"PUT {path} answered {status}: {answer[:200]}")


def version(headers):
    status, answered, body = call("GET", "/", None, headers)
    check(status == 200, f"GET / answered {status}")
    check(answered.get("X-Elastic-Product") == "Elasticsearch", "no header X-Elastic-Product")
    number = json.loads(body)["version"]["number"]
    major, minor, _ = number.split(".")
    check(int(major) >= 7 and minor.isdigit(), f"version {number}")
    return int(major)


def license_is_active(query, headers):
    status, _, body = call("GET", "/_license" + query, None, headers)
    check(status == 200, f"GET /_license answered {status}")
    license = json.loads(body)["license"]
    check(license["status"] == "active" and license["type"], f"licence {license}")


def filebeat():
    headers = {"Accept": "application/json", "User-Agent": "Elastic-filebeat/8.19.0 (linux; amd64)", "Connection": "close",
               "X-Elastic-Product-Origin": "beats"}
    # A server of an older version than the Beat is rejected unless the Beat allows it.
    check(version(headers) >= 8, "the server is older than the Beat")
    license_is_active("?human=false", headers)
    found_or_created("/_ilm/policy/filebeat", {"policy": {"phases": {}}}, headers)
    found_or_created("/_index_template/filebeat-8.19.0", {"index_patterns": ["filebeat-8.19.0"], "data_stream": {}}, headers)
    found_or_created("/_data_stream/filebeat-8.19.0", {}, headers)
    found_or_created("/_ingest/pipeline/filebeat-8.19.0-system-syslog-pipeline", {"processors": []}, headers)
    path = "/_bulk?filter_path=errors%2Citems.%2A.error%2Citems.%2A.status"
    send(path, {"create": {"_index": "filebeat-8.19.0"}}, {**headers, "Content-Type": "application/json; charset=UTF-8"},
         statuses_of_all)


def logstash():
    headers = {"User-Agent": "Logstash/8.19.0 (OS=Linux; JVM=Eclipse Adoptium 21) logstash-output-elasticsearch/11.22.12",
               "Accept": "application/json"}
    status, _, _ = call("HEAD", "/", None, headers)
    check(status == 200, f"HEAD / answered {status}")
    major = version(headers)
    license_is_active("", headers)
    template = "/_index_template/ecs-logstash" if major >= 8 else "/_template/ecs-logstash"
    status, _, _ = call("HEAD", template, None, headers)
    check(status in (200, 404), f"HEAD {template} answered {status}")
    if status == 404:
        status, _, body = call("PUT", template, '{"index_patterns":["ecs-logstash-*"]}', headers)
        check(status == 200, f"PUT {template} answered {status}: {body[:200]}")
    path = "/_bulk?filter_path=errors,items.*.error,items.*.status"
    send(path, {"create": {"_index": "logs-generic-default"}}, {**headers, "Content-Type": "application/json"}, statuses_of_all)


def vector():
    headers = {"User-Agent": "Vector/0.50.0 (x86_64-unknown-linux-gnu)"}
    status, _, body = call("GET", "/_cluster/health", None, headers)
    check(status == 200, f"GET /_cluster/health answered {status}: {body[:200]}")
    version(headers)
    headers = {**headers, "Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    send("/_bulk?timeout=60s", {"index": {"_index": "vector-2026.11.28"}}, headers,
         lambda body, count: check(b'"errors":true' not in body, body[:300]))


def statuses_of_all(body, count):
    """Beats and Logstash take the statuses of the items by their order: a missing one counts as accepted."""
    items = json.loads(body)["items"]
    check(len(items) == count, f"{len(items)} items for {count} events")
    statuses = [next(iter(item.values()))["status"] for item in items]
    check(all(200 <= status < 300 for status in statuses), f"statuses {statuses}")


def send(path, action, headers, check_answer):
    for begin in range(0, 1000, 10):
        documents = [{"@timestamp": "2026-11-28T10:00:00.000Z", "message": mark} for mark in MARKS[begin:begin + 10]]
        body = "".join(json.dumps(action) + "\n" + json.dumps(document) + "\n" for document in documents).encode()
        if "Content-Encoding" in headers:
            body = gzip.compress(body, mtime=0)
        until_accepted(path, body, headers, lambda answer: check_answer(answer, len(documents)))
        time.sleep(0.02)


def until_accepted(path, body, headers, check_answer):
    """All three retry without a limit after a broken connection, a 429 and a 503, with the same bytes."""
    for _ in range(200):
        try:
            status, _, answer = call("POST", path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            print("again after", repr(error), flush=True)
            time.sleep(0.1)
            continue
        if status not in (429, 503):
            check(status == 200, f"POST {path} answered {status}: {answer[:300]}")
            return check_answer(answer)
        time.sleep(0.1)
    raise SystemExit("a batch wasn't sent in 200 attempts")


if __name__ == "__main__":
    {"filebeat-calls": filebeat, "logstash-calls": logstash, "vector-calls": vector}[sys.argv[1]]()
    print("done")
