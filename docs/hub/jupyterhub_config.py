"""JupyterHub's configuration for a study session: everything comes from ``class.toml``.

``jupyterhub -f jupyterhub_config.py`` reads the file beside this one, or that named by
``SAEM_CLASS``.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from class_hub import configure  # noqa: E402

configure(get_config(), Path(os.environ.get("SAEM_CLASS", HERE / "class.toml")))  # noqa: F821
