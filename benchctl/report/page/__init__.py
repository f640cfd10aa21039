"""A report for somebody who has nothing else: what was asked, what came out, and why.

`content` makes its blocks from stored runs, `html` and `markdown` write them. The text is that of
``benchctl show`` and ``compare``, and the figures are those of ``benchctl plot``.
"""
