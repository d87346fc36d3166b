"""RTSP in Python: it reaches the camera, and leaves every compressed picture to the sandbox."""
