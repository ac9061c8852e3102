# linnet: `make` builds build/linnet; `make test` runs every test; `make help` lists the rest.
#   VARIANT=release|debug|asan|coverage    CXX=g++|clang++|aarch64-linux-gnu-g++    V=1 shows the commands
VARIANT ?= release
CXX     ?= g++
BUILD   := build$(if $(filter-out release,$(VARIANT)),-$(VARIANT))$(if $(findstring aarch64,$(CXX)),-aarch64)
MACHINE := $(firstword $(subst -, ,$(shell $(CXX) -dumpmachine)))
Q       := $(if $(V),,@)

CPPFLAGS += -Isrc -MMD -MP
CXXFLAGS += -std=c++20 -Wall -Wextra -fopenmp -g1 -ffp-contract=off
LDFLAGS  += -fopenmp
LDLIBS   += -lpcre2-8 -lutf8proc -lz -lzstd

OPT.release  := -O2
OPT.debug    := -O0 -g3 -D_GLIBCXX_ASSERTIONS
OPT.asan     := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS
OPT.coverage := -O0 -g --coverage
CXXFLAGS += $(or $(OPT.$(VARIANT)),$(error VARIANT must be release, debug, asan or coverage))
LDFLAGS  += $(filter -fsanitize% --coverage,$(OPT.$(VARIANT)))

# Instruction-set flags go to the kernel files alone; a file that this machine's kind cannot build is left out.
ISA.x86_64.avx2    := -mavx2 -mfma -mf16c
ISA.x86_64.avx512  := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512
ISA.aarch64.neon   := -march=armv8.2-a+fp16
# Kernels are compiled for speed and contracted where the source says so; never -ffast-math.
KERNEL_FLAGS := -O3 -fno-exceptions -fno-rtti -fno-math-errno -fno-trapping-math -fno-stack-protector
isa_of    = $(patsubst src/kernels/isa_%.cpp,%,$(1))
ISA_ALL  := $(wildcard src/kernels/isa_*.cpp)
ISA_SKIP := $(foreach f,$(ISA_ALL),$(if $(or $(filter scalar double,$(call isa_of,$f)),$(ISA.$(MACHINE).$(call isa_of,$f))),,$f))

SOURCES := $(filter-out $(ISA_SKIP),$(shell find src -name '*.cpp' | sort))
TESTS   := $(shell find tests -name '*.cpp' -not -path 'tests/fuzz/*' | sort)
OBJECTS := $(SOURCES:%.cpp=$(BUILD)/obj/%.o)
LIBRARY := $(filter-out $(BUILD)/obj/src/main.o,$(OBJECTS))
TEST_OBJECTS := $(TESTS:%.cpp=$(BUILD)/obj/%.o)

.PHONY: all test check format tidy clean help install bench-kernels
all: $(BUILD)/linnet

$(BUILD)/linnet: $(OBJECTS)
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)

$(BUILD)/tests: $(TEST_OBJECTS) $(LIBRARY)
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $(TEST_OBJECTS) $(LIBRARY) $(LDLIBS)

$(BUILD)/obj/src/kernels/isa_%.o: src/kernels/isa_%.cpp Makefile
	@mkdir -p $(@D)
	@echo "compile $<"
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) $(if $(filter release,$(VARIANT)),$(KERNEL_FLAGS)) $(ISA.$(MACHINE).$*) -c -o $@ $<

$(BUILD)/obj/%.o: %.cpp Makefile
	@mkdir -p $(@D)
	@echo "compile $<"
	$(Q)$(CXX) $(CPPFLAGS) $(if $(filter tests/%,$<),-Itests) $(CXXFLAGS) -c -o $@ $<

# Speed of the matrix products and attention beside the machine's peaks (src/kernels/README.md has a run).
BENCH_OBJECTS := $(filter $(BUILD)/obj/src/kernels/% $(BUILD)/obj/src/tensor/%,$(OBJECTS)) $(BUILD)/obj/tools/bench_kernels.o
$(BUILD)/bench-kernels: $(BENCH_OBJECTS)
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $(BENCH_OBJECTS)
bench-kernels: $(BUILD)/bench-kernels
	$(BUILD)/bench-kernels $(BENCH)

clean:
	rm -rf build build-*

-include $(OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(BUILD)/obj/tools/bench_kernels.d
