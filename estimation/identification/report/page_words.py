"""Explanations of the page's terms, one line each, and its style sheet."""

from __future__ import annotations

from typing import Final

TERMS: Final = (
    (
        "ε<sub>τ</sub>",
        "error: 100·‖τ − Φθ‖/‖τ‖, the part of the measured torque that the model leaves, in "
        "percent; over rows in which joints move, against the filtered torque, unless stated",
    ),
    ("All rows, raw", "the same over all rows, and against the torque before it was filtered"),
    (
        "Floor",
        "ε<sub>τ</sub> of unconstrained least squares on the identification data: no estimator of "
        "this model can be below it there, so what is above is the price of constraints",
    ),
    ("Validation", "recordings that no estimator has seen"),
    ("Cross-validation", "parts of the identification data held out in turn, with gaps between"),
    (
        "Consistent",
        "every link could be built from positive mass, and no friction drives; for a method that "
        "determines base parameters only: some arm has them",
    ),
    (
        "Least eigenvalue",
        "of the links' pseudo-inertia matrices; above 0, mass, centre of mass and inertia agree",
    ),
    (
        "B(q) ≻ 0",
        "the inertia matrix is positive definite in all sampled postures: a controller may invert "
        "it; its condition number says how accurately",
    ),
    (
        "Base parameter",
        "a combination of parameters that torques depend on; no more is identifiable",
    ),
    (
        "σ",
        "standard deviation by drawing blocks of time again; the ordinary one assumes independent "
        "rows and is usually too small",
    ),
    ("30 % rule", "where σ is above 30 % of the value, the data do not determine it (marked ✗)"),
    (
        "Essential",
        "remains when the least certain parameter is left out of the model repeatedly, until all "
        "others are certain: one that is marked ✗ may become certain on the way",
    ),
    (
        "Deviation from CAD",
        "in percent of CAD's value, or of a tenth of the largest one of the same unit where that "
        "is more: else parameters that CAD has at 0 could not be drawn",
    ),
)
"""Names and meanings, as HTML."""

STYLE: Final = """
body { max-width: 76rem }
.verdict { border-left: 6px solid var(--forward); padding: .5rem 1rem; margin: 1rem 0;
  background: var(--grid) }
.verdict.bad { border-color: var(--heat) } .verdict p:first-child { font-size: 1.15rem }
a { color: var(--forward) } .contents a { color: inherit; margin-right: .9rem; white-space: nowrap }
h3 { font-size: 1rem; margin: 1.3rem 0 .4rem }
table { font-size: .82rem; line-height: 1.4 }
#comparison td:nth-child(n+2), #comparison th:nth-child(n+2), #base td:nth-child(n+2),
#base th:nth-child(n+2), #all td:nth-child(n+4), #all th:nth-child(n+4),
#residuals td:nth-child(n+2), #residuals th:nth-child(n+2), .joints td:nth-child(n+3),
.joints th:nth-child(n+3), #payload td:nth-child(2), #payload th:nth-child(2),
#simulation td:nth-child(n+2), #simulation th:nth-child(n+2)
  { text-align: right }
#comparison td, #base td:nth-child(n+2), #all td, #residuals td { white-space: nowrap }
#comparison td:first-child { white-space: normal; min-width: 8rem }
#base { font-size: .76rem } #base th, #base td { padding: .2rem .35rem }
#base td:first-child { min-width: 9rem; max-width: 22rem }
#base td:nth-child(3), #base th:nth-child(3) { text-align: left }
.no { color: var(--heat); font-weight: 600 }
details > summary { cursor: pointer; color: var(--muted) }
.figure { margin: .8rem 0 }
@media print { table, #base { font-size: 7pt; width: 100% }
  th, td, #base th, #base td { padding: 1pt 2pt }
  #comparison td:first-child, #base td:first-child { min-width: 0 } .verdict { background: none } }
"""
