"""Writers of event recordings; `write_recording` in ``writing`` chooses one."""
