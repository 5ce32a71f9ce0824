"""Put and get: the first five minutes with kvstrata. Starts a store of its own.

With a node that runs elsewhere (`kvstrata serve`) replace `kvstrata.local()` by
`kvstrata.connect("kvstrata://127.0.0.1:18400")`; all else stays.
"""

import kvstrata

with kvstrata.local() as store:
    # Values are bytes of any length; keys are text or bytes.
    result = store.put("greeting", b"hello")
    print(f"put: {result.outcome}, {result.size} bytes")
    print("get:", store.get("greeting"))

    # What is absent is None, which is not the same as empty.
    store.put("empty", b"")
    print("empty:", store.get("empty"), "absent:", store.get("never put"))

    # A put replaces, unless told otherwise.
    print("again:", store.put("greeting", b"good morning").outcome)
    print("if absent:", store.put("greeting", b"too late", if_absent=True).outcome)

    # Into your own memory, without a copy in between.
    buffer = bytearray(64)
    size = store.get_into("greeting", buffer)
    print("into a buffer:", bytes(buffer[:size]))

    # Many keys in one request.
    store.put_many({f"chunk-{number}": bytes(1024) for number in range(100)})
    print("there:", sum(store.exists_many(f"chunk-{number}" for number in range(200))))

    # Values can expire.
    store.put("session", b"token", ttl=60)
    stat = store.stat("session")
    assert stat is not None
    print(f"expires in {stat.ttl:.0f} s")

    # Errors say what was wrong and what to do.
    try:
        store.get_into("greeting", bytearray(3))
    except kvstrata.TooSmallError as error:
        print("error:", error)
