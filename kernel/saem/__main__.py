"""What does ``python -m saem`` do?  The same as the command ``saem``.

Read after: ``saem.cli.main``.
"""

from saem.cli.main import main

if __name__ == "__main__":
    main()
