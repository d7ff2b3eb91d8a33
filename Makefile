# The everyday commands. CMake does the building (see CMakePresets.json); this file only strings the steps together.
PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

.NOTPARALLEL:
.PHONY: build setup demo test bench bench-gpu fuzz check format clean

build:
	@tools/build.sh $(PRESET) $(JOBS)

# System packages and the Python environment of the tests and the demo; instant when all of it is there.
setup:
	@tools/setup.sh

demo: setup
	@tools/build.sh $(PRESET) $(JOBS)
	@tools/demo.sh $(BUILD)

test: setup
	@tools/build.sh $(PRESET) $(JOBS)
	@tools/test.sh $(BUILD) $(JOBS)

bench: setup
	@tools/build.sh $(PRESET) $(JOBS)
	@tools/bench.sh $(BUILD)

# The same on a GPU, then through PyTorch where python3 has it.
bench-gpu:
	@tools/build.sh $(PRESET) $(JOBS) bin/bench_gpu bin/bench_gpu_dynamic bin/bench_gpu_first \
	  bin/bench_gpu_invariance
	@$(BUILD)/bin/bench_gpu
	@$(BUILD)/bin/bench_gpu_first
	@$(BUILD)/bin/bench_gpu_dynamic
	@$(BUILD)/bin/bench_gpu_invariance
	@python3 bench/gpu_peers.py $(BUILD)/bin/bench_gpu

# Random programs, more of them than the tests run: make fuzz FUZZ_COUNT=10000 FUZZ_SEED=7
fuzz: setup
	@tools/build.sh $(PRESET) $(JOBS)
	@tools/fuzz.sh $(BUILD) $(JOBS)

# What needs no build: layers, words, recipes, environment variables, formatting.
check:
	@python3 tools/check_layers.py
	@python3 tools/check_words.py
	@python3 tools/check_recipes.py
	@python3 tools/check_environment.py
	@python3 tools/format.py --check

format:
	@python3 tools/format.py

clean:
	rm -rf build
