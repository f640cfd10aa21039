"""The characters of the Linux console, from sources that benchctl does not use."""

# Of the codes 1 to 31, where Python's codec has control characters: the shapes that the kernel's
# drivers/tty/vt/cp437.uni lists first.
_SHAPES = "☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼"
CP437 = {*bytes(range(32, 256)).decode("cp437").replace("\x7f", "⌂"), *_SHAPES, "\n"}
