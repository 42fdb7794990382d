"""What the core never imports, each in a folder of its own; the verbs that they add are registered here."""

VERBS: dict[str, str] = {}  # verb -> module with ``main(argv)``
