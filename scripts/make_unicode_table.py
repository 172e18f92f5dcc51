#!/usr/bin/env python3
"""Writes src/text/unicode_table.cpp: properties of code points as the `tokenizers` library sees them.

Parts of the library follow different versions of Unicode: its regex engine a newer one (16) than the
distribution's PCRE2 (14), its normalizers an older one than utf8proc (15). Equal ids need equal tables, so
that the properties are asked from the library itself:
  letters and numbers, for the scanners of text/scanners.cpp;
  categories of what PCRE2 does not know yet (unassigned in Unicode 14), for text/regex_translate.cpp;
  code points the normalizers do not know, which pass through them and stop reordering;
  punctuation (the step of that name follows Unicode 8), and lower case that is newer than utf8proc's;
  what the normalizer of WordPiece models drops (controls, marks) and surrounds with spaces (ideographs);
  what the step that strips accents does;
  scripts, numbered in the order of their first character, for the step that cuts where the script changes.

  pip install tokenizers; scripts/make_unicode_table.py > src/text/unicode_table.cpp
"""
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So".split()


def members(pattern):
    """Code points whose single character matches the pattern."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = []
    for start in range(0, 0x110000, 0x1000):
        text = "".join(chr(c) for c in range(start, start + 0x1000) if not 0xD800 <= c < 0xE000)
        for piece, _ in split.pre_tokenize_str(text):
            found.extend(ord(c) for c in piece)
    return found


def ranges(code_points):
    out = []
    for c in sorted(set(code_points)):
        if out and out[-1][1] + 1 == c:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def emit(name, code_points):
    table = ranges(code_points)
    print(f"const CodeRange {name}[] = {{")
    line = "   "
    for first, last in table:
        entry = f" {{0x{first:X}, 0x{last:X}}},"
        if len(line) + len(entry) > 119:
            print(line)
            line = "   "
        line += entry
    print(line)
    print("};")
    print(f"const std::size_t {name}Count = {len(table)};\n")


def scalars():
    return (c for c in range(0x110000) if not 0xD800 <= c < 0xE000)


def emit_newer():
    assert unicodedata.unidata_version == "14.0.0", "needs a Python whose tables are those of Debian 12's PCRE2"
    rows = []
    for category in CATEGORIES:
        newer = [c for c in members(r"\p{%s}" % category) if unicodedata.category(chr(c)) == "Cn"]
        rows += [f"{{0x{a:X}, 0x{b:X}, {{'{category[0]}', '{category[1]}'}}}}," for a, b in ranges(newer)]
    print("const CategoryRange kNewerRanges[] = {")
    for i in range(0, len(rows), 3):
        print("    " + " ".join(rows[i:i + 3]))
    print("};")
    print(f"const std::size_t kNewerRangesCount = {len(rows)};\n")


def unknown_to_normalizers():
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    newer = {c for category in CATEGORIES for c in members(r"\p{%s}" % category)
             if unicodedata.category(chr(c)) == "Cn" and nfkd.normalize_str(chr(c)) == chr(c)}
    yield from newer
    for c in scalars():
        char = chr(c)
        combining = unicodedata.combining(char)
        if 0 < combining < 240 and nfd.normalize_str("a\u0345" + char) == "a\u0345" + char:
            yield c  # U+0345 has class 240: a known mark goes before it
        elif unicodedata.category(char) != "Cn" and nfkd.normalize_str(char) != unicodedata.normalize("NFKD", char):
            yield c


def punctuation():
    step = pre_tokenizers.Punctuation("isolated")
    for start in range(0, 0x110000, 0x1000):
        text = "".join(chr(c) + "aa" for c in range(start, start + 0x1000) if not 0xD800 <= c < 0xE000)
        yield from (ord(piece) for piece, _ in step.pre_tokenize_str(text) if len(piece) == 1)


def wordpiece_sets():
    """Dropped controls, dropped marks, characters that get spaces around."""
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    clean = normalizers.BertNormalizer(**{**off, "clean_text": True})
    strip = normalizers.BertNormalizer(**{**off, "strip_accents": True})
    spaced = normalizers.BertNormalizer(**{**off, "handle_chinese_chars": True})
    nfd = normalizers.NFD()
    controls = [c for c in scalars() if clean.normalize_str("a" + chr(c) + "a") == "aa"]
    marks = [c for c in scalars() if strip.normalize_str("a" + chr(c)) == "a" and nfd.normalize_str(chr(c)) == chr(c)]
    ideographs = [c for c in scalars() if spaced.normalize_str(chr(c)) == f" {chr(c)} "]
    return controls, marks, ideographs


def accents():
    """What the step StripAccents takes away: marks of an older Unicode than utf8proc's."""
    step = normalizers.StripAccents()
    return [c for c in scalars() if step.normalize_str("a" + chr(c)) == "a"]


def emit_scripts():
    step = pre_tokenizers.UnicodeScripts()
    same = lambda a, b: len(step.pre_tokenize_str(chr(a) + chr(b))) == 1
    runs = []  # [first, last]: neighbours of one script
    for c in scalars():
        if not step.pre_tokenize_str(chr(c)):
            continue  # of no script: it joins what stands beside it
        if runs and runs[-1][1] == c - 1 and same(c - 1, c):
            runs[-1][1] = c
        else:
            runs.append([c, c])
    firsts, rows = [], []
    for first, last in runs:
        number = next((i for i, other in enumerate(firsts) if same(other, first)), len(firsts))
        if number == len(firsts):
            firsts.append(first)
        rows.append(f"{{0x{first:X}, 0x{last:X}, {number}}},")
    assert len(firsts) < 256
    print("const ScriptRange kScripts[] = {")
    for i in range(0, len(rows), 4):
        print("    " + " ".join(rows[i:i + 4]))
    print("};")
    print(f"const std::size_t kScriptsCount = {len(rows)};\n")


def emit_lower():
    lower, rows = normalizers.Lowercase(), []
    for c in scalars():
        to = lower.normalize_str(chr(c))
        if to == chr(c).lower():
            continue
        if rows and rows[-1][1] + 1 == c and rows[-1][2] + c - rows[-1][0] == ord(to):
            rows[-1][1] = c
        else:
            rows.append([c, c, ord(to)])
    print("const CaseRange kNewerLowercase[] = {")
    for i in range(0, len(rows), 4):
        print("   " + "".join(f" {{0x{first:X}, 0x{last:X}, 0x{to:X}}}," for first, last, to in rows[i:i + 4]))
    print("};")
    print(f"const std::size_t kNewerLowercaseCount = {len(rows)};\n")


def main():
    print("// Generated by scripts/make_unicode_table.py from the `tokenizers` library; do not edit.")
    print('#include "text/unicode_table.hpp"\n\nnamespace quern::text {\n')
    emit("kLetterRanges", members(r"\p{L}"))
    emit("kNumberRanges", members(r"\p{N}"))
    emit_newer()
    emit("kUnknownToNormalizers", unknown_to_normalizers())
    emit("kPunctuationRanges", punctuation())
    emit_lower()
    for name, members_of in zip(("kDroppedControls", "kDroppedMarks", "kIdeographs"), wordpiece_sets()):
        emit(name, members_of)
    emit("kAccents", accents())
    emit_scripts()
    print("}  // namespace quern::text")


if __name__ == "__main__":
    main()
