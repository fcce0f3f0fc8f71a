# make build      .venv/bin/xpline, ready to run
# make reproduce  the published claims beside the model's numbers, and the figures, in build/reproduce
# make test       every test
# make bench      requests simulated a second
# make lint       formatting and lint checks (make format mends what can be mended)
# make lock       the newest Python dependencies into requirements.lock
# make clean      remove what the build made
#
# Variables: PYTHON, the interpreter to build with (python3); DATASET, the folder of measured points that
# make reproduce puts beside the model (../shared/data/optane-study where it exists).

PYTHON ?= python3
DATASET ?= $(wildcard ../shared/data/optane-study)

BIN := .venv/bin
INSTALLED := .venv/.installed
BUILT := .venv/.built
NATIVE_SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find crates platforms -type d -o -name '*.rs' -o -name '*.toml')

export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: build reproduce test bench lint format lock clean

build: $(BUILT)

reproduce: $(BUILT)
	@echo "measured points: $(if $(DATASET),$(DATASET),none (name a folder of them with DATASET=DIR))"
	$(BIN)/xpline reproduce --out build/reproduce $(if $(DATASET),--dataset "$(DATASET)")

# xpline-py is tested from Python, through what it is for.
test: $(BUILT)
	cargo test --workspace --exclude xpline-py --profile checks --locked
	$(BIN)/python -m pytest

bench:
	@scripts/check-prerequisites
	cargo bench --workspace --exclude xpline-py --locked

lint: export PYO3_PYTHON = $(abspath $(BIN)/python)
lint: $(INSTALLED)
	cargo fmt --all --check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

format: $(INSTALLED)
	cargo fmt --all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock:
	@scripts/check-prerequisites
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet uv
	build/lock/bin/uv pip compile pyproject.toml --extra dev --universal --upgrade --generate-hashes \
		--quiet --custom-compile-command "make lock" --output-file requirements.lock

clean:
	rm -rf .venv build target python/xpline/_native.*

$(INSTALLED): requirements.lock
	@scripts/check-prerequisites
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	@touch $@

# An editable install: a change of Python code needs no build, a change of Rust code needs this.
$(BUILT): $(INSTALLED) $(NATIVE_SOURCES)
	@scripts/check-prerequisites
	VIRTUAL_ENV="$(abspath .venv)" PIP_QUIET=1 $(BIN)/maturin develop --release --locked
	@touch $@
