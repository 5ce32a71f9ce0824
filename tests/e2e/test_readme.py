"""The README's Python runs as it stands, on a node of the test's own."""

import re
from pathlib import Path

import kvstrata

README = Path(__file__).parents[2] / "README.md"


def test_the_first_example_runs_and_gives_what_its_comments_say() -> None:
    found = re.search(r"```python\n(import kvstrata\n.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    address = 'kvstrata.connect("kvstrata://127.0.0.1:18400")'
    assert address in found[1]
    code = (
        found[1]
        .replace(address, "kvstrata.local()")
        .replace("    store.prefix_length(chain)", "    hits = store.prefix_length(chain)")
    )
    names: dict[str, object] = {}
    exec(compile(code, str(README), "exec"), names)
    assert names["hits"] == 320
    assert isinstance(names["store"], kvstrata.Store)
