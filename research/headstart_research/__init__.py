"""What is studied around headstart: learned drafters, collecting for them, and measuring."""
