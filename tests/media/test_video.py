import av
import numpy as np
import pytest

from headstart.errors import MediaError
from headstart.media.video import Video, count_frames, stream_frames
from tests.media.samples import sample


def numbered_frames(num_frames, height=48, width=64):
    """Frame i is one grey level, far enough from its neighbours' to survive an encoder."""
    levels = np.linspace(20, 230, num_frames).astype(np.uint8)
    return np.broadcast_to(levels[:, None, None, None], (num_frames, height, width, 3)).copy()


@pytest.fixture(scope="module")
def thirty_frames(tmp_path_factory):
    path = tmp_path_factory.mktemp("video") / "thirty.mp4"
    Video.from_frames(numbered_frames(30), fps=10).write(path, fps=10)
    return path


def test_reading_gives_every_frame_at_its_time(thirty_frames):
    video = Video.read(thirty_frames)
    assert video.frames.shape == (30, 48, 64, 3)
    assert video.times_us.tolist() == [i * 100_000 for i in range(30)]
    assert np.abs(video.frames.astype(int) - numbered_frames(30)).max() <= 4
    assert count_frames(thirty_frames) == 30


@pytest.mark.parametrize("num_frames", [1, 2, 7, 8, 29, 30, 31])
def test_uniform_reading_equals_sampling_the_whole(thirty_frames, num_frames):
    whole = Video.read(thirty_frames)
    chosen = np.linspace(0, 29, min(num_frames, 30)).astype(int)  # of fewer, all
    read = Video.read(thirty_frames, num_frames=num_frames)
    assert np.array_equal(read.frames, whole.frames[chosen])
    assert np.array_equal(read.times_us, whole.times_us[chosen])
    assert whole.sample(num_frames).digest() == read.digest()


def test_a_window_is_half_open_and_keeps_the_files_clock(thirty_frames):
    video = Video.read(thirty_frames, start_us=500_000, stop_us=800_000)
    assert video.times_us.tolist() == [500_000, 600_000, 700_000]
    assert len(Video.read(thirty_frames, num_frames=2, start_us=500_000)) == 2


def test_streaming_gives_the_same_frames(thirty_frames):
    times, frames = zip(*stream_frames(thirty_frames), strict=True)
    video = Video(np.stack(frames), np.array(times))
    assert video.digest() == Video.read(thirty_frames).digest()


@pytest.mark.parametrize("suffix", [".mkv", ".avi", ".ts"])
def test_other_containers_keep_the_number_of_frames(tmp_path, suffix):
    path = tmp_path / f"clip{suffix}"
    Video.from_frames(numbered_frames(12), fps=10).write(path, fps=10)
    video = Video.read(path)
    assert len(video) == 12
    assert video.times_us[0] == 0


def test_odd_sides_are_padded_not_refused(tmp_path):
    path = tmp_path / "odd.mp4"
    Video.from_frames(numbered_frames(3, 47, 63), fps=10).write(path)
    assert Video.read(path).frames.shape == (3, 48, 64, 3)


def test_the_digest_is_of_the_content():
    video = Video.from_frames(numbered_frames(4), fps=10)
    assert video.digest() == Video.from_frames(numbered_frames(4), fps=10).digest()
    assert video.digest() != Video.from_frames(numbered_frames(4), fps=20).digest()
    assert video.digest() != Video.from_frames(255 - numbered_frames(4), fps=10).digest()


def test_each_failure_says_what_to_do(tmp_path, thirty_frames):
    text = tmp_path / "notes.mp4"
    text.write_text("not a video")
    sound = tmp_path / "sound.avi"
    with av.open(str(sound), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.int16), layout="mono")
        silence.sample_rate = 8000
        container.mux(stream.encode(silence))
    with pytest.raises(MediaError, match="check the path"):
        Video.read(tmp_path / "absent.mp4")
    with pytest.raises(MediaError, match="convert it with ffmpeg"):
        Video.read(text)
    with pytest.raises(MediaError, match="video stream"):
        Video.read(sound)
    with pytest.raises(MediaError, match="ask for at least one"):
        Video.read(thirty_frames, num_frames=0)
    with pytest.raises(MediaError, match="choose start and stop inside"):
        Video.read(thirty_frames, start_us=10_000_000)
    with pytest.raises(MediaError, match="ask for fewer frames"):
        Video.read(thirty_frames, max_bytes=1000)
    with pytest.raises(MediaError, match="writable path"):
        Video.read(thirty_frames).write(tmp_path / "absent" / "clip.mp4")


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_a_truncated_file_is_refused_or_shorter_never_wrong(tmp_path, suffix, fraction):
    path = tmp_path / f"whole{suffix}"
    noise = np.random.default_rng(0).integers(0, 255, (30, 48, 64, 3), dtype=np.uint8)
    Video.from_frames(noise, fps=10).write(path, fps=10)
    whole = Video.read(path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * fraction)])
    try:
        part = Video.read(path)
    except MediaError:
        return
    intact = slice(0, max(len(part) - 2, 0))  # the frame under the cut may be concealed
    assert np.array_equal(part.frames[intact], whole.frames[intact])


@pytest.mark.parametrize(
    ("frames", "times"),
    [
        (np.zeros((2, 4, 4, 3), np.float32), [0, 1]),
        (np.zeros((2, 4, 4), np.uint8), [0, 1]),
        (np.zeros((0, 4, 4, 3), np.uint8), []),
        (np.zeros((2, 4, 4, 3), np.uint8), [0]),
        (np.zeros((2, 4, 4, 3), np.uint8), [1, 1]),
    ],
)
def test_a_video_that_cannot_be_is_not_built(frames, times):
    with pytest.raises(MediaError):
        Video(frames, np.array(times, np.int64))


def test_eight_frames_of_a_real_drive():
    path = sample("udacity_solidWhiteRight.mp4")
    video = Video.read(path, num_frames=8)
    assert video.frames.shape == (8, 540, 960, 3)
    assert video.times_us.tolist() == [i * 40_000 for i in np.linspace(0, 220, 8).astype(int)]
