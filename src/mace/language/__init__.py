"""The paper's Appendix A: a small language, read from Python, run exactly, and turned into formulas."""

from mace.language.float_formulas import flattened, floating, ranges_of, robust
from mace.language.formula import characteristic, literal, path_formulae
from mace.language.parse import Parsed, parse
from mace.language.run import evaluate, holds, run
from mace.language.safety import divides_by_variable
from mace.language.show import show, show_formula
from mace.language.single import single_assignment
from mace.language.unroll import unroll, well_formed
from mace.language.values import Symbol

__all__ = [
    "Parsed",
    "Symbol",
    "characteristic",
    "divides_by_variable",
    "evaluate",
    "flattened",
    "floating",
    "holds",
    "literal",
    "parse",
    "path_formulae",
    "ranges_of",
    "robust",
    "run",
    "show",
    "show_formula",
    "single_assignment",
    "unroll",
    "well_formed",
]
