# A plain subscriber: it answers GET /orders/{id} with the stored order.
import asyncio
import json
import os

import nats


async def main():
    bus = await nats.connect(os.environ["NATS_URL"], max_reconnect_attempts=-1)

    async def order(message):
        event_id = message.headers["Forebay-Param-id"].encode()
        event = await bus.request("forebay.events.get", event_id, timeout=1)
        # An error is this worker's too: 404 if it is not stored yet.
        status = (event.headers or {}).get("Nats-Service-Error-Code", "200")
        body = json.loads(event.data)["payload"] if status == "200" else {}
        headers = {"Forebay-Status": status, "Content-Type": "application/json"}
        await bus.publish(message.reply, json.dumps({"order": body}).encode(), headers=headers)

    await bus.subscribe("shop.orders.get", queue="orders", cb=order)
    await asyncio.Event().wait()


asyncio.run(main())
