"""The demo: a page that shows the pair's answers on a held-out drive."""
