"""The options of an argparse program as a man page lists them."""


def items(parser, group):
    """Yield each option of a group of a parser, with its value, and what it does."""
    formatter = parser._get_formatter()
    for action in group._group_actions:
        value = action.metavar or ",".join(action.choices or ())
        term = f"{', '.join(action.option_strings)} {value}".strip()
        text = formatter._expand_help(action)
        yield term, text[:1].upper() + text[1:] + "."
