# make book · make test · make style · make older · make serve · make pdf · make notebooks · make student · make address · make colab-check · make cells-twice · make other-arithmetic · make card-check · make card-plan · make clean
# The first of them makes .venv and installs everything into it; after that only older needs the network, once.

PYTHON ?= python3
WORKERS ?= 2
PORT ?= 8000

VENV := .venv
PY := $(VENV)/bin/python
REQUIREMENTS := requirements.txt constraints.txt pyproject.toml
# The stamp's name holds a checksum of the requirements and of this folder's place: a change of either installs anew.
KEY := $(shell { pwd; cat $(REQUIREMENTS); } | cksum | cut -d ' ' -f 1)
STAMP := $(VENV)/.installed-$(KEY)
PIP := $(PY) -m pip --disable-pip-version-check --quiet
BOOK := $(PY) -c 'from jupyter_book.cli.main import main; main()'
PAGES := _build/html

OLDER := _build/transformers-5.15.0
CARD := _build/card

.PHONY: help book html style types test older serve pdf notebooks student address colab-check cells-twice other-arithmetic card-check card-plan clean
.NOTPARALLEL:

help:
	@sed -n '1,2s/^# //p' Makefile

book: html
	@echo "The book is ready. Open this file in a browser (or run: make serve):"
	@echo "  $(CURDIR)/$(PAGES)/index.html"

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one like this: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PIP) --version >/dev/null 2>&1 || { echo "Making $(VENV) ..."; $(PYTHON) -m venv --clear $(VENV); }
	@echo "Installing the requirements into $(VENV) (only this once; some minutes, torch is large) ..."
	@$(PIP) install --constraint constraints.txt "$$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements.txt)"
	@$(PIP) install --constraint constraints.txt --requirement requirements.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(PY) -c "import matplotlib.font_manager" 2>/dev/null
	@rm -f $(VENV)/.installed-*
	@touch $@

# From nothing each time: a page that is not read again would keep its warnings to itself.
html: $(STAMP)
	@echo "Building the book ..."
	@rm -rf _build/html _build/.doctrees
	@$(BOOK) build . -W --keep-going --quiet >/dev/null
	@test -f $(PAGES)/index.html || { echo "The build wrote no pages."; exit 1; }

# The notebooks have their own width (book/ruff.toml); the tests compare their form with what tools/notebooks.py writes.
style: types
	@echo "Checking the style of the code ..."
	@$(PY) -m ruff format --check --quiet --exclude '*.ipynb' .
	@$(PY) -m ruff check --quiet --output-format concise .

types: $(STAMP)
	@echo "Checking the types of the package ..."
	@$(PY) -m mypy --no-error-summary

# The checks of style and types run beside the building of the pages: each takes one core.
test: $(STAMP)
	@$(MAKE) --no-print-directory style & checked=$$!; \
	  $(MAKE) --no-print-directory html; built=$$?; wait $$checked && exit $$built
	@echo "Running the tests and every cell of the book, $(WORKERS) at a time ..."
	@SPANBERT_TUTORIAL_COUNTS=$${SPANBERT_TUTORIAL_COUNTS:-_build/counts.json} \
	  $(PY) -m pytest --nbval tests book -n $(WORKERS) --dist loadfile --quiet

# What reads checkpoints once more, with the transformers of Colab: it still has functions that the newest lacks.
older: $(STAMP)
	@echo "Running the tests of checkpoints with transformers 5.15.0 ..."
	@test -d $(OLDER) || { rm -rf $(OLDER).part && $(PIP) install --no-deps --target $(OLDER).part \
	  transformers==5.15.0 tokenizers==0.22.2 huggingface_hub==1.33.0 && mv $(OLDER).part $(OLDER); }
	@SPANBERT_TUTORIAL_PACKAGES=$(CURDIR)/$(OLDER) PYTHONPATH=$(CURDIR)/$(OLDER) TRANSFORMERS_WANTED=5.15.0 \
	  $(PY) -m pytest --nbval tests/test_question_answering.py tests/test_old_notes.py tests/test_bert.py \
	  tests/test_shipped_answerers.py tests/test_squad_commands.py tests/test_tagging.py tests/test_classification.py \
	  book/tasks/old_notes.ipynb -n $(WORKERS) --dist loadfile --quiet

serve: $(STAMP)
	@test -f $(PAGES)/index.html || $(MAKE) --no-print-directory html
	@echo "Open http://127.0.0.1:$(PORT)/ in a browser; stop with Ctrl-C."
	@$(PY) -m http.server --bind 127.0.0.1 --directory $(PAGES) $(PORT)

# The whole book as one print, through the system's Chromium.
pdf: html
	@$(PY) tools/pdf.py

notebooks: $(STAMP)
	@$(PY) tools/notebooks.py execute

student: $(STAMP)
	@$(PY) tools/student.py

address: $(STAMP)
	@$(PY) tools/notebooks.py address

# Every notebook from the package's wheel alone, in an empty folder, each cell two times in a row; of those that
# train only the beginning.
colab-check: $(STAMP)
	@$(PY) tools/rerun.py --wheel --twice

# The notebooks that train, each cell two times in a row.
cells-twice: $(STAMP)
	@$(PY) tools/rerun.py --training --twice

# Every notebook that trains, with the arithmetic of another processor: AVX2 without bfloat16, in float32.
# ARITHMETIC=default is a processor older still; THREADS=4 sums in another order.
ARITHMETIC ?= avx2
THREADS ?= 1
other-arithmetic: $(STAMP)
	@ATEN_CPU_CAPABILITY=$(ARITHMETIC) ONEDNN_MAX_CPU_ISA=AVX2 SPANBERT_TUTORIAL_THREADS=$(THREADS) \
	  SPANBERT_TUTORIAL_PACKAGES=$(CURDIR)/tools/other_arithmetic \
	  $(PY) -m pytest --nbval $$($(PY) tools/rerun.py --training --names) -n $(WORKERS) --dist loadfile --quiet

# All notebooks with a graphics card, several at a time; CHECK=--training takes those that may meet one.
card-check: $(STAMP)
	@$(PY) tools/rerun.py --card --workers 6 $(CHECK)

# Benchmark, check and experiments one after the other; PLAN="'NAME --option value' …" names the experiments.
card-plan: $(STAMP)
	@sh research/card_plan.sh $(PY) $(CARD) $(PLAN)

clean:
	rm -rf _build dist .pytest_cache .ruff_cache .hypothesis
