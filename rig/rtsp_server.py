"""GStreamer's RTSP server on loopback.

`python3 rtsp_server.py PORT [USER PASSWORD] -- PATH PIPELINE [PATH PIPELINE …]`

Run by the system's Python, which has its bindings (`make rtsp` installs them). It prints its port.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer

if __name__ == "__main__":
    before, mounts = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(before[0])
    if len(before) == 3:
        auth = GstRtspServer.RTSPAuth()
        auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
        token = GstRtspServer.RTSPToken()
        token.set_string("media.factory.role", "viewer")
        auth.add_digest(before[1], before[2], token)
        server.set_auth(auth)
    for path, launch in zip(mounts[::2], mounts[1::2], strict=True):
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(launch)
        if len(before) == 3:
            permissions = GstRtspServer.RTSPPermissions()
            permissions.add_permission_for_role("viewer", "media.factory.access", True)
            permissions.add_permission_for_role("viewer", "media.factory.construct", True)
            factory.set_permissions(permissions)
        server.get_mount_points().add_factory(path, factory)
    server.attach(None)
    print(server.get_bound_port(), flush=True)
    GLib.MainLoop().run()
