"""Senders from PyPI, unchanged, each with 1,000 marked events: senders.py NAME, with the intake's URL in FOREBAY_URL.

It ends with a status other than 0 if a sender that retries reports that it lost events."""
import logging
import os
import sys
import time
import warnings
from urllib.parse import urlsplit

warnings.simplefilter("ignore")
URL = os.environ["FOREBAY_URL"]
HOST, PORT = urlsplit(URL).hostname, urlsplit(URL).port
MARKS = [f"mark-{number:04}" for number in range(1000)]
BATCHES = [MARKS[begin:begin + 10] for begin in range(0, 1000, 10)]
# Between batches, and between events of senders that send each separately.
PAUSE, SHORT_PAUSE = 0.02, 0.005


def logger(handler):
    """A logger with one handler, paced by its caller."""
    log = logging.getLogger("campaign")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(handler)
    return log


def until_sent(send, failure):
    """Repeats a call as an application does, until it doesn't fail."""
    for _ in range(100):
        try:
            return send()
        except failure as error:
            print("again after", repr(error)[:200], flush=True)
            time.sleep(0.1)
    raise SystemExit("a batch wasn't sent in 100 attempts")


def elasticsearch(has_ids):
    from elasticsearch import Elasticsearch, TransportError, ApiError, helpers
    client = Elasticsearch(URL, basic_auth=("campaign", "secret"))
    until_sent(client.info, (TransportError, ApiError))
    for batch in BATCHES:
        documents = [{"_op_type": "create", "_index": "logs-app-default", "n": mark} for mark in batch]
        if has_ids:
            documents = [{**document, "_id": "id-" + document["n"]} for document in documents]
        until_sent(lambda: helpers.bulk(client, documents, max_retries=10), (TransportError, ApiError))
        time.sleep(PAUSE)


def opensearch():
    from opensearchpy import OpenSearch, exceptions, helpers
    client = OpenSearch(URL)
    for batch in BATCHES:
        documents = [{"_index": "app-2026.11.28", "n": mark} for mark in batch]
        until_sent(lambda: helpers.bulk(client, documents, max_retries=10), exceptions.TransportError)
        time.sleep(PAUSE)


def opentelemetry():
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    exporter = OTLPLogExporter(endpoint=URL + "/v1/logs", compression=Compression.Gzip, timeout=30)
    provider = LoggerProvider()
    provider.add_log_record_processor(
        BatchLogRecordProcessor(exporter, schedule_delay_millis=20, max_export_batch_size=10))
    log = logger(LoggingHandler(logger_provider=provider))
    for batch in BATCHES:
        for mark in batch:
            log.info("order %s arrived", mark, extra={"order": mark})
        time.sleep(PAUSE)
    provider.force_flush(60_000)
    provider.shutdown()


def segment():
    from segment.analytics import Client
    lost = []
    client = Client("campaign-key", host=URL, upload_size=10, upload_interval=0.05,
                    on_error=lambda error, items: lost.append(repr(error)))
    for batch in BATCHES:
        for mark in batch:
            client.track("user-1", "Order Completed", {"order": mark})
        time.sleep(PAUSE)
    client.flush()
    client.shutdown()
    if lost:
        raise SystemExit(f"{len(lost)} batches lost: {lost[0]}")


def rudder():
    from rudderstack.analytics.client import Client
    lost = []
    client = Client("campaign-key", host=URL, upload_size=10, upload_interval=0.05,
                    on_error=lambda error, items: lost.append(repr(error)))
    for batch in BATCHES:
        for mark in batch:
            client.track("user-1", "Order Completed", {"order": mark})
        time.sleep(PAUSE)
    client.flush()
    client.join()
    if lost:
        raise SystemExit(f"{len(lost)} batches lost: {lost[0]}")


def splunk_handler():
    from splunk_handler import SplunkHandler
    log = logger(SplunkHandler(host=HOST, port=PORT, token="campaign-token", index="main", sourcetype="app:log",
                               protocol="http", verify=False, flush_interval=0.05, retry_backoff=0.2, retry_count=10))
    for batch in BATCHES:
        for mark in batch:
            log.info("order %s arrived", mark)
        time.sleep(PAUSE)
    logging.shutdown()


def splunk_hec_handler():
    from splunk_hec_handler import SplunkHecHandler
    handler = SplunkHecHandler(HOST, "campaign-token", index="main", port=PORT, proto="http", ssl_verify=False,
                               source="campaign", sourcetype="app:log")
    log = logger(handler)
    for mark in MARKS:
        try:
            log.info({"order": mark})
        except OSError as error:
            print("lost after", repr(error)[:200], flush=True)
        time.sleep(SHORT_PAUSE)


def loki():
    import logging_loki
    handler = logging_loki.LokiHandler(url=URL + "/loki/api/v1/push", tags={"job": "app"}, version="1")
    handler.handleError = lambda record: print("lost", record.getMessage(), flush=True)
    log = logger(handler)
    for mark in MARKS:
        log.info("order %s arrived", mark)
        time.sleep(SHORT_PAUSE)


def cloudevents(form):
    import requests
    from cloudevents.v1.conversion import to_binary, to_structured
    from cloudevents.v1.http import CloudEvent
    for mark in MARKS:
        attributes = {"type": "com.example.order", "source": "/shop", "datacontenttype": "application/json"}
        event = CloudEvent(attributes, {"order": mark})
        headers, body = (to_binary if form == "binary" else to_structured)(event)

        def send():
            requests.post(URL, headers=headers, data=body, timeout=10).raise_for_status()
        until_sent(send, requests.RequestException)
        time.sleep(SHORT_PAUSE / 2)


SENDERS = {
    "elasticsearch-ids": lambda: elasticsearch(True),
    "elasticsearch-no-ids": lambda: elasticsearch(False),
    "opensearch-py": opensearch,
    "opentelemetry-python": opentelemetry,
    "segment-python": segment,
    "rudder-python": rudder,
    "splunk-handler": splunk_handler,
    "splunk-hec-handler": splunk_hec_handler,
    "python-logging-loki": loki,
    "cloudevents-python-binary": lambda: cloudevents("binary"),
    "cloudevents-python-structured": lambda: cloudevents("structured"),
}

if __name__ == "__main__":
    SENDERS[sys.argv[1]]()
    print("done")
