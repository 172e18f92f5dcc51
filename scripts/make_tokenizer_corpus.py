#!/usr/bin/env python3
"""Writes the corpus on which tokenizers are compared: one JSON string a line, the same for the same options.

  scripts/make_tokenizer_corpus.py [--size small|full] [--special TOKENS.json] > corpus.jsonl

small: about 900 texts that between them reach every rule (kept expectations are made from it).
full: besides, every code point up to U+FFFF in chunks, 20,000 random texts and the long ones.
TOKENS.json: a list of added tokens; each is tried alone, glued, in words, doubled and cut.
"""
import argparse
import json
import random
import sys

SPACES = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
          0x205F, 0x3000, 0x180E, 0x200B, 0x200C, 0x200D, 0xFEFF]
PROSE = {
    "english": "It's 3 o'clock; they'll say \"we've won\", won't they? I'D, YOU'RE, she'S - don't.",
    "french": "L'\u0153uvre d'\u00c9mile co\u00fbte 12,50 \u20ac, n'est-ce pas\u00a0?",
    "german": "Stra\u00dfe, Gr\u00f6\u00dfe, \u00c4rger: 1.234,56 kg.",
    "russian": "\u0421\u044a\u0435\u0448\u044c \u0436\u0435 \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 \u043c\u044f\u0433\u043a\u0438\u0445 \u0431\u0443\u043b\u043e\u043a.",
    "greek": "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u1f00\u03bd\u03ae\u03c1 \u03c2",
    "hebrew": "\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd",
    "arabic": "\u0627\u0644\u0633\u064e\u0651\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645 \u0661\u0662\u0663\u061f",
    "hindi": "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e \u0967\u0968\u0969\u0964",
    "thai": "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e51\u0e52\u0e53",
    "khmer": "\u179f\u17bd\u179f\u17d2\u178f\u17b8\u1796\u17b7\u1797\u1796\u179b\u17c4\u1780",
    "chinese": "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u4eca\u5929\u662f2026\u5e7411\u670829\u65e5\u3002\U00020000\U00020001",
    "japanese": "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca\uff76\uff9e \uff21\uff22\uff23",
    "korean": "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4 \u1100\u1161\u11a8",
    "tamil": "\u0bb5\u0ba3\u0b95\u0bcd\u0b95\u0bae\u0bcd \u0b89\u0bb2\u0b95\u0bae\u0bcd",
    "vietnamese": "Ti\u1ebfng Vi\u1ec7t c\u00f3 d\u1ea5u; Tie\u0302\u0301ng Vie\u0323\u0302t.",
    "georgian": "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0 \u1c92\u1c90",
    "math": "\u2200x\u2208\u211d: \u2308x\u2309 = \u2212\u230a\u2212x\u230b, \u03b1\u2227\u00ac\u03b2, \u00bd + \u2153 = \u2159, \u2163 \u2460 \u00b2",
}
EMOJI = ["\U0001F600", "\U0001F469\u200D\U0001F4BB", "\u2764\uFE0F", "\U0001F1FA\U0001F1F3", "\U0001F44D\U0001F3FD",
         "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "1\uFE0F\u20E3", "\U0001FAE0"]
CODE = [
    "def f(x: int) -> str:\n    \"\"\"Doc.\"\"\"\n    return f\"{x!r:>10}\" if x else None  # done\n",
    "for (int i = 0; i < n; ++i) {\n\t\tsum += a[i] * b[i];\n\t}\n\n\n",
    "{\"key\": [1, 2.5e-10, null, true], \"nested\": {\"a\\n\": \"\\u00e9\"}}",
    "\\begin{align} \\frac{\\partial f}{\\partial x} &= 2x \\\\ \\end{align}",
    "https://user:pw@example.org:8080/a/b.html?q=1&r=%20#frag", "SELECT * FROM t WHERE a<>'b''c';",
    "aGVsbG8gd29ybGQ=QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", "<p class=\"x\">a &amp; b</p><!-- -->\r\n\r\n",
    "$ ls -la | grep '^d' > /dev/null 2>&1 &&\\\n echo ok", "0x7fff_ffff 1_000_000 3.14159e+00 12345678901234567890",
]
TRICKY = [
    "", "a\u0301", "\u00e1", "\u212b \u00c5 A\u030a", "\ufb01 fi", "\u0130 i\u0307", "\u0301", "\u0301\u0302\u0303", " \u0301a",
    "\u2581 \u0120 \u010a", "<0x0A>", "\ufffe\uffff", "\ue000", "\u0378", "a\u180eb", "a\u0085b", "a\u200bb", "\ufeffabc",
    "\u2028\u2029", "''''", "'s 't 're 've 'm 'll 'd", "'S 'T 'RE 'VE 'M 'LL 'D", "'\u017f x'\u017f", "it'Ll", "'l 'r 'v'",
    "\t's", " 's", "  's", "a's", "1's", "...'s", "\u2019s", "x\u00a0y", "x\u00a0\u00a0y", "\u3000x", " \u3000 x",
    "a\rb\r\nc\n\rd", "\r\n\r\n  \r\n", "  \n  x", "\n\n\n x", " \n", "x \n", "x  \n\n  y", "!\n", "!\n\n ", " !\r\n", "?\t\n",
    "\u0661\u0662\u0663\u0664", "\u2160\u2161\u2162\u2163", "\u00bd\u00be\u00b2\u00b3\u00b9", "\u0e51\u0e52", "\U0001D7D8\U0001D7D9",
    "1,234,567.89", "1 2 12 123 1234 12345 123456 1234567", "a1b22c333d4444", "\u4e001\u4e8c2", "$5.00%", "-1", "+-*/=<>",
    "a\0b", "\0", "\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f", "\x7f\x80\x9f", "_foo_bar__", "#hash @at", "\\n\\t",
]


def glue(token):
    yield from (token, token + token, "a" + token, token + "b", "a" + token + "b", " " + token + " ", "\n" + token + "\n",
                "  " + token, token + "  x", "x \u3000" + token + "\t\ty", token[:-1], token[1:], token[:-1] + token,
                token.upper(), token.lower(), "\u00e9" + token + "_", "x, " + token + ".", token + "1", "-" + token + "-")


def small(specials):
    yield from TRICKY
    yield from PROSE.values()
    yield from EMOJI
    yield " ".join(EMOJI) + "".join(EMOJI)
    yield from CODE
    for code in range(0x100):
        yield chr(code)
    for code in SPACES:
        c = chr(code)
        yield from (c, c + c, "a" + c, c + "a", "a" + c + "b", "a" + c + c + "b", "1" + c + "2", "!" + c + "!", c + "\n", "\n" + c)
    for blank in " \t\n":
        for n in list(range(1, 12)) + [16, 17, 24, 32, 33, 40]:
            yield from (blank * n, "x" + blank * n + "y")
    for n in range(1, 13):
        yield from ("9876543210123"[:n], "a" + "7" * n + "b", " " + "1" * n)
    for token in specials:
        yield from glue(token)


def random_texts(count):
    rng = random.Random(2026)
    pool = sorted({c for text in list(PROSE.values()) + EMOJI + TRICKY for c in text} | {chr(c) for c in SPACES})
    ascii_pool = [chr(c) for c in range(0x20, 0x7F)] + ["\n", "\t", " ", " ", "e", "t", "a", "'"]
    for _ in range(count):
        n = rng.randint(1, 60)
        yield "".join(rng.choice(ascii_pool if rng.random() < 0.6 else pool) for _ in range(n))


def full(specials, rng):
    yield from small(specials)
    for start in range(0, 0x10000, 64):
        chunk = [chr(c) for c in range(start, start + 64) if not 0xD800 <= c < 0xE000]
        if chunk:
            yield from ("".join(chunk), " ".join(chunk), "a".join(chunk), "1".join(chunk), "".join(chunk[::-1]))
    for start in range(0x10000, 0x20000, 256):
        yield "".join(chr(c) for c in range(start, start + 256))
    yield from random_texts(20000)
    if specials:
        parts = list(PROSE.values()) + CODE + TRICKY
        for _ in range(2000):
            yield "".join(rng.choice(specials) if rng.random() < 0.4 else rng.choice(parts)[:12] for _ in range(6))
    long = {"A": "A" * 200000, "space": " " * 200000, "newline": "\n" * 50000, "han": "\u5b57" * 60000,
            "emoji": EMOJI[1] * 10000, "marks": "e" + "\u0301" * 30000, "caret": "^" * 100000,
            "ab": "ab" * 100000, "digits": "7" * 100000}
    yield from long.values()
    letters = "".join(rng.choice("etaoinshrdlu") for _ in range(100000))
    yield from (letters, " ".join(PROSE.values()) * 200, "\n".join(CODE) * 200)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--special", help="JSON list of added tokens")
    options = parser.parse_args()
    specials = json.load(open(options.special, encoding="utf-8")) if options.special else []
    texts = small(specials) if options.size == "small" else full(specials, random.Random(7))
    seen = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            sys.stdout.write(json.dumps(text) + "\n")


if __name__ == "__main__":
    main()
