# linnet: `make` builds build/linnet; `make test` runs every test; `make help` lists the rest.
#   VARIANT=release|debug|asan|tsan    CXX=g++|clang++|aarch64-linux-gnu-g++    V=1 shows the commands
VARIANT ?= release
ifeq ($(origin CXX),default)
CXX     := g++
endif
PREFIX  ?= /usr/local
BUILD   := build$(if $(filter-out release,$(VARIANT)),-$(VARIANT))$(if $(findstring clang,$(CXX)),-clang)$(if $(findstring aarch64,$(CXX)),-aarch64)
MACHINE := $(firstword $(subst -, ,$(shell $(CXX) -dumpmachine)))
CROSS   := $(if $(findstring -linux-gnu-g++,$(CXX)),$(filter-out $(shell uname -m),$(MACHINE)))
SYSTEM  := $(shell uname -s)
Q       := $(if $(V),,@)
# A line that names $(MAKE) runs under `make -n`, too: this makes nothing of it.
IF_DRY   = $(if $(findstring n,$(filter-out --%,-$(firstword $(filter-out $(MAKEOVERRIDES),$(MAKEFLAGS))))),: )
# Without a -j of one's own, the targets that people type use every core.
CORES   := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
AGAIN    = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(CORES))

CPPFLAGS += -Isrc -MMD -MP
# Where memory runs out, nlohmann's JSON is left half made, and asserts otherwise when it is destroyed: this is a
# failed allocation, too, and told as one (src/commands/out_of_memory.h).
CPPFLAGS += '-DJSON_ASSERT(condition)=((condition) ? (void)0 : std::terminate())'
CXXFLAGS += -std=c++20 -Wall -Wextra -fopenmp -g1 -ffp-contract=off
LDFLAGS  += -pthread
LDLIBS   += -lpcre2-8 -lutf8proc -lpng -lz -lzstd -ledit -lsimdjson
ifeq ($(SYSTEM),Darwin)
# Homebrew has the packages; bench-kernels alone needs its OpenMP to link.
BREW     := $(shell brew --prefix 2>/dev/null)
CPPFLAGS += -I$(BREW)/include -I$(BREW)/opt/libomp/include
CXXFLAGS := $(patsubst -fopenmp,-Xpreprocessor -fopenmp,$(CXXFLAGS))
LDFLAGS  += -L$(BREW)/lib -L$(BREW)/opt/libomp/lib
endif

OPT.release  := -O2
OPT.debug    := -O0 -g3 -D_GLIBCXX_ASSERTIONS
OPT.asan     := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS
OPT.tsan     := -O1 -g1 -fsanitize=thread -D_GLIBCXX_ASSERTIONS
# Clang counts conditions of the source, so that it may be optimized; in what src/ compiles to alone (see build/tests).
OPT.coverage := -O1 -Wno-pass-failed
COUNTED.coverage := -fprofile-instr-generate -fcoverage-mapping -fcoverage-compilation-dir=.
OPT.fuzz     := -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -D_GLIBCXX_ASSERTIONS
CXXFLAGS += $(or $(OPT.$(VARIANT)),$(error VARIANT must be release, debug, asan, tsan, coverage or fuzz))
LDFLAGS  += $(filter -fsanitize% -fprofile%,$(OPT.$(VARIANT)) $(COUNTED.$(VARIANT))) $(if $(CROSS),-static)
$(BUILD)/obj/src/%.o: CXXFLAGS += $(COUNTED.$(VARIANT))
ifeq ($(VARIANT),coverage)
# Every process adds its counts to one file of its program: this takes memory, and tests that limit it are left out.
export LLVM_PROFILE_FILE := $(CURDIR)/$(BUILD)/profiles/%m.profraw
$(BUILD)/obj/tests/%.o: CPPFLAGS += -DLINNET_COUNTED
endif

# Instruction-set flags go to the kernel files alone; a file that this machine's kind cannot build is left out.
ISA.x86_64.avx2       := -mavx2 -mfma -mf16c
ISA.x86_64.avx512     := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c -mprefer-vector-width=512
ISA.x86_64.avxvnni    := $(ISA.x86_64.avx2) -mavxvnni
ISA.x86_64.avx512vnni := $(ISA.x86_64.avx512) -mavx512vnni
ISA.x86_64.avx512bf16 := $(ISA.x86_64.avx512) -mavx512bf16
ISA.x86_64.amx        := $(ISA.x86_64.avx512) -mavx512bf16 -mamx-tile -mamx-bf16
ISA.aarch64.neon      := -march=armv8-a
ISA.aarch64.dotprod   := -march=armv8.2-a+fp16+dotprod
ISA.aarch64.i8mm      := $(ISA.aarch64.dotprod)+i8mm
$(foreach isa,neon dotprod i8mm,$(eval ISA.arm64.$(isa) := $(ISA.aarch64.$(isa))))
# Kernels are compiled for speed and contracted where the source says so; never -ffast-math.
KERNEL_FLAGS.release  := -O3 -fno-exceptions -fno-rtti -fno-math-errno -fno-trapping-math -fno-stack-protector -Wno-psabi
KERNEL_FLAGS.coverage := -O2 -Wno-psabi
# No parser leads into a kernel's branches; libFuzzer walks all its counters after every input, and these are 2 of 3.
KERNEL_FLAGS.fuzz     := -Wno-psabi -fno-sanitize=fuzzer-no-link
isa_of    = $(patsubst src/kernels/isa_%.cpp,%,$(1))
ISA_ALL  := $(wildcard src/kernels/isa_*.cpp)
ISA_SKIP := $(foreach f,$(ISA_ALL),$(if $(or $(filter scalar double,$(call isa_of,$f)),$(ISA.$(MACHINE).$(call isa_of,$f))),,$f))

SOURCES := $(filter-out $(ISA_SKIP),$(shell find src -name '*.cpp' | sort))
TESTS   := $(shell find tests -name '*.cpp' -not -path 'tests/growth/*' | sort)
FUZZ_TARGETS := $(patsubst tests/fuzz/%.cpp,%,$(wildcard tests/fuzz/fuzz_*.cpp))
FUZZERS := $(FUZZ_TARGETS)
# The data files of a folder as one generated source each (below): a file more or less needs no edit here.
ARCHITECTURES := $(sort $(wildcard models/architectures/*.json))
TEMPLATES     := $(sort $(wildcard models/templates/*.json))
OBJECTS := $(SOURCES:%.cpp=$(BUILD)/obj/%.o) $(BUILD)/obj/architecture_files.o $(BUILD)/obj/chat_template_files.o
LIBRARY := $(filter-out $(BUILD)/obj/src/main.o,$(OBJECTS))
TEST_OBJECTS := $(TESTS:%.cpp=$(BUILD)/obj/%.o) $(BUILD)/obj/fuzz_targets.o
# What the kernels need and no more, so that a cross compiler needs no library for its machine.
KERNEL_TEST_OBJECTS := $(filter $(addprefix $(BUILD)/obj/src/,base/% tensor/% kernels/%),$(OBJECTS)) \
                       $(filter $(addprefix $(BUILD)/obj/tests/,main.o support.o kernels/%),$(TEST_OBJECTS))
PROGRAM := $(if $(wildcard src/main.cpp),$(BUILD)/linnet)
FORMATTED := $(shell find src tests -name '*.cpp' -o -name '*.h' -o -name '*.inl')

.PHONY: all everything test test-all run-tests tsan coverage test-faults run-test-faults kernel-test check run-checks format tidy fuzz run-fuzz growth run-growth
.PHONY: print-program clean help bench-kernels install run-install uninstall deb run-deb static check-install
all:          ## build the program (the default)
	$(AGAIN) $(BUILD)/linnet
everything: $(BUILD)/linnet $(BUILD)/tests

test:         ## build and run the tests, but for the suite of long ones
	$(AGAIN) run-tests TEST_ARGS='-tse=long $(TEST_ARGS)'
test-all:     ## build and run every test
	$(AGAIN) run-tests
run-tests: $(BUILD)/tests $(PROGRAM)
	$(BUILD)/tests $(TEST_ARGS)

kernel-test: $(BUILD)/kernel-tests  ## the kernels' tests alone; with CXX=aarch64-linux-gnu-g++ under qemu
	$(if $(CROSS),qemu-$(CROSS)-static) $(BUILD)/kernel-tests $(TEST_ARGS)

FAULTS_EVERY ?= 1
FAULTS_ROWS  ?= *
FAULTS_KINDS ?= kill after EIO ENOSPC EINTR short zero thread no-thread memory no-memory
FAULTS_MOST  ?= 40
test-faults:  ## file operations, threads and memory of every command, failing or killed; FAULTS_EVERY=7 tries a seventh, FAULTS_ROWS='convert*' some commands, FAULTS_KINDS=memory some faults
	$(AGAIN) run-test-faults
run-test-faults: $(PROGRAM) $(BUILD)/faults.so
	tests/faults/run.sh $(PROGRAM) $(BUILD)/faults.so $(FAULTS_EVERY) '$(FAULTS_ROWS)' '$(FAULTS_KINDS)' $(FAULTS_MOST)
$(BUILD)/faults.so: tests/faults/shim.c
	@echo "link    $@"
	$(Q)$(CC) -O1 -Wall -Wextra -shared -fPIC -o $@ $< -ldl
tsan:         ## every test under ThreadSanitizer; TEST_ARGS chooses
	$(AGAIN) VARIANT=tsan run-tests
coverage:     ## lines and branches of src/ that the tests run, by file and folder (needs clang++ and Debian's llvm)
	@rm -rf build-coverage-clang/profiles
	$(AGAIN) VARIANT=coverage CXX=clang++ run-tests
	@tools/coverage.sh build-coverage-clang

check:        ## formatting, layers, kernel symbols, clang-tidy
	$(AGAIN) run-checks
run-checks: check-format check-layers check-symbols tidy
	@echo "checks passed"

.PHONY: check-format check-layers check-symbols
check-format:
	@echo "check   formatting"
	$(Q)clang-format --dry-run -Werror $(FORMATTED)
check-layers:
	@echo "check   layers"
	$(Q)CXX="$(CXX)" tools/check_layers.sh
check-symbols: $(filter $(BUILD)/obj/src/kernels/isa_%,$(OBJECTS))
	@echo "check   kernel symbols"
	$(Q)$(if $^,NM="$(if $(CROSS),$(CROSS)-linux-gnu-)nm" OBJDUMP="$(if $(CROSS),$(CROSS)-linux-gnu-)objdump" tools/check_kernel_symbols.sh $^)

# A file is looked at again when its object was made again, so that headers count too.
TIDIED := $(SOURCES:%.cpp=$(BUILD)/tidy/%.ok)
tidy: $(TIDIED)  ## clang-tidy alone
$(BUILD)/tidy/%.ok: $(BUILD)/obj/%.o .clang-tidy
	@mkdir -p $(@D)
	@echo "tidy    $*.cpp"
	$(Q)clang-tidy --quiet $*.cpp -- -x c++ -std=c++20 -Isrc -fopenmp $(BUILTIN_DEFINE) $(ISA.$(MACHINE).$(call isa_of,$*.cpp)) 2>$@.log || { cat $@.log >&2; exit 1; }
	@rm -f $@.log; touch $@

format:       ## rewrite the sources in the house's format
	$(Q)clang-format -i $(FORMATTED)

RUNS    ?= -1
SECONDS ?= $(if $(filter -1,$(RUNS)),60,0)
fuzz:         ## every fuzz target for SECONDS (60) or RUNS each, or one: make fuzz FUZZERS=fuzz_gguf (needs clang++)
	$(AGAIN) VARIANT=fuzz CXX=clang++ run-fuzz
run-fuzz: $(FUZZERS:%=run-%)
run-fuzz_%: $(BUILD)/fuzz_%
	@mkdir -p $(BUILD)/corpus/$*
	$(BUILD)/fuzz_$* -max_total_time=$(SECONDS) -runs=$(RUNS) -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 \
	    -artifact_prefix=$(BUILD)/ $(BUILD)/corpus/$* $(wildcard tests/fuzz/seeds/$*)
$(BUILD)/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/library.a
	@echo "link    $@"
	$(Q)$(CXX) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LDLIBS)
growth:       ## every parser with an input and with one twice as long: the work, counted, may double (needs clang++)
	$(AGAIN) VARIANT=fuzz CXX=clang++ run-growth
run-growth: $(BUILD)/growth
	$<
GROWTH_OBJECTS := $(patsubst %.cpp,$(BUILD)/obj/%.o,$(wildcard tests/growth/*.cpp))
$(BUILD)/growth: $(GROWTH_OBJECTS) $(BUILD)/library.a
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ $(LDLIBS)
# A target takes what it names: a tenth of the size, and of the time to link.
$(BUILD)/library.a: $(LIBRARY)
	$(Q)rm -f $@; ar rcsT $@ $^
.SECONDARY: $(FUZZERS:%=$(BUILD)/obj/tests/fuzz/%.o) $(FUZZERS:%=$(BUILD)/%)

# The program itself prints its manual pages and completions; build/share mirrors PREFIX/share.
RUN   := $(if $(CROSS),qemu-$(CROSS)-static )
SHARE := $(BUILD)/share
DOCUMENTED := $(wildcard models/*.json models/*.md models/*/README.md models/templates/*.json)
$(SHARE)/made: $(BUILD)/linnet README.md LICENSE $(DOCUMENTED)
	@echo "make    $(SHARE)"
	$(Q)rm -rf $(SHARE)
	$(Q)cd $(BUILD) && mkdir -p share/man/man1 share/bash-completion/completions share/zsh/site-functions \
	    share/fish/vendor_completions.d share/doc/linnet/models/templates share/doc/linnet/models/architectures
	$(Q)for page in $$($(RUN)$(BUILD)/linnet manual --list); do \
	    $(RUN)$(BUILD)/linnet manual $$page >$(SHARE)/man/man1/$$page.1 || exit 1; done
	$(Q)$(RUN)$(BUILD)/linnet completion bash >$(SHARE)/bash-completion/completions/linnet
	$(Q)$(RUN)$(BUILD)/linnet completion zsh >$(SHARE)/zsh/site-functions/_linnet
	$(Q)$(RUN)$(BUILD)/linnet completion fish >$(SHARE)/fish/vendor_completions.d/linnet.fish
	$(Q)for file in LICENSE $(DOCUMENTED); do cp $$file $(SHARE)/doc/linnet/$$file || exit 1; done
# What README.md links to in the source tree is not installed: the names alone stand there.
	$(Q)sed -E 's#\[[^]]*\]\(((src|tests)/[^)]*)\)#\1#g' README.md >$(SHARE)/doc/linnet/README.md
	$(Q)touch $@

# Everything of ours below PREFIX, as install puts and uninstall removes it; check-install tries both.
INSTALLED := bin/linnet share/man/man1/linnet.1 share/man/man1/linnet-*.1 share/bash-completion/completions/linnet \
             share/zsh/site-functions/_linnet share/fish/vendor_completions.d/linnet.fish share/doc/linnet
# As a path from the root, as recipes change folders: a relative DESTDIR, or a relative PREFIX without one, is taken from
# here. No function of make that takes paths apart, as they may have spaces.
below      = $(if $(filter-out /%,$(firstword $(2))),$(1)/)$(2)
IN_STAGE   = $(call below,,$(PREFIX))
TO         = $(call below,$(CURDIR),$(if $(DESTDIR),$(DESTDIR)$(IN_STAGE),$(PREFIX)))
install:      ## program, manual pages, completions and model configs under PREFIX (/usr/local); DESTDIR stages them
	$(AGAIN) run-install
run-install: $(BUILD)/linnet $(SHARE)/made
	$(Q)install -d "$(TO)/bin" && install -m 755 $(BUILD)/linnet "$(TO)/bin/linnet"
	$(Q)cd $(SHARE) && for file in $$(find $(patsubst share/%,%,$(filter share/%,$(INSTALLED))) -type f); do \
	    install -d "$(TO)/share/$${file%/*}" && install -m 644 $$file "$(TO)/share/$$file" || exit 1; done
	@echo "installed $(TO)/bin/linnet"

uninstall:    ## remove what install put under PREFIX
	$(Q)if cd "$(TO)/" 2>/dev/null; then rm -rf $(INSTALLED); fi
# From a stage also the folders that this leaves empty.
	$(if $(DESTDIR),$(Q)if cd "$(TO)/" 2>/dev/null; then rmdir -p $(patsubst %/,%,$(sort $(dir $(INSTALLED)))) 2>/dev/null; \
	    cd "$(call below,$(CURDIR),$(DESTDIR))/" && rmdir -p ".$(IN_STAGE)" 2>/dev/null; fi; true)

deb:          ## build/linnet_VERSION_ARCH.deb, for Debian and its relatives
	$(AGAIN) run-deb
run-deb: $(BUILD)/linnet $(SHARE)/made
	$(Q)$(IF_DRY)MAKE="$(MAKE)" CXX="$(CXX)" STRIP="$(if $(CROSS),$(CROSS)-linux-gnu-)strip" tools/make_deb.sh $(BUILD)

check-install: $(BUILD)/linnet  ## install, uninstall, the .deb and the static program, tried in folders that go away
	$(Q)$(IF_DRY)MAKE="$(MAKE)" tools/check_install.sh $(BUILD)

static:       ## build/linnet-static, which needs no library of the machine that it runs on
	$(AGAIN) $(BUILD)/linnet-static
$(BUILD)/linnet-static: $(OBJECTS) $(BUILD)/static/libsimdjson.a
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) -L$(BUILD)/static -static -o $@ $(OBJECTS) $(LDLIBS) $(STATIC_LIBS)
# What libedit names, which a shared one brings by itself.
STATIC_LIBS := -ltinfo -lbsd -lmd
$(BUILD)/static/libsimdjson.a:
	@CXX="$(CXX)" tools/static_simdjson.sh $@

print-program:
	@echo $(BUILD)/linnet

clean:        ## remove what was built
	rm -rf build build-*

help:         ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | awk -F'\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'
	@echo "  VARIANT=debug|asan|tsan, CXX=clang++, V=1 and -jN go with any of them."

$(BUILD)/linnet: $(OBJECTS)
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)

# The library first: of an inline function the linker takes the first object's, and those of the tests are not counted.
$(BUILD)/tests: $(TEST_OBJECTS) $(LIBRARY)
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $(LIBRARY) $(TEST_OBJECTS) $(LDLIBS)

$(BUILD)/kernel-tests: $(KERNEL_TEST_OBJECTS)
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^

# Speed of the matrix products and attention beside the machine's peaks (src/kernels/MEASUREMENTS.md has a run).
BENCH_OBJECTS := $(filter $(addprefix $(BUILD)/obj/src/,base/% tensor/% kernels/%),$(OBJECTS)) $(BUILD)/obj/tools/bench_kernels.o
$(BUILD)/bench-kernels: $(BENCH_OBJECTS)
	@echo "link    $@"
	$(Q)$(CXX) $(LDFLAGS) $(if $(filter Darwin,$(SYSTEM)),-lomp,-fopenmp) -o $@ $(BENCH_OBJECTS)
bench-kernels: $(BUILD)/bench-kernels  ## speed of the kernels beside the machine's peaks
	$(BUILD)/bench-kernels $(BENCH)

$(BUILD)/obj/src/kernels/isa_%.o: src/kernels/isa_%.cpp Makefile
	@mkdir -p $(@D)
	@echo "compile $<"
	$(Q)$(CXX) $(CPPFLAGS) $(CXXFLAGS) $(or $(KERNEL_FLAGS.$(VARIANT)),-Wno-psabi) $(ISA.$(MACHINE).$*) -c -o $@ $<

$(BUILD)/obj/%.o: %.cpp Makefile
	@mkdir -p $(@D)
	@echo "compile $<"
	$(Q)$(CXX) $(CPPFLAGS) $(if $(filter tests/%,$<),-Itests) $(CXXFLAGS) -c -o $@ $<

# They include kernels as the plainest set compiles them; their vectors are passed to no other file.
$(BUILD)/obj/tests/kernels/test_%_panels.o: CXXFLAGS += -Wno-psabi
$(BUILD)/obj/tests/kernels/test_attention.o: CXXFLAGS += -Wno-psabi

# The revision reaches one file, and that is compiled again only when it changes.
REVISION := $(shell git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
$(shell mkdir -p $(BUILD); echo '$(REVISION)' | cmp -s - $(BUILD)/revision || echo '$(REVISION)' > $(BUILD)/revision)
$(BUILD)/obj/src/commands/version.o: CPPFLAGS += -DLINNET_REVISION='"$(REVISION)"'
$(BUILD)/obj/src/commands/version.o: $(BUILD)/revision

# The tests replay what every fuzz target starts from: for them a target's function has the target's name, and a
# generated source lists all of them.
ifneq ($(VARIANT),fuzz)
$(BUILD)/obj/tests/fuzz/fuzz_%.o: CPPFLAGS += -DLLVMFuzzerTestOneInput=$(*F)
endif
$(shell echo '$(FUZZ_TARGETS)' | cmp -s - $(BUILD)/fuzz_targets.list || echo '$(FUZZ_TARGETS)' > $(BUILD)/fuzz_targets.list)
$(BUILD)/fuzz_targets.cpp: $(BUILD)/fuzz_targets.list Makefile
	@{ echo '#include "fuzz/targets.h"'; \
	   for target in $(FUZZ_TARGETS); do echo "extern \"C\" linnet::fuzz::Run $$target;"; done; \
	   echo 'std::span<const linnet::fuzz::Target> linnet::fuzz::targets() {'; \
	   echo 'static constexpr Target all[] = {'; \
	   for target in $(FUZZ_TARGETS); do echo "{\"$${target#fuzz_}\", $$target},"; done; \
	   echo '}; return all; }'; } > $@
$(BUILD)/obj/fuzz_targets.o: $(BUILD)/fuzz_targets.cpp
	@mkdir -p $(@D)
	@echo "compile $<"
	$(Q)$(CXX) $(CPPFLAGS) -Itests $(CXXFLAGS) -c -o $@ $<

# $(1): the source's name and its function's; $(2): the header; $(3): the files.
define embedded
$(shell echo '$(3)' | cmp -s - $(BUILD)/$(1).list || echo '$(3)' > $(BUILD)/$(1).list)
$(BUILD)/$(1).cpp: $(3) $(BUILD)/$(1).list Makefile
	@{ echo '#include "$(2)"'; \
	   echo 'std::span<const linnet::EmbeddedFile> linnet::$(1)() {'; \
	   echo 'static constexpr EmbeddedFile files[] = {'; \
	   for file in $(3); do printf '{"%s", R"file(' $$$$file; cat $$$$file; echo ')file"},'; done; \
	   echo '}; return files; }'; } > $$@
$(BUILD)/obj/$(1).o: $(BUILD)/$(1).cpp
	@mkdir -p $$(@D)
	@echo "compile $$<"
	$$(Q)$$(CXX) $$(CPPFLAGS) $$(CXXFLAGS) -c -o $$@ $$<
endef
$(eval $(call embedded,architecture_files,model/architecture_files.h,$(ARCHITECTURES)))
$(eval $(call embedded,chat_template_files,text/chat/template_files.h,$(TEMPLATES)))

# The built-in model, embedded by one file; nothing yet where it has not been trained.
BUILTIN := $(or $(wildcard models/shakespeare.gguf),$(BUILD)/no-model)
BUILTIN_DEFINE := -DLINNET_BUILTIN='"$(BUILTIN)"'
$(BUILD)/obj/src/model/builtin.o: CPPFLAGS += $(BUILTIN_DEFINE)
$(BUILD)/obj/src/model/builtin.o: $(BUILTIN)
$(BUILD)/no-model:
	@mkdir -p $(@D); : > $@

-include $(OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d) $(FUZZERS:%=$(BUILD)/obj/tests/fuzz/%.d) $(GROWTH_OBJECTS:.o=.d) $(BUILD)/obj/tools/bench_kernels.d
