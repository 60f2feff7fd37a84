"""What the friction bench's page has of its own: style of its tables, and its script, as text.

The script names plateaus by the attribute `data-plateau`; without it the page is complete.
"""

from __future__ import annotations

STYLE = """
#plateaus { font-size: .78rem; line-height: 1.35 } #plateaus td:nth-child(2) { min-width: 8rem }
#plateaus th, #plateaus td { padding: .2rem .4rem }
#plateaus td:nth-child(n+3), #plateaus th:nth-child(n+3) { text-align: right }
#models td:nth-child(2), #plateaus td:nth-child(n+3) { white-space: nowrap }
tr.hit td { background: var(--grid) }
g.hit { filter: drop-shadow(0 0 1.5px var(--truth)) drop-shadow(0 0 1.5px var(--truth)) }
#tip { position: fixed; pointer-events: none; padding: .4rem .7rem; border-radius: .4rem;
  background: var(--ink); color: var(--paper); font-size: .85rem; white-space: pre-line;
  max-width: 20rem; z-index: 1 }
@media (max-width: 40rem) { #summary, #models { font-size: .88rem } }
@media print { #plateaus { font-size: 6.2pt; width: 100% }
  #plateaus td:nth-child(2) { min-width: 4rem } #plateaus th, #plateaus td { padding: 1pt 2pt } }
"""

SCRIPT = """
"use strict";
(() => {
  const reach = 16; // pixels from the pointer to the middle of a mark
  const marks = [...document.querySelectorAll("g[data-plateau]")];
  const rows = [...document.querySelectorAll("tr[data-plateau]")];
  const words = new Map();
  for (const mark of marks) {
    const title = mark.querySelector("title");
    if (title) { words.set(mark.dataset.plateau, title.textContent); title.remove(); }
  }
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  let shown = null;
  const show = (number) => {
    if (number === shown) return;
    shown = number;
    for (const each of [...marks, ...rows])
      each.classList.toggle("hit", each.dataset.plateau === number);
    tip.hidden = !words.has(number);
    tip.textContent = words.get(number) ?? "";
  };
  const nearest = (x, y) => {
    let best = null, least = reach;
    for (const mark of marks) {
      const box = mark.getBoundingClientRect();
      const away = Math.hypot(box.x + box.width / 2 - x, box.y + box.height / 2 - y);
      if (away < least) { least = away; best = mark.dataset.plateau; }
    }
    return best;
  };
  const svg = document.querySelector("svg");
  if (svg) {
    const point = (event) => {
      show(nearest(event.clientX, event.clientY));
      const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
      const below = event.clientY + 18;
      const fits = below + tip.offsetHeight < innerHeight;
      tip.style.left = Math.max(left, 4) + "px";
      tip.style.top = (fits ? below : event.clientY - tip.offsetHeight - 12) + "px";
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", () => show(null));
  }
  for (const row of rows) {
    row.addEventListener("pointerenter", () => { show(row.dataset.plateau); tip.hidden = true; });
    row.addEventListener("pointerleave", () => show(null));
  }
})();
"""
"""Adds to the page what only pointing can show."""
