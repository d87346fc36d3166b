"""The lab's trained pair as data: `headstart.lab.pair.find_pair` finds it in here."""
