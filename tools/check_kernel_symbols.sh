#!/bin/sh
# usage: [NM=nm] [OBJDUMP=objdump] tools/check_kernel_symbols.sh OBJECT...
# A kernel file is compiled for one instruction set. Any function that it shares with other files (an inline function
# of a library, a template) may be the copy the linker keeps, and then crashes an older machine. So each object may
# define one symbol, its table `NAME_kernels` (or `NAME_table`), and nothing that runs before main.
set -eu
[ $# -gt 0 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
failed=0

for object in "$@"; do
    name=$(basename "$object" .o)
    name=${name#isa_}
    # Upper-case kinds are visible outside the object; weak (W, V) and unique (u) ones are shared by design.
    defined=$("${NM:-nm}" --defined-only --format=posix "$object" | awk '$2 ~ /^[A-Zuvw]$/ { print $2, $1 }')
    wrong=$(echo "$defined" | grep -vE "^[RD] _ZN6linnet[0-9]+${name}_(kernels|table)E\$" | sed '/^$/d' || true)
    if [ -n "$wrong" ]; then
        echo "$object: expected no symbol but linnet::${name}_kernels, got:" >&2
        echo "$wrong" | c++filt | sed 's/^/    /' >&2
        failed=1
    fi
    if ! echo "$defined" | grep -qE "${name}_(kernels|table)E\$"; then
        echo "$object: expected the table linnet::${name}_kernels, got none" >&2
        failed=1
    fi
    if "${OBJDUMP:-objdump}" -h "$object" | grep -qE '\.(init_array|ctors|preinit_array)'; then
        echo "$object: expected no dynamic initialisers, got some" >&2
        failed=1
    fi
done
exit $failed
