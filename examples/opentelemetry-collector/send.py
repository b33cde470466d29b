# Sends a span, a log record and a metric with the SDK of OpenTelemetry. Use: python send.py [URL]
import logging
import os
import sys

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

url = (sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FOREBAY_URL", "http://127.0.0.1:8080")) + "/otlp"
# Exporters report failures only in their log.
problems = []
handler = logging.Handler(logging.WARNING)
handler.emit = lambda record: problems.append(record.getMessage())
logging.getLogger("opentelemetry").addHandler(handler)
resource = Resource.create({"service.name": "checkout"})

traces = TracerProvider(resource=resource)
traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url + "/v1/traces")))
logs = LoggerProvider(resource=resource)
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=url + "/v1/logs")))
reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=url + "/v1/metrics"))
metrics = MeterProvider(resource=resource, metric_readers=[reader])

with traces.get_tracer("shop").start_as_current_span("POST /pay", attributes={"order": 7}) as span:
    span.add_event("retry", {"attempt": 2})
    record = LogRecord(severity_number=SeverityNumber.WARN, body="order 7 failed", attributes={"order": 7})
    logs.get_logger("shop").emit(record)
metrics.get_meter("shop").create_counter("orders").add(1, {"route": "/pay"})
metrics.get_meter("shop").create_histogram("duration", unit="s").record(0.25)

for provider in (traces, logs, metrics):
    provider.shutdown()
if problems:
    sys.exit("\n".join(problems))
print("all exports succeeded")
