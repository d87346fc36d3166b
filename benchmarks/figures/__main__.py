"""Write every table and the picture anew: `python -m benchmarks.figures`."""

from benchmarks.figures.documents import ROOT, stale

if __name__ == "__main__":
    for path, text in stale().items():
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")
