"""INFO's sections about commands. They are kept for all pools together: not for tenants."""

from kvstrata.store.resp_admin.command_statistics import by_command, error_counts, percentiles
from kvstrata.store.resp_admin.sections import Fields, Readings


def calls(readings: Readings) -> Fields:
    """How often each command ran, and for how long."""
    if not readings.of_node:
        return {}
    fields: Fields = {}
    for name, each in by_command(readings.shards).items():
        microseconds = each.nanoseconds // 1000
        mean = microseconds / each.calls if each.calls else 0.0
        fields[f"cmdstat_{name}"] = (
            f"calls={each.calls},usec={microseconds},usec_per_call={mean:.2f},"
            f"rejected_calls={each.rejected},failed_calls={each.failed}"
        )
    return fields


def errors(readings: Readings) -> Fields:
    """How many errors of each code were answered."""
    if not readings.of_node:
        return {}
    counts = error_counts(readings.shards)
    return {f"errorstat_{code}": f"count={count}" for code, count in sorted(counts.items())}


def latencies(readings: Readings) -> Fields:
    """How long each command took."""
    if not readings.of_node:
        return {}
    return {
        f"latency_percentiles_usec_{name}": percentiles(each.buckets)
        for name, each in by_command(readings.shards).items()
        if each.calls
    }
