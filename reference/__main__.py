"""Write every page of the reference anew: `python -m reference`."""

from reference.pages import ROOT, stale

if __name__ == "__main__":
    for path, text in stale().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")
