"""The command `doctor`: shows the findings."""

from dataclasses import asdict

from rich.text import Text

from kvstrata.cluster import diagnosis
from kvstrata.cluster.diagnosis import State
from kvstrata.cluster.exit_codes import ExitCode
from kvstrata.cluster.output import console, print_json, table

_STYLES = {
    State.GOOD: "green",
    State.LACKS: "yellow",
    State.BROKEN: "bold red",
    State.UNUSED: "dim",
}


def examine(*, as_json: bool) -> ExitCode:
    """Look, show, and tell whether a store works here."""
    findings = diagnosis.examine()
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        screen = console()
        rows = [(Text(f.state, style=_STYLES[f.state]), f.name, f.found) for f in findings]
        screen.print(table("", "what", "found", rows=rows))
        for finding in findings:
            if finding.remedy:
                screen.print(f"\n{finding.name}: {finding.cost}", markup=False)
                screen.print(f"  {finding.remedy}", markup=False)
    broken = any(finding.state is State.BROKEN for finding in findings)
    return ExitCode.FAULT if broken else ExitCode.OK
