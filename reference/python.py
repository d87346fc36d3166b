"""The names of `headstart`, and the interfaces that a class of yours may have."""

import headstart
from reference.markdown import block, code, document, prose, table
from reference.source import Class, Function, class_names, read_class, read_function

_OPENING = """# Python

What `from headstart import ...` gives. Names of other modules may change from version to
version, except the interfaces at the end of this page."""
_GROUPS = {
    "OpenRequest": ("Headstart", "Session", "RequestOptions", "Sources"),
    "Answers": ("Answer", "Preview", "Confirmed", "Retracted"),
    "Live cameras": ("watch", "LiveSession", "Windows", "WhenChanged", "WindowAnswer"),
    "Clips": ("Clip", "ClipFiles", "Video", "Events"),
    "Errors": ("HeadstartError",),
}
_INTERFACES = {
    "headstart.speculation.drafter": ("Drafter", "DraftRequest", "StreamKey"),
    "headstart.engine.draft_model": ("DraftModel", "RunningDraftModel"),
    "headstart.live.sources.source": ("Source", "Arrival", "SourceCounts"),
}


def page() -> str:
    """The page of all names."""
    listed = [name for names in _GROUPS.values() for name in names]
    unlisted = set(headstart.__all__) ^ set(listed)
    if unlisted:
        raise ValueError(f"put {', '.join(sorted(unlisted))} into a group of reference/python.py")
    homes = headstart._HOMES
    return document(
        _OPENING,
        *(
            document(f"## {group}", *(_entry(homes[name], name) for name in names))
            for group, names in _GROUPS.items()
        ),
        "## A client of a server",
        "From `headstart_client`, which needs no engine: `pip install 'headstart[client]'`.",
        _entry("headstart_client.live_client", "LiveClient"),
        _errors(),
        "## Interfaces",
        "A drafter, a draft model and a source of frames of your own have these members. "
        "[Your own drafter](../guides/drafter.md) uses the first.",
        *(
            document(f"From `{home}`:", *(_entry(home, name) for name in names))
            for home, names in _INTERFACES.items()
        ),
    )


def _entry(home: str, name: str) -> str:
    known = read_class(home, name)
    return _function(read_function(home, name), "###") if known is None else _class(home, known)


def _class(home: str, known: Class) -> str:
    is_made_by_fields = known.initialiser is None and bool(known.fields)
    methods = [each for each in known.methods if not each.is_property]
    properties = [each for each in known.methods if each.is_property]
    inherited = [base for base in known.bases if base in headstart.__all__]
    rows = [
        (code(each.name), code(each.annotation), code(each.default or ""), prose(each.doc))
        for each in known.fields
    ]
    rows += [
        (code(each.name), code(each.returns), "", prose(_first(each.doc))) for each in properties
    ]
    beginning = ""
    if known.initialiser is not None:
        beginning = block(_called(known.initialiser, known.name), "python")
    return document(
        f"### {known.name}",
        known.doc,
        "".join(f"It has all that [`{base}`](#{base.lower()}) has." for base in inherited),
        beginning,
        "" if known.initialiser is None else known.initialiser.doc,
        table(("field" if is_made_by_fields else "attribute", "type", "default", ""), rows),
        *(_function(each, "####", of=known.name) for each in methods),
    )


def _function(function: Function, level: str, of: str = "") -> str:
    name = f"{of}.{function.name}" if of else function.name
    return document(f"{level} {name}", block(function.signature, "python"), function.doc)


def _called(initialiser: Function, name: str) -> str:
    made = Function(name, initialiser.parameters, "", "")
    return made.signature


def _errors() -> str:
    """All errors, with what each means."""
    rows = []
    for name in class_names("headstart.errors"):
        known = read_class("headstart.errors", name)
        assert known is not None
        if known.name != "HeadstartError":
            rows.append((code(name), prose(known.doc)))
    told = "All errors are in `headstart.errors`, and derive from it."
    return document(told, table(("error", "means"), rows))


def _first(doc: str) -> str:
    return doc.partition("\n\n")[0]
