"""The stylesheet of the demo's page: one column on a phone, two columns on a wide screen."""

STYLESHEET = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf8; --card: #fff; --ink: #1c1b1a; --soft: #6b6864; --line: #e4e1dc;
  --right: #1a7f4b; --wrong: #c2362b; --absent: #8b8680;
  --right-wash: #e6f4ec; --wrong-wash: #fbe9e7; --absent-wash: #f1efec;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #161514; --card: #201f1d; --ink: #ece9e4; --soft: #a19c95; --line: #36332f;
    --right: #5fce95; --wrong: #ff8a7e; --absent: #a19c95;
    --right-wash: #16301f; --wrong-wash: #3a1c19; --absent-wash: #2a2826;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.25rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
header p { max-width: 46rem; margin: .5rem 0 1.25rem; color: var(--soft); }
header p b { color: var(--ink); }
table { border-collapse: collapse; width: 100%; max-width: 46rem; }
th, td { padding: .35rem .75rem .35rem 0; text-align: left; font-weight: 500; }
thead th { font-size: .85rem; white-space: nowrap; } th.bar { width: 45%; }
td { font-variant-numeric: tabular-nums; }
.right { color: var(--right); } .wrong { color: var(--wrong); } .absent { color: var(--absent); }
td.bar { display: flex; align-items: center; gap: .6rem; padding-right: 0; }
td.bar span { display: flex; flex: 1; height: .7rem; border-radius: .35rem; overflow: hidden; }
td.bar i { flex-basis: 0; background: currentColor; }
article {
  background: var(--card); border: 1px solid var(--line); border-radius: .75rem;
  margin: 1.25rem 0; padding: 1rem 1.25rem;
}
h2 { font-size: 1.15rem; line-height: 1.35; margin: 0 0 .75rem; }
h2 span, h3 span { color: var(--soft); font-weight: 400; }
h2 span { font-size: .85rem; margin-right: .35rem; }
h3 { font-size: .95rem; margin: 0 0 .5rem; }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1.75rem; }
.pictures { display: grid; gap: 3px; }
.frames { grid-template-columns: repeat(4, 1fr); }
.slices { grid-template-columns: repeat(3, 1fr); }
.pictures img { display: block; width: 100%; height: auto; border-radius: 3px; }
.slices img { border: 1px solid var(--line); }
.said { margin: .75rem 0 .5rem; }
ul { list-style: none; display: flex; flex-wrap: wrap; gap: .35rem; margin: 0; padding: 0; }
li { font-size: .82rem; line-height: 1.3; border-radius: 1rem; padding: .2rem .6rem; }
li.right { background: var(--right-wash); } li.wrong { background: var(--wrong-wash); }
li.absent { background: var(--absent-wash); }
.truth { font-size: .88rem; color: var(--soft); margin: .75rem 0 0; }
footer { color: var(--soft); font-size: .82rem; margin: 2rem 0; }
@media (max-width: 48rem) {
  body { padding: .9rem; }
  th.bar { width: auto; } td.bar span { display: none; } td.bar { justify-content: end; }
  article { padding: .9rem; }
  .sides { grid-template-columns: 1fr; gap: 1.25rem; }
  section + section { border-top: 1px solid var(--line); padding-top: 1rem; }
}
"""
