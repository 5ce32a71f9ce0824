"""The same store from asyncio: many requests at once over few connections."""

import asyncio

import kvstrata


async def main(url: str) -> None:
    async with await kvstrata.connect_async(url) as store:
        await store.put("greeting", b"hello")
        print("get:", await store.get("greeting"))

        # Requests overlap; each still has its own outcome.
        keys = [f"chunk-{number}" for number in range(64)]
        await asyncio.gather(*(store.put(key, key.encode() * 1000) for key in keys))
        values = await asyncio.gather(*(store.get(key) for key in keys))
        assert values == [key.encode() * 1000 for key in keys]
        print(f"moved {sum(map(len, filter(None, values))):,} bytes each way")

        # Every call has a timeout, and takes another one.
        print("exists:", await store.exists("greeting", timeout=0.5))


with kvstrata.local() as node:
    asyncio.run(main(node.node_url))
