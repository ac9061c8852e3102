#!/bin/sh
# usage: [POWER=0.35] tools/fit_law.sh RUN|FILE…
# Fits the scaling law of src/train/law.cpp to runs: folders that `linnet train` made (tools/law_runs.sh makes some), or
# files with lines of four numbers: parameters, bytes of text read, bytes of text to train on, bits per byte at the end
# (tools/law_runs.txt has the ones that the law was fitted to). Prints the coefficients, then every run with what the law
# says of it. For a given power the law is linear in the rest: least squares of relative errors. The power is that of
# Besiroglu et al. 2024, "Chinchilla scaling: a replication attempt" (0.348 and 0.366): small runs cannot tell it.
set -eu
for input in "$@"; do
    if [ -f "$input" ]; then
        grep -v '^#' "$input"
        continue
    fi
    awk '
        function number(key) {
            if (!match($0, "\"" key "\":[0-9.e+-]+")) return 0
            return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
        }
        /"event":"start"/ {
            parameters = number("parameters"); text = number("train_tokens")
            step = number("batch") * number("sequence") * number("accumulate")
        }
        /"event":"eval"/ { steps = number("step"); bits = number("bpb"); nats = number("loss") }
        END {
            bytes = nats / log(2) / bits  # of a token
            print parameters, steps * step * bytes, text * bytes, bits
        }' "$input/log.jsonl"
done | awk -v power="${POWER:-0.35}" '
    function effective(read, text,   again) {
        if (read <= text) return read
        again = read / text - 1
        return text * (1 + 15.4 * (1 - exp(-again / 15.4)))
    }
    NF >= 4 { n++; N[n] = $1 / 1e6; D[n] = effective($2, $3) / 1e7; y[n] = $4; read[n] = $2 }
    # The relative squared error at a power; the coefficients are left in c[0..2].
    function solve(power,   i, j, k, x, m, f, sum, e) {
        for (j = 0; j < 3; j++) for (k = 0; k < 4; k++) m[j, k] = 0
        for (i = 1; i <= n; i++) {
            x[0] = 1 / y[i]; x[1] = N[i] ^ -power / y[i]; x[2] = D[i] ^ -power / y[i]; x[3] = 1
            for (j = 0; j < 3; j++) for (k = 0; k < 4; k++) m[j, k] += x[j] * x[k]
        }
        for (j = 0; j < 3; j++)
            for (i = 0; i < 3; i++) {
                if (i == j) continue
                f = m[i, j] / m[j, j]
                for (k = 0; k < 4; k++) m[i, k] -= f * m[j, k]
            }
        for (j = 0; j < 3; j++) c[j] = m[j, 3] / m[j, j]
        sum = 0
        for (i = 1; i <= n; i++) { e = (c[0] + c[1] * N[i] ^ -power + c[2] * D[i] ^ -power) / y[i] - 1; sum += e * e }
        return sum
    }
    END {
        if (n < 5) { print "fit_law.sh: expected at least five runs, got " n + 0 >"/dev/stderr"; exit 1 }
        error = solve(power)
        printf "least %.3f by_parameters %.3f by_bytes %.3f power %.2f\n", c[0], c[1], c[2], power
        printf "mean error %.1f %% of %d runs\n", 100 * sqrt(error / n), n
        for (i = 1; i <= n; i++) {
            law = c[0] + c[1] * N[i] ^ -power + c[2] * D[i] ^ -power
            printf "%.3fM parameters, %.1f MB read: %.3f, the law %.3f (%+.1f %%)\n", N[i], read[i] / 1e6, y[i], law, 100 * (law / y[i] - 1)
        }
    }'
