"""Receivers of answers elsewhere: an HTTP address, an MQTT broker."""
