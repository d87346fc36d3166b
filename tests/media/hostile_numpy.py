"""Hostile files of numpy's: pickles that call, headers that lie, archives that swell."""

import io
import pickle
import struct
import zipfile

import numpy as np


class _Call:
    def __init__(self, function, *arguments):
        self._call = (function, arguments)

    def __reduce__(self):
        return self._call


def npy(header: str, content: bytes, version: bytes = b"\x01\x00") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + content


def object_npy(pickled: bytes) -> bytes:
    return npy("{'descr': '|O', 'fortran_order': False, 'shape': (), }", pickled)


def hostile_pickles(canary):
    import builtins
    import os
    import subprocess

    touch = f"touch {canary}"
    calls = [
        _Call(os.system, touch),
        _Call(subprocess.check_output, ["touch", str(canary)]),
        _Call(builtins.eval, f"open({str(canary)!r}, 'w')"),
        _Call(builtins.exec, f"open({str(canary)!r}, 'w')"),
        _Call(builtins.open, str(canary), "w"),
        _Call(np.zeros, (1 << 40,)),
        _Call(np.load, str(canary)),
        _Call(bytearray, 1 << 40),
    ]
    for index, call in enumerate(calls):
        for protocol in range(6):
            for kind, value in (
                ("bare", call),
                ("key", {"x": call}),
                ("array", np.array({"x": np.arange(3), "t": call}, dtype=object)),
            ):
                pickled = pickle.dumps(value, protocol=protocol)
                yield f"pickle {index} {protocol} {kind}", ".npy", object_npy(pickled)
    rebuild = b"cnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
    programs = {
        "memo": b"\x80\x04Nr\xff\xff\xff\x7f.",
        "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b".",
        "text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b".",
        "long": b"\x80\x04\x8b" + struct.pack("<I", 1 << 31) + b".",
        "deep": b"\x80\x04" + b"(" * 200_000 + b".",
        "nested": b"\x80\x04" + b")" + b"\x85" * 9_000 + b".",
        "endless": b"\x80\x04" + b"N0" * 500_000 + b".",
        "doubling": b"\x80\x04]" + b"\x94(h\x00h\x00h\x00e" * 3000 + b".",
        "itself": b"\x80\x04]\x94h\x00a.",
        "dictionary of itself": b"\x80\x04}\x94X\x01\x00\x00\x00xh\x00s.",
        "shape": b"\x80\x02" + rebuild + b"K\x01\x8a\x06\0\0\0\0\0\x01\x85C\x01b\x87R.",
        "build a name": b"\x80\x02cnumpy\nndarray\n}b.",
        "call an array": b"\x80\x02" + rebuild + b"\x85R)R.",
        "inst": b"(S'touch'\nios\nsystem\n.",
        "obj": b"(cos\nsystem\nS'touch'\no.",
        "newobj": b"\x80\x02cnumpy\nndarray\n)\x81.",
        "persistent": b"Pevil\n.",
        "extension": b"\x80\x02\x82\x01.",
        "empty": b"",
        "stop": b".",
        "underflow": b"\x80\x04\x87.",
        "unmarked": b"\x80\x04t.",
        "unhashable": b"\x80\x04}]Ns.",
    }
    for name, program in programs.items():
        yield f"pickle {name}", ".npy", object_npy(program)


def hostile_arrays():
    for descr in ("<i8", "|O", "<U99999999", "|V2147483647", "<f8", "|V0", "<M8[us]"):
        for shape in (
            "(1099511627776,)",
            "(-1,)",
            "(0,)",
            "()",
            "(2, 3)",
            "(True,)",
            "(1e9,)",
            "(" * 900,
        ):
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
            yield f"npy {descr} {shape[:9]}", ".npy", npy(header, bytes(64))
    table = "[('t', '<i8'), ('x', '<u2'), ('y', '<u2'), ('p', '|O')]"
    for text in (
        f"{{'descr': {table}, 'fortran_order': False, 'shape': (3,), }}",
        "{'descr': [('x', '<i8', (99999, 99999))], 'fortran_order': False, 'shape': (3,), }",
        "{" * 5000,
        "[" * 5000,
        "-" * 5000 + "1",
        "9" * 9000,
        "__import__('os').system('true')",
        "{'descr': '<i8'}",
        "\0" * 500,
    ):
        yield f"npy header {text[:9]}", ".npy", npy(text, bytes(64))
    yield "npy version", ".npy", npy("{}", b"", b"\x09\x00")
    yield "npy long header", ".npy", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 200


def _zip(members, method=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, pieces in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
    return stream.getvalue()


def hostile_archives(bomb_bytes):
    zeros = bytes(1 << 20)
    plain = "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }"
    for count in (5_000_000, bomb_bytes // 8, 1 << 50):
        head = npy(plain % count, b"")
        yield f"npz of {count}", ".npz", _zip({key: [head, zeros] for key in "xytp"})
    for count in (4, bomb_bytes // 8):
        pieces = [npy(plain % count, b""), *[zeros] * (bomb_bytes >> 20)]
        yield f"npz bomb {count}", ".npz", _zip({**{key: [head] for key in "xyt"}, "p": pieces})
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        head = npy(plain % 4_000_000, b"")
        yield f"npz packed {method}", ".npz", _zip({"x": [head, *[zeros] * 32]}, method)
    evil = object_npy(pickle.dumps(_Call(print, "run")))
    yield "npz pickled", ".npz", _zip({name: [evil] for name in ("x", "y", "t", "p", "sensor")})
    yield "npz empty", ".npz", _zip({})
    sides = struct.pack("<qq", -5, 1 << 62)
    size = npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", sides)
    four = [npy(plain % 4, bytes(32))]
    yield "npz sensor", ".npz", _zip({"sensor": [size], **dict.fromkeys("xytp", four)})
    good = _zip(dict.fromkeys("xytp", four))
    yield "npz declared size", ".npz", good.replace(struct.pack("<I", 160), b"\xff\xff\xff\x7f")
