import json
import logging
import sys

from kvstrata.cluster.logs import JsonFormatter, TextFormatter


def record(**fields: object) -> logging.LogRecord:
    made = logging.LogRecord("kvstrata.x", logging.WARNING, "f", 1, "lost %s", ("a",), None)
    vars(made).update(fields)
    return made


def test_json_lines() -> None:
    line = json.loads(JsonFormatter().format(record(peer="10.0.0.1")))
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "warning",
        "logger": "kvstrata.x",
        "message": "lost a",
        "peer": "10.0.0.1",
    }


def test_json_keeps_one_line_for_a_traceback() -> None:
    made = record()
    try:
        int("broken")
    except ValueError:
        made.exc_info = sys.exc_info()
    text = JsonFormatter().format(made)
    assert "\n" not in text
    assert "ValueError: invalid literal" in json.loads(text)["traceback"]


def test_lines_for_people_end_with_the_fields() -> None:
    assert TextFormatter("%(message)s").format(record(peer="p")) == "lost a peer=p"
    assert TextFormatter("%(message)s").format(record()) == "lost a"
