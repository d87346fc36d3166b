"""Encoded pictures, one by one: where decoding can begin, and what a decoder makes of them."""

import random
import re

import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.annex_b import MAX_UNITS, Codec, can_begin
from headstart.media.stream import PacketDecoder
from tests.media.encoded import decode, encode, street

GOP = 5
PIXELS = 96 * 64


@pytest.fixture(scope="module", params=list(Codec))
def codec(request) -> Codec:
    return request.param


@pytest.fixture(scope="module")
def packets(codec) -> list[bytes]:
    return encode(street(12), codec, GOP)


def units(packet: bytes) -> list[bytes]:
    return re.split(b"\0\0\0?\1", packet)[1:]


def test_decoding_can_begin_with_key_pictures_and_no_others(codec, packets):
    begins = [number for number, packet in enumerate(packets) if can_begin(codec, packet)]
    assert begins == [0, 5, 10]
    other = next(each for each in Codec if each is not codec)
    assert not any(can_begin(other, packet) for packet in packets)


def test_a_unit_of_its_own_before_each_picture_makes_no_difference(codec, packets):
    delimiter = b"\0\0\0\1\x09\xf0" if codec is Codec.H264 else b"\0\0\0\1\x46\x01\x50"
    begins = [can_begin(codec, delimiter + packet) for packet in packets[:6]]
    assert begins == [True, False, False, False, False, True]


def test_a_key_picture_without_its_parameter_sets_is_no_beginning(codec, packets):
    slices = units(packets[0])[-1]
    assert not can_begin(codec, b"\0\0\1" + slices)
    assert can_begin(codec, b"".join(b"\0\0\1" + unit for unit in units(packets[0])))
    sets, slices = units(packets[0])[:-1], units(packets[1])[-1]
    assert not can_begin(codec, b"".join(b"\0\0\1" + unit for unit in (*sets, slices)))
    for left_out in range(2 if codec is Codec.H264 else 3):
        kept = [unit for number, unit in enumerate(units(packets[0])) if number != left_out]
        assert not can_begin(codec, b"".join(b"\0\0\1" + unit for unit in kept))


@pytest.mark.parametrize("content", [b"", b"\0", b"\0\0", b"\0\0\2x", b"\0\0\0\x20e" + bytes(40)])
def test_bytes_without_a_start_code_are_refused_with_what_to_do(codec, content):
    with pytest.raises(MediaError, match="Annex B"):
        can_begin(codec, content)


def test_hostile_bytes_are_no_beginning(codec, packets):
    chance = random.Random(3)
    for length in range(3, len(packets[0])):  # cut short anywhere
        can_begin(codec, packets[0][: length + 1])
    for _ in range(2000):
        content = b"\0\0\1" + bytes(chance.choice((0, 0, 1, chance.randrange(256)))
                                    for _ in range(chance.randrange(60)))  # fmt: skip
        can_begin(codec, content)
    assert not can_begin(codec, b"\0\0\1")
    assert not can_begin(codec, b"\0\0\1" * 1000)


class Searched(bytes):
    """Counts how often it is searched."""

    num_searches = 0

    def find(self, *given) -> int:  # type: ignore[override]
        self.num_searches += 1
        return super().find(*given)


def test_a_picture_of_endless_units_is_not_looked_through(codec, packets):
    remark = b"\0\0\1\x06" if codec is Codec.H264 else b"\0\0\1\x4e"
    content = Searched(remark * 1_000_000 + packets[0])
    assert not can_begin(codec, content)
    assert content.num_searches <= MAX_UNITS
    few = Searched(remark * 10 + packets[0])
    assert can_begin(codec, few)


def test_each_picture_comes_out_of_its_own_packet(codec, packets):
    decoder = PacketDecoder(codec, PIXELS)
    pictures = [decoder.decode(packet) for packet in packets]
    for picture, expected in zip(pictures, decode(packets, codec), strict=True):
        assert np.array_equal(picture, expected)


@pytest.mark.parametrize("width", [66, 98, 130])
def test_pictures_of_any_width_come_out(codec, width):
    frames = np.zeros((2, 64, width, 3), np.uint8)
    frames[:] = np.linspace(0, 255, width).astype(np.uint8)[None, None, :, None]
    decoder = PacketDecoder(codec, 64 * width)
    for packet in encode(frames, codec):
        picture = decoder.decode(packet)
        assert picture.shape == frames.shape[1:]
        assert np.abs(picture.astype(int) - frames[0]).mean() < 8


def test_pictures_that_wait_for_later_ones_are_refused(codec):
    packets = encode(street(6), codec, bframes=2)
    with pytest.raises(MediaError, match="without B-frames"):
        PacketDecoder(codec, PIXELS).decode(packets[0])


def test_pictures_that_are_too_large_are_refused(codec, packets):
    with pytest.raises(MediaError, match=f"{PIXELS - 1} pixels"):
        PacketDecoder(codec, PIXELS - 1).decode(packets[0])


def test_damaged_pictures_are_refused_and_never_painted_over(codec, packets):
    def decoded(number: int, content: bytes) -> np.ndarray:
        decoder = PacketDecoder(codec, PIXELS)
        for packet in packets[:number]:
            decoder.decode(packet)
        return decoder.decode(content)

    for bad in (packets[0][: len(packets[0]) // 2], b"\0\0\1", b"\0\0\0\1" + bytes(range(200))):
        with pytest.raises(MediaError):
            decoded(0, bad)
    with pytest.raises(MediaError):
        decoded(0, packets[1])  # without the key picture
    if codec is Codec.H264:  # FFmpeg decodes H.265 as far as it goes without a word
        with pytest.raises(MediaError):
            decoded(2, packets[2][: len(packets[2]) // 2])


def test_hostile_packets_break_no_decoder(codec, packets):
    """Whatever comes of them is a picture or a `MediaError`."""
    chance, num_refused = random.Random(11), 0
    for _ in range(60):
        decoder = PacketDecoder(codec, PIXELS)
        for packet in packets[:4]:
            content = bytearray(packet)
            for _ in range(chance.randrange(4)):
                content[chance.randrange(len(content))] = chance.randrange(256)
            try:
                assert decoder.decode(bytes(content)).size
            except MediaError:
                num_refused += 1
    assert num_refused > 20
