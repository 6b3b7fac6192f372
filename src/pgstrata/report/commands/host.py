"""What is changed on a host as words and JSON."""

from typing import Any

from pgstrata.model.changes import Entry, HostState, Undone, render_state, restore_command
from pgstrata.report.json.documents import pick_fields, render_document


def say_entry(entry: Entry) -> str:
    """An entry in a sentence."""
    return (
        f"{entry.what}: was {render_state(entry.before)}, set to {render_state(entry.value)} on "
        f"{entry.made:%Y-%m-%d %H:%M} UTC "
        f"by process {entry.owner.pid} of {entry.owner.user} for {entry.owner.study}"
    )


def render_host_state(state: HostState) -> str:
    """What `host status` prints, each line ended."""
    if not state.entries and not state.unreadable:
        return f"{state.host}: nothing is changed\n"
    lines = [f"{state.host}: {len(state.entries)} changed"]
    for entry in state.entries:
        lines.append(f"  {entry.number}  {say_entry(entry)}")
        if entry.number in state.in_use:
            lines.append("     in use: that pgstrata is at work and will undo it")
        elif entry.owner.boot_id != state.boot_id:
            reset = "it survives that and is still to be undone" if entry.lasting else "which has reset it"
            lines.append(f"     made before the last boot: {reset}")
        if entry.failure:
            lines.append(f"     not undone: {entry.failure}")
        lines.append(f"     undone by: {entry.undo.render()}")
    lines += [f"  {path} cannot be read, so the change that it records is unknown" for path in state.unreadable]
    if not state.clean:
        lines.append(f"`{restore_command(state.host)}` undoes what nobody needs any more")
    return "\n".join(lines) + "\n"


def host_state_json(state: HostState) -> str:
    """The same for programs."""
    fields = {
        **pick_fields(state, "host boot_id clean"),
        "entries": [_entry_fields(state, entry) for entry in state.entries],
        "unreadable": list(state.unreadable),
    }
    return render_document(fields)


def _entry_fields(state: HostState, entry: Entry) -> dict[str, Any]:
    owner = entry.owner
    return {
        **pick_fields(entry, "number what value before after"),
        "made": entry.made.isoformat(),
        "lasting": entry.lasting,
        "in_use": entry.number in state.in_use,
        "earlier_boot": owner.boot_id != state.boot_id,
        "failure": entry.failure,
        "undo": list(entry.undo.argv),
        "owner": pick_fields(owner, "pid user study"),
    }


def render_undone(undone: Undone) -> str:
    """What `host restore` prints, each line ended."""
    if not undone.closed:
        return "nothing to restore\n"
    return "".join(
        f"{closed.entry.what}: {closed.note or f'is {render_state(closed.entry.before)} again'}\n"
        for closed in undone.closed
    )
