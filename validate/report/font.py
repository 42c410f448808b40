"""The font of the formulas, embedded in the page: brackets grow only with an OpenType MATH table.

Matplotlib ships DejaVu Serif, which has one, under a licence that allows embedding modified subsets
under another name with the notice kept. Its Greek has no mathematical italics: those come from the
slanted face of the family. Its table leaves the shifts of scripts and fractions at zero: they are
set to those of TeX's fonts. Brackets taller than the plain ones and lower than those put together
from pieces are made by stretching the plain ones.
"""

from __future__ import annotations

import base64
import io
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

FAMILY = "Factcap Math"
NOTICE = (
    "Formulas are set in a subset of DejaVu Serif, renamed and embedded in this file: fonts "
    "© 2003 Bitstream, Inc., DejaVu changes in the public domain; the licence is in the font."
)
HEIGHTS = (1.2, 1.45, 1.75, 2.1, 2.5, 3.0)
"""Brackets made by stretching, in units of the plain ones; above, they are assembled."""
BRACKETS = ("parenleft", "parenright", "bracketleft", "bracketright")

# TeX's shifts, in units of the font size, a tenth larger for the larger small letters of this face.
_SHIFTS = {
    "SubscriptShiftDown": 0.19,
    "SubscriptTopMax": 0.38,
    "SubscriptBaselineDropMin": 0.2,
    "SuperscriptShiftUp": 0.40,
    "SuperscriptShiftUpCramped": 0.32,
    "SuperscriptBottomMin": 0.12,
    "SuperscriptBaselineDropMax": 0.32,
    "SubSuperscriptGapMin": 0.16,
    "SuperscriptBottomMaxWithSubscript": 0.38,
    "UpperLimitGapMin": 0.14,
    "UpperLimitBaselineRiseMin": 0.111,
    "LowerLimitGapMin": 0.14,
    "LowerLimitBaselineDropMin": 0.6,
    "FractionNumeratorShiftUp": 0.43,
    "FractionNumeratorDisplayStyleShiftUp": 0.74,
    "FractionDenominatorShiftDown": 0.38,
    "FractionDenominatorDisplayStyleShiftDown": 0.75,
    "StackTopShiftUp": 0.49,
    "StackTopDisplayStyleShiftUp": 0.74,
    "StackBottomShiftDown": 0.38,
    "StackBottomDisplayStyleShiftDown": 0.75,
}

_OPERATORS = (
    "\u2202\u2207\u221a\u221e\u220f\u2211\u222b\u2212\u223c\u2264\u2265\u2260\u2192\u22c5\u00d7\u00b1\u2032\u2016"
    "\u02c6\u0302\u00b7\u2026\u2208\u2248\u221d\u2061\u2062\u00a0\u2009"
)
_ITALIC_GREEK = 0x1D6FC
_PLAIN_GREEK = "αβγδεζηθικλμνξοπρςστυφχψω∂ϵϑϰϕϱϖ"


def characters() -> set[int]:
    """Code points that the upright font holds: ASCII, Greek, operators, italic Latin letters."""
    greek = {*range(0x0391, 0x03AA)} - {0x03A2} | {*range(0x03B1, 0x03CA), 0x03D5, 0x03F5}
    italic = {0x1D434 + i for i in range(52)} - {0x1D455} | {0x210E, 0x1D53C}
    return {*range(0x20, 0x7F), *greek, *map(ord, _OPERATORS), *italic}


@lru_cache(maxsize=1)
def font_style() -> str:
    """The `@font-face` rules, fonts inline."""
    return "\n".join(
        f'@font-face {{ font-family: "{FAMILY}"; src: url(data:font/woff;base64,{data}) '
        f'format("woff");{extra} }}'
        for data, extra in (
            (base64.b64encode(upright()).decode("ascii"), ""),
            (base64.b64encode(greek()).decode("ascii"), " unicode-range: U+1D6FC-1D71B;"),
        )
    )


def upright() -> bytes:
    """DejaVu Serif with MATH table and stretched brackets, cut down to `characters`, as WOFF."""
    font = _opened("DejaVuSerif.ttf")
    _add_brackets(font)
    constants, unit = font["MATH"].table.MathConstants, font["head"].unitsPerEm
    for name, shift in _SHIFTS.items():
        getattr(constants, name).Value = round(shift * unit)
    constants.ScriptPercentScaleDown, constants.ScriptScriptPercentScaleDown = 72, 58
    return _cut(font, characters())


def greek() -> bytes:
    """Slanted Greek letters at the code points of the mathematical italic ones, as WOFF."""
    font = _opened("DejaVuSerif-Italic.ttf")
    names = font.getBestCmap()
    moved = {
        _ITALIC_GREEK + i: names[ord(c)] for i, c in enumerate(_PLAIN_GREEK) if ord(c) in names
    }
    for table in font["cmap"].tables:
        table.cmap = dict(moved) if table.isUnicode() and table.format == 12 else {}
    return _cut(font, set(moved))


def _opened(name: str) -> Any:
    import matplotlib

    return import_module("fontTools.ttLib").TTFont(
        Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name
    )


def _add_brackets(font: Any) -> None:
    """Variants of the brackets, each the plain one stretched about the mathematical axis."""
    transformed = import_module("fontTools.pens.transformPen").TransformPen
    new_pen = import_module("fontTools.pens.ttGlyphPen").TTGlyphPen
    new_record = import_module("fontTools.ttLib.tables.otTables").MathGlyphVariantRecord

    glyphs, shapes = font["glyf"], font.getGlyphSet()
    math = font["MATH"].table
    axis = math.MathConstants.AxisHeight.Value
    variants = math.MathVariants
    order = list(variants.VertGlyphCoverage.glyphs)
    for name in BRACKETS:
        plain = glyphs[name]
        height, middle = plain.yMax - plain.yMin, (plain.yMax + plain.yMin) / 2
        records = []
        for factor in (1.0, *HEIGHTS):
            grown = name
            if factor != 1.0:
                grown = f"{name}.{round(100 * factor)}"
                pen = new_pen(shapes)
                wide = 1.0 + 0.15 * (factor - 1.0)
                shift = axis - factor * middle
                shapes[name].draw(transformed(pen, (wide, 0, 0, factor, 0, shift)))
                glyphs[grown] = pen.glyph()
                glyphs[grown].recalcBounds(glyphs)
                font["hmtx"][grown] = (
                    round(wide * font["hmtx"][name][0]),
                    int(glyphs[grown].xMin),
                )
            record = new_record()
            record.VariantGlyph = grown
            record.AdvanceMeasurement = round(factor * height)
            records.append(record)
        construction = variants.VertGlyphConstruction[order.index(name)]
        construction.MathGlyphVariantRecord = records
        construction.VariantCount = len(records)
    font.setGlyphOrder(glyphs.glyphOrder)


def _cut(font: Any, wanted: set[int]) -> bytes:
    module = import_module("fontTools.subset")  # as all of fontTools: it has no types
    options = module.Options()
    options.hinting = False
    options.layout_features = []
    options.name_IDs = [0, 1, 2, 4, 6, 13]
    options.drop_tables += ["FFTM", "GSUB", "GPOS", "GDEF", "kern", "gasp"]
    options.notdef_outline = True
    subsetter = module.Subsetter(options)
    subsetter.populate(unicodes=wanted)
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 4):
            record.string = FAMILY
        elif record.nameID == 6:
            record.string = FAMILY.replace(" ", "")
    font["head"].modified = font["head"].created  # the same bytes at every call
    font.recalcTimestamp = False
    font.flavor = "woff"
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()
