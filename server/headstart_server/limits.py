"""How much one request, one tenant, and all tenants together may take: the table [limits]."""

import math
from dataclasses import dataclass

from headstart.drafters.memory import DEFAULT_MAX_BYTES, DEFAULT_MAX_TENANT_BYTES
from headstart_server.settings_table import SettingsError


@dataclass(frozen=True)
class Limits:
    """There is none without a value: every limit is a number above 0."""

    max_requests: int = 64
    """In flight, of all tenants; more are refused with 429."""
    max_tenant_requests: int = 32
    """In flight, of one tenant."""
    requests_per_minute: int = 24_000
    """Of all tenants; a minute's worth may come at once, more are refused with 429."""
    tenant_requests_per_minute: int = 6_000
    """The same, of one tenant."""
    tokens_per_minute: int = 40_000_000
    """Of prompts and answers, of all tenants. They are charged after they are computed, so a rate
    can be exceeded; further requests are then refused until enough time has passed."""
    tenant_tokens_per_minute: int = 10_000_000
    """The same, of one tenant."""
    max_body_bytes: int = 32 << 20
    """Of one request; more gets 413."""
    max_bodies_bytes: int = 512 << 20
    """Bodies of all requests in flight."""
    max_tenant_bodies_bytes: int = 256 << 20
    """The same, of one tenant."""
    max_choices: int = 8
    """Answers to one request (``n``)."""
    max_messages: int = 256
    """Of one request."""
    max_text_characters: int = 1 << 18
    """Of one request: messages, prompts, tools, all its texts together."""
    max_grammar_bytes: int = 64 << 10
    """Of a JSON schema, regular expression or grammar that constrains the answer."""
    grammar_s: float = 2.0
    """Processor time to compile a grammar, s."""
    max_clips: int = 8
    """Videos and pictures of one request."""
    max_frame_pixels: int = 4096 * 2304
    """Of one frame or picture, decoded."""
    max_clip_pixels: int = 96 << 20
    """Of all frames taken from one video."""
    max_video_s: int = 600
    """Duration of a video, s."""
    max_media_file_bytes: int = 256 << 20
    """Of a file below the media root, or fetched from an open domain."""
    max_decoders: int = 4
    """Processes that decode videos, pictures and events. Live cameras with encoded video have one
    more each, but no more than these compute at once."""
    decoder_bytes: int = 1 << 30
    """Memory of one such process, without the frames it returns."""
    decode_s: float = 15.0
    """Processor time to decode one video, picture or recording, s; at most 4 s and one more a MiB
    of the file."""
    max_media_bytes: int = 1 << 30
    """Decoded media of all requests in flight."""
    max_tenant_media_bytes: int = 512 << 20
    """The same, of one tenant."""
    max_memory_bytes: int = DEFAULT_MAX_BYTES
    """Answers remembered to draft from, of all tenants."""
    max_tenant_memory_bytes: int = DEFAULT_MAX_TENANT_BYTES
    """The same, of one tenant; its oldest streams are forgotten first."""
    max_tenant_log_bytes: int = 64 << 20
    """Of one tenant's log of answers, where `answer_log` is set; its oldest half makes room."""
    max_events: int = 5_000_000
    """Read of one recording."""
    max_window_us: int = 10_000_000
    """Window of events in one request, µs."""
    max_uploads: int = 64
    """Kept for one tenant; its oldest is removed when another comes."""
    max_upload_bytes: int = 256 << 20
    """All uploads of one tenant together."""
    max_all_uploads: int = 512
    """Of all tenants. When they are full, an upload of another tenant gets 507."""
    max_all_upload_bytes: int = 1 << 30
    """All of them together."""
    max_live: int = 32
    """Live cameras of all tenants, those whose connection broke and those that the server reads
    included."""
    max_tenant_live: int = 16
    """The same, of one tenant; also its connections that have not named a camera yet."""
    max_live_message_bytes: int = 4 << 20
    """Of one message of a live camera: a picture, events, a text. A longer one is not read, and
    closes the socket with 1009."""
    max_live_waiting_bytes: int = 16 << 20
    """Pictures and events of one camera that wait to be decoded; with more, windows are lost."""
    live_frames_per_minute: int = 3600
    """Of one camera; with more, whole windows are lost. A minute's worth may come at once. A
    connection is read at most at four times as many messages."""
    live_idle_s: float = 60.0
    """Time without a message of a live camera until it is ended, s."""
    live_resume_s: float = 30.0
    """Time to connect again for a camera whose connection broke, s."""
    min_free_bytes: int = 512 << 20
    """Free memory, of the machine and of the cgroup; with less, new requests get 503."""
    heartbeat_s: float = 30.0
    """If the engine does not respond for so long, the server is not ready, s."""
    body_s: float = 60.0
    """Time for a client to send its request, s."""
    request_s: float = 300.0
    """Time for a request altogether, s."""
    drain_s: float = 30.0
    """Time for requests in flight to end after SIGTERM, s."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < math.inf:
                raise SettingsError(f"[limits] {name} is {value}; give a number above 0")
