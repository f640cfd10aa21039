"""What a browser printed: the text on each page of a PDF, as far as Chromium's files need it.

PDF 32000-1:2008: objects (7.3), filters (7.4), page trees (7.7.3), text (9.4), ToUnicode (9.10.3).
"""

import re
import struct
import zlib

_OBJECT = re.compile(rb"(?<!\d)(\d+) 0 obj\s(.*?)\bendobj", re.S)
_STREAM = re.compile(rb"stream\r?\n(.*)\r?\nendstream", re.S)
_SHOWN = re.compile(
    rb"/(\w+) [\d.]+ Tf|(\[(?:[^\]\\]|\\.)*\]) ?TJ|(<[0-9A-Fa-f\s]*>) ?Tj|/(\w+) Do"
)


def pages_of(data):
    """Return the text of each page, in the order of the pages; without spaces, as set on paper."""
    objects = {int(found[1]): found[2] for found in _OBJECT.finditer(data)}
    root = next(one for one in objects.values() if re.search(rb"/Type\s*/Catalog", one))
    return [
        _text(objects, page, _stream(objects[_reference(page, b"Contents")]))
        for page in _leaves(objects, _reference(root, b"Pages"))
    ]


def _leaves(objects, number):
    kids = re.search(rb"/Kids\s*\[(.*?)\]", objects[number], re.S)
    if kids is None:
        yield objects[number]
        return
    for kid in re.findall(rb"(\d+) 0 R", kids[1]):
        yield from _leaves(objects, int(kid))


def _reference(text, name):
    return int(re.search(rb"/%s\s+(\d+) 0 R" % name, text)[1])


def _stream(text):
    data = _STREAM.search(text)[1]
    return zlib.decompress(data) if b"/FlateDecode" in text[: text.index(b"stream")] else data


def _named(objects, text, kind):
    """Return the resources of a kind by their names."""
    found = re.search(rb"/%s\s*<<(.*?)>>" % kind, text, re.S)
    named = re.findall(rb"/(\w+)\s+(\d+) 0 R", found[1]) if found else ()
    return {name: objects[int(number)] for name, number in named}


def _text(objects, owner, content):
    fonts = {
        name: _letters(_stream(objects[_reference(font, b"ToUnicode")]))
        for name, font in _named(objects, owner, b"Font").items()
        if b"/ToUnicode" in font
    }
    forms = _named(objects, owner, b"XObject")
    letters, text = {}, []
    for font, several, one, form in _SHOWN.findall(content):
        letters = fonts.get(font, {}) if font else letters
        for digits in re.findall(rb"<([^>]*)>", several or one):
            codes = struct.iter_unpack(">H", bytes.fromhex(digits.decode()))
            text += [letters.get(code, "?") for (code,) in codes]
        if form and b"/Subtype /Form" in forms.get(form, b""):
            text.append(_text(objects, forms[form], _stream(forms[form])))
    return "".join(text)


def _letters(table):
    """Return the characters of a font by their codes."""
    found = {}
    for block in re.findall(rb"beginbfchar(.*?)endbfchar", table, re.S):
        for code, letter in re.findall(rb"<(\w+)>\s*<(\w+)>", block):
            found[int(code, 16)] = bytes.fromhex(letter.decode()).decode("utf-16-be")
    for block in re.findall(rb"beginbfrange(.*?)endbfrange", table, re.S):
        for first, last, letter in re.findall(rb"<(\w+)>\s*<(\w+)>\s*<(\w+)>", block):
            begin = int(letter, 16)
            for code in range(int(first, 16), int(last, 16) + 1):
                found[code] = chr(begin + code - int(first, 16))
    return found
