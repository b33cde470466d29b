# Sends with the clients of Elasticsearch and OpenSearch, and checks what they report. Use: python send.py [URL]
import datetime
import os
import sys

import elasticsearch
import elasticsearch.helpers
import opensearchpy
import opensearchpy.helpers

url = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FOREBAY_URL", "http://127.0.0.1:8080")
token = os.environ.get("FOREBAY_TOKEN")
options = {"basic_auth": ("clients", token)} if token else {}
# Status 503 is temporary: the client sends the request again.
client = elasticsearch.Elasticsearch(url + "/es", retry_on_status=(503,), retry_on_timeout=True, **options)
print(client.info()["version"]["number"])


def orders(product):
    for n in range(10):
        order_id = f"python-{os.getpid()}-{n}"
        yield {"_op_type": "create", "_index": "orders", "_id": order_id, "product": product, "n": n}


def statuses(errors):
    return [next(iter(error.values()))["status"] for error in errors]


def expect(value, expected):
    if value != expected:
        sys.exit(f"expected {expected}, got {value}")


expect(elasticsearch.helpers.bulk(client, orders("tea")), (10, []))
# The same again is a success, and stored once.
expect(elasticsearch.helpers.bulk(client, orders("tea")), (10, []))
# Other bytes with the same ids are conflicts.
stored, errors = elasticsearch.helpers.bulk(client, orders("coffee"), raise_on_error=False)
expect((stored, statuses(errors)), (0, [409] * 10))
# The schema rejects one of two, and Forebay keeps it as rejected.
mixed = [{"_index": "orders", "n": 1}, {"_index": "orders", "product": "milk", "pid": os.getpid()}]
stored, errors = elasticsearch.helpers.bulk(client, mixed, raise_on_error=False)
expect((stored, statuses(errors)), (1, [400]))
now = datetime.datetime.now(datetime.timezone.utc).isoformat()
line = {"@timestamp": now, "message": f"started {os.getpid()}"}
expect(client.index(index="logs-app", document=line)["result"], "created")

options = {"http_auth": ("clients", token)} if token else {}
search = opensearchpy.OpenSearch(url + "/es", **options)
lines = [{"_index": "logs-app-2026.11.28", **line, "n": n} for n in range(10)]
expect(opensearchpy.helpers.bulk(search, lines), (10, []))
print("all responses are as expected")
