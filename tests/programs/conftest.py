"""Keep pytest from collecting the programs themselves."""

collect_ignore_glob = ["scripts/*"]
