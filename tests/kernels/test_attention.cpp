#include <doctest/doctest.h>

#include <algorithm>

// The plainest primitives, as in isa_scalar.cpp.
#include "kernels/simd/scalar.h"

#include "kernels/bf16/tile_attention.inl"

#include "emulated_tiles.h"
#include "kernel_support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Case {
    std::int64_t rows, heads, kv_heads, width, cached = 0, window = 0;
    bool causal = true;
    double softcap = 0;
    bool slopes = false, bias = false;
    std::int64_t globals = 0;
    bool places = false;  // biases by places instead of distances
    int random = 0;       // every so many blocks is chosen; 0: none
    double dropout = 0;   // probability with which a weight falls
};

Case dropping(Case c) {
    c.dropout = 0.3;
    return c;
}

enum class Path { blocks, decode, split };

/// The paths that a set has for such a dropout: any is training's, which takes blocks. Those of a set whose
/// matrix units read are another set's, but for that one.
template <class Real>
std::vector<Path> paths_of(const KernelTable<Real>& table, double dropout) {
    if (table.narrow.attention_split) return dropout > 0 ? std::vector<Path>{} : std::vector{Path::split};
    return dropout > 0 ? std::vector{Path::blocks} : std::vector{Path::blocks, Path::decode};
}

/// Calls f(table) for each_table's, for those whose matrix units read, and for one whose are emulated.
template <class F>
void each_attention_table(F f) {
    each_table(f);
    KernelTable<float> emulated = **usable_kernels().begin();
    emulated.name = "emulated tiles";
    emulated.narrow.attention_split = linnet::bf16_attention<linnet::TileUnits<EmulatedTiles, true>>;
    emulated.narrow.attention_split_workspace = sizeof(linnet::BF16Attention<true>);
    f(emulated);
    for (const KernelTable<float>* table : usable_kernels())
        if (table->narrow.attention_split) f(*table);
}

/// q, k, v side by side in one row of each position, as a fused projection leaves them.
template <class Real>
struct Sequence {
    Case is;
    std::int64_t keys, row;
    Values<Real> qkv, out, lse, dout, dqkv, slopes, bias, dbias, chosen;
    Attention<Real> f;

    static constexpr std::int64_t bias_reach = 12, bias_zero = bias_reach + score_bias_lanes,
                                  bias_row = 2 * bias_zero + 1;

    explicit Sequence(const Case& c, int misaligned = 0)
        : is(c),
          keys(c.cached + c.rows),
          row((c.heads + 2 * c.kv_heads) * c.width + 1),
          qkv(keys * row, 1, misaligned),
          out(c.rows * c.heads * c.width),
          lse(c.heads * c.rows),
          dout(c.rows * c.heads * c.width, 2, misaligned),
          dqkv(keys * row, 3),
          slopes(c.heads, 4),
          bias(c.heads * bias_size(), 5, misaligned),
          dbias(c.heads * bias_size()),
          chosen(blocks() * blocks()) {
        for (std::int64_t i = 0; i < qkv.size(); i++) qkv[i] *= 2;
        f.rows = c.rows, f.cached = c.cached, f.keys = keys, f.heads = c.heads, f.kv_heads = c.kv_heads,
        f.head_width = c.width;
        f.window = c.window, f.causal = c.causal;
        f.scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(c.width)));
        f.q = qkv.data() + c.cached * row, f.k = qkv.data() + c.heads * c.width;
        f.v = qkv.data() + (c.heads + c.kv_heads) * c.width;
        f.q_row = f.k_row = f.v_row = row, f.q_head = f.k_head = f.v_head = c.width;
        f.out = out.data(), f.out_row = c.heads * c.width, f.lse = lse.data();
        f.softcap = static_cast<Real>(c.softcap), f.globals = c.globals;
        for (std::int64_t h = 0; h < c.heads; h++) slopes[h] = std::abs(slopes[h]);
        if (c.slopes) f.slopes = slopes.data();
        if (c.bias) f.bias = bias.data(), f.bias_row = bias_size(), f.bias_zero = bias_zero;
        if (c.places) f.bias_keys = bias_keys();
        for (std::int64_t i = 0; i < chosen.size(); i++)
            chosen[i] = c.random > 0 && i % c.random == 0 ? Real(1) : Real(0);
        if (c.random > 0) f.chosen = chosen.data(), f.chosen_row = blocks();
        // The counter's low word runs over on the way.
        if (c.dropout > 0)
            f.dropout = {0x0123456789ABCDEF, 0xFEDCBA9876543210, 0xFE000000,
                         static_cast<std::uint32_t>(c.dropout * 65536),
                         static_cast<Real>(1 / (1 - c.dropout))};
        if (c.places) return;
        for (std::int64_t h = 0; h < c.heads; h++)  // the ends are alike, as promised
            for (std::int64_t i = 0; i < score_bias_lanes; i++) {
                Real* b = bias.data() + h * bias_row;
                b[i] = b[score_bias_lanes], b[bias_row - 1 - i] = b[bias_row - 1 - score_bias_lanes];
            }
    }
    std::int64_t bias_keys() const {
        return (keys + score_bias_lanes - 1) / score_bias_lanes * score_bias_lanes;
    }
    std::int64_t bias_size() const { return is.places ? is.rows * bias_keys() : bias_row; }
    std::int64_t blocks() const { return (keys + choice_block - 1) / choice_block; }
    /// Of query i and key j, from q · k.
    double score(std::int64_t h, std::int64_t i, std::int64_t j, double product) const {
        double s = product * static_cast<double>(f.scale);
        std::int64_t d = j - is.cached - i;
        if (is.softcap > 0) s = is.softcap * std::tanh(s / is.softcap);
        if (is.slopes) s -= static_cast<double>(slopes[h]) * std::abs(static_cast<double>(d));
        if (is.places) return s + static_cast<double>(bias[h * f.bias_row + i * f.bias_keys + j]);
        std::int64_t near = std::clamp(d, -bias_reach, bias_reach);
        return is.bias ? s + static_cast<double>(bias[h * bias_row + bias_zero + near]) : s;
    }
    /// Scores are rounded before their softmax where they are bounded or biased, by as much as they are
    /// large.
    double allowed(Path path) const {
        return (is.softcap > 0 || is.slopes || is.bias ? 3 : 1) * (path == Path::split ? 15 : 1) *
               tolerance<Real>(2e-6, 1e-14);
    }
    bool sees(std::int64_t i, std::int64_t j) const {
        std::int64_t at = is.cached + i;
        if (!is.causal && at < is.globals) return true;
        if (is.random > 0 && (!is.causal || j <= at) &&
            chosen[at / choice_block * f.chosen_row + j / choice_block] != 0)
            return true;
        return (!is.causal || j <= at) && (is.window == 0 || std::abs(j - at) < is.window || j < is.globals);
    }
    double kept(std::int64_t h, std::int64_t i, std::int64_t j) const {
        return is.dropout > 0 ? static_cast<double>(kept_by(f.dropout, (i * is.heads + h) * weight_row + j))
                              : 1;
    }
    Real* keys_of(std::int64_t kv_head) const { return qkv.data() + (is.heads + kv_head) * is.width; }
    void naive(std::vector<double>& y, std::vector<double>& log_sum) const {
        std::int64_t d = is.width;
        for (std::int64_t h = 0; h < is.heads; h++) {
            const Real *q = f.q + h * d, *k = keys_of(h / (is.heads / is.kv_heads)), *v = k + is.kv_heads * d;
            for (std::int64_t i = 0; i < is.rows; i++) {
                std::vector<double> p(static_cast<std::size_t>(keys));
                double total = 0;
                for (std::int64_t j = 0; j < keys; j++) {
                    double s = 0;
                    for (std::int64_t c = 0; c < d; c++)
                        s += static_cast<double>(q[i * row + c]) * static_cast<double>(k[j * row + c]);
                    p[static_cast<std::size_t>(j)] = sees(i, j) ? std::exp(score(h, i, j, s)) : 0;
                    total += p[static_cast<std::size_t>(j)];
                }
                log_sum.push_back(std::log(total));
                for (std::int64_t c = 0; c < d; c++) {
                    double sum = 0;
                    for (std::int64_t j = 0; j < keys; j++)
                        sum += p[static_cast<std::size_t>(j)] / total * kept(h, i, j) *
                               static_cast<double>(v[j * row + c]);
                    y[static_cast<std::size_t>((i * is.heads + h) * d + c)] = sum;
                }
            }
        }
    }
    void run(const KernelTable<Real>& table, std::int64_t step, Path path = Path::blocks) {
        Workspace workspace(path == Path::split ? table.narrow.attention_split_workspace
                                                : table.attention_workspace);
        auto* kernel = path == Path::decode  ? table.attention_decode
                       : path == Path::split ? table.narrow.attention_split
                                             : table.attention;
        for (std::int64_t h = 0; h < is.heads; h++) {
            for (std::int64_t i = 0; i < is.rows; i += step) {
                kernel(f, h, i, std::min(i + step, is.rows), workspace.data());
            }
        }
    }
    void back(const KernelTable<Real>& table, bool accumulate) {
        AttentionBackward<Real> b;
        b.forward = f, b.dout = dout.data();
        b.dq = dqkv.data(), b.dk = b.dq + is.heads * is.width, b.dv = b.dk + is.kv_heads * is.width;
        b.accumulate_q = b.accumulate_k = b.accumulate_v = accumulate;
        if (is.bias) b.dbias = dbias.data();
        for (std::int64_t i = 0; i < dbias.size() && !accumulate; i++) dbias[i] = 0;
        Workspace workspace(table.attention_workspace);
        for (std::int64_t h = 0; h < is.kv_heads; h++) table.attention_backward(b, h, workspace.data());
    }
};

const Case cases[] = {
    {1, 1, 1, 8},
    {2, 2, 1, 8},
    {7, 2, 2, 16},
    {16, 3, 3, 24},
    {33, 4, 2, 33},
    {63, 2, 1, 32},
    {64, 2, 2, 64},
    {65, 2, 2, 48},
    {130, 2, 1, 128},
    {129, 1, 1, 80},
    {70, 4, 1, 20, 0, 9},
    {130, 2, 2, 16, 0, 64},
    {66, 2, 1, 32, 0, 0, false},
    {9, 1, 1, 7, 0, 3, false},
    {40, 1, 1, 256},
    {70, 4, 2, 24, 0, 0, true, 0.8},
    {131, 2, 1, 64, 0, 30, true, 50, false, false, 3},
    {65, 3, 3, 20, 0, 0, true, 0, true},
    {66, 2, 1, 33, 0, 0, false, 1.5, true, true},
    {150, 2, 2, 16, 0, 20, true, 0, false, true, 70},
    {200, 2, 1, 24, 0, 10, false},
    {300, 2, 2, 20, 0, 40, false, 0, false, false, 5},
    {140, 1, 1, 33, 0, 3, false, 2, true, true, 70},
    {49, 2, 2, 32, 0, 0, false, 0, false, true, 0, true},
    {70, 4, 2, 20, 0, 0, true, 0, false, true, 0, true},
    {330, 2, 1, 16, 0, 10, true, 0, false, false, 0, false, 3},
    {330, 2, 1, 16, 0, 10, false, 0, true, false, 3, false, 4},
    dropping({7, 2, 2, 16}),
    dropping({130, 4, 2, 33}),
    dropping({66, 2, 1, 32, 0, 0, false}),
    dropping({70, 4, 1, 20, 0, 9}),
    dropping({150, 2, 2, 16, 0, 20, true, 2, true, true, 70}),
    dropping({330, 2, 1, 16, 0, 10, false, 0, true, false, 3, false, 4}),
};
const Case cached_cases[] = {
    {1, 4, 2, 64, 300},
    {1, 2, 1, 40, 17},
    {1, 1, 1, 128, 1000},
    {1, 2, 2, 33, 63, 20},
    {5, 4, 2, 32, 100},
    {70, 2, 1, 16, 61, 30},
    {1, 1, 1, 256, 5},
    {3, 4, 2, 48, 300, 0, true, 2, true},
    {1, 2, 1, 40, 290, 30, true, 0, false, true, 5},
    {5, 2, 2, 20, 600, 60, true, 1, false, false, 260},
    {70, 2, 1, 20, 200, 50, false, 0, false, false, 230},
    {70, 2, 1, 20, 300, 30, true, 0, false, false, 5, false, 3},
    {1, 2, 1, 20, 400, 30, true, 0, false, false, 0, false, 4},
    {40, 2, 1, 96, 520},
};

}  // namespace

TEST_CASE("attention agrees with a naive softmax: grouped heads, windows, caches, odd widths") {
    each_attention_table([]<class Real>(const KernelTable<Real>& table) {
        auto check_one = [&](const Case& c, int misaligned, Path path) {
            Sequence<Real> s(c, misaligned);
            s.run(table, table.attention_block, path);
            std::vector<double> y(static_cast<std::size_t>(s.out.size())), log_sum;
            s.naive(y, log_sum);
            INFO(table.name << " T " << c.rows << " H " << c.heads << " D " << c.width << " cached "
                            << c.cached);
            CHECK(distance(s.out, y, s.out.size()) < s.allowed(path));
            CHECK(distance(s.lse, log_sum, s.lse.size()) < s.allowed(path));
        };
        auto check = [&](const Case& c, int misaligned) {
            for (Path path : paths_of(table, c.dropout)) check_one(c, misaligned, path);
        };
        for (const Case& c : cases) check(c, 0), check(c, 1);
        for (const Case& c : cached_cases) check(c, 0), check(c, 3);
        for (std::int64_t t = 1; t <= 130; t += 3) check({t, 1, 1, 16}, 0);
    });
}

TEST_CASE("attention gives a query the same bits whatever queries it is computed with") {
    each_attention_table([]<class Real>(const KernelTable<Real>& table) {
        for (const Case& c : cases) {
            if (c.rows == 1) continue;
            Sequence<Real> whole(c), parts(c);
            for (Path path : paths_of(table, 0)) {
                whole.run(table, table.attention_block, path);
                parts.run(table, 5, path);
                CHECK(same_bits(whole.out, parts.out, whole.out.size()));
                CHECK(same_bits(whole.lse, parts.lse, whole.lse.size()));
            }
        }
    });
}

namespace {

/// The keys and values of a sequence as a state holds them, [2, KV, positions, whole blocks of D], which the
/// sequence then reads; its own become what was stored.
template <class Real>
struct Stored {
    Values<Real> row, loaded;
    std::vector<std::byte> bytes;

    Stored(const KernelTable<Real>& table, Sequence<Real>& s, DType type, std::size_t misaligned,
           std::int64_t ring = 0)
        : row((s.is.width + info(type).block - 1) / info(type).block * info(type).block), loaded(row.size()) {
        const Case& c = s.is;
        const std::int64_t row_bytes = row.size() / info(type).block * info(type).bytes,
                           positions = ring > 0 ? ring : s.keys + 3;
        bytes.assign(static_cast<std::size_t>(2 * c.kv_heads * positions * row_bytes) + misaligned,
                     std::byte{0x77});
        for (std::int64_t plane = 0; plane < 2 * c.kv_heads; plane++)
            for (std::int64_t j = 0; j < s.keys; j++) {
                Real* own = s.keys_of(plane) + j * s.row;  // values stand behind the keys
                std::byte* to = bytes.data() + misaligned + (plane * positions + j % positions) * row_bytes;
                for (std::int64_t i = 0; i < c.width; i++) row[i] = own[i];
                if (info(type).block == 1)
                    table.store(row.size(), type, row.data(), to);
                else
                    table.quantize(row.size(), type, row.data(), nullptr, to);
                table.load(row.size(), type, to, loaded.data());
                for (std::int64_t i = 0; i < c.width; i++) own[i] = loaded[i];
            }
        s.f.stored = type, s.f.ring = positions;
        s.f.k = bytes.data() + misaligned,
        s.f.v = bytes.data() + misaligned + c.kv_heads * positions * row_bytes;
        s.f.k_row = s.f.v_row = row.size(), s.f.k_head = s.f.v_head = positions * row.size();
    }
};

}  // namespace

TEST_CASE("attention reads keys and values of every stored type: the bits of the same values unpacked") {
    each_attention_table([]<class Real>(const KernelTable<Real>& table) {
        auto check = [&](const Case& c, DType type) {
            Sequence<Real> plain(c), stored(c);
            Stored<Real> state(table, stored, type, type == DType::q8_0 ? 1 : 0);
            for (std::int64_t i = 0; i < plain.qkv.size(); i++) plain.qkv[i] = stored.qkv[i];
            INFO(table.name << " " << info(type).name << " T " << c.rows << " H " << c.heads << " D "
                            << c.width << " cached " << c.cached);
            std::vector<double> y(static_cast<std::size_t>(plain.out.size())), log_sum;
            plain.naive(y, log_sum);
            for (Path path : paths_of(table, c.dropout)) {
                plain.run(table, table.attention_block, path);
                stored.run(table, 5, path);
                // Blocks are unpacked some keys at a time when decoding, which are summed apart.
                bool exact = type != DType::q8_0 || path != Path::decode;
                if (exact) CHECK(same_bits(plain.out, stored.out, plain.out.size()));
                CHECK(distance(stored.out, y, stored.out.size()) < stored.allowed(path));
                CHECK(distance(stored.lse, log_sum, stored.lse.size()) < stored.allowed(path));
            }
        };
        for (DType type : {DType::f32, DType::f16, DType::q8_0, DType::bf16}) {
            if (!table.narrow.attention_split)  // an emulation takes its time
                for (const Case& c : cases) check(c, type);
            for (const Case& c : cached_cases) check(c, type);
        }
    });
}

TEST_CASE("dropout of attention's weights: a share of p falls, each query and head has draws of its own") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        // Scores are 0 and value j is 1 in column j alone, so column j of a result is key j's weight.
        const std::int64_t rows = 256, heads = 2;
        Sequence<Real> s({rows, heads, heads, rows, 0, 0, false});
        std::vector<std::vector<bool>> fell;
        for (std::int64_t i = 0; i < s.qkv.size(); i++) s.qkv[i] = 0;
        for (std::int64_t h = 0; h < heads; h++)
            for (std::int64_t j = 0; j < rows; j++) s.keys_of(heads + h)[j * s.row + j] = 1;
        const double p = 0.2;
        s.f.dropout = {7, 8, 9, static_cast<std::uint32_t>(p * 65536), static_cast<Real>(1 / (1 - p))};
        s.run(table, table.attention_block);
        std::int64_t count = 0;
        for (std::int64_t r = 0; r < rows * heads; r++) {
            fell.emplace_back();
            for (std::int64_t j = 0; j < rows; j++) {
                const auto weight = static_cast<double>(s.out[r * rows + j]);
                fell.back().push_back(weight == 0);
                count += weight == 0;
                if (weight != 0) CHECK(weight == doctest::Approx(1 / (1 - p) / rows).epsilon(1e-5));
            }
        }
        // Within four standard deviations, √(p (1 - p) / n).
        const double n = static_cast<double>(rows * heads * rows);
        CHECK(std::abs(static_cast<double>(count) / n - p) < 4 * std::sqrt(p * (1 - p) / n));
        std::sort(fell.begin(), fell.end());
        CHECK(std::adjacent_find(fell.begin(), fell.end()) == fell.end());
    });
}

TEST_CASE("attention through a window needs the window's keys alone: older rows may be newer ones") {
    each_attention_table([]<class Real>(const KernelTable<Real>& table) {
        for (const Case& c :
             {Case{1, 2, 1, 40, 1000, 30}, {5, 2, 2, 33, 700, 250}, {70, 4, 2, 16, 1450, 150}})
            for (DType type : {DType::f16, DType::q8_0}) {
                INFO(table.name << " " << info(type).name << " T " << c.rows << " cached " << c.cached);
                Sequence<Real> whole(c), round(c);
                Stored<Real> all(table, whole, type, 0), ring(table, round, type, 0, table.attention_ring);
                for (Path path : paths_of(table, c.dropout)) {
                    whole.run(table, table.attention_block, path);
                    round.run(table, table.attention_block, path);
                    CHECK(same_bits(whole.out, round.out, whole.out.size()));
                }
            }
    });
}

TEST_CASE("attention keeps large scores finite") {
    each_attention_table([]<class Real>(const KernelTable<Real>& table) {
        Sequence<Real> s({80, 1, 1, 16});
        double most = 0;  // weighted means of values are no larger than the largest of them
        for (std::int64_t i = 0; i < s.qkv.size(); i++) {
            s.qkv[i] *= 60;
            most = std::max(most, std::fabs(static_cast<double>(s.qkv[i])));
        }
        for (Path path : paths_of(table, s.is.dropout)) {
            s.run(table, 128, path);
            double sum = 0;
            for (std::int64_t i = 0; i < s.out.size(); i++) {
                const double value = std::fabs(static_cast<double>(s.out[i]));
                CHECK(value <= most * 1.0001);
                sum += value;
            }
            CHECK(sum > 0);
        }
    });
}

TEST_CASE("attention's backward agrees with central differences") {
    const KernelTable<double>& table = double_kernels();
    for (const Case& c : {Case{5, 2, 1, 6},
                          {9, 4, 2, 8, 0, 4},
                          {7, 1, 1, 5, 0, 0, false},
                          {70, 1, 1, 4},
                          {66, 2, 1, 3, 0, 65},
                          {9, 2, 1, 6, 0, 0, true, 0.6, true},
                          {30, 2, 1, 3, 0, 0, true, 1.2, false, true},
                          {20, 1, 1, 4, 0, 3, true, 0, false, true, 2},
                          {19, 2, 2, 3, 0, 0, false, 0, true, true},
                          {18, 2, 1, 3, 0, 0, false, 0, false, true, 0, true},
                          {150, 1, 1, 2, 0, 5, true, 0, false, false, 0, false, 2},
                          {150, 1, 1, 2, 0, 5, false, 0, false, false, 2, false, 3},
                          dropping({9, 4, 2, 8}),
                          dropping({70, 2, 1, 3, 0, 0, false}),
                          dropping({20, 1, 1, 4, 0, 3, true, 0.6, false, true, 2})}) {
        Sequence<double> s(c);
        s.run(table, 128);
        s.back(table, false);
        Values<double> gradient = s.dqkv;
        auto loss = [&] {
            s.run(table, 128);
            double sum = 0;
            for (std::int64_t i = 0; i < s.out.size(); i++) sum += s.out[i] * s.dout[i];
            return sum;
        };
        double worst = 0, h = 1e-5;
        auto differ = [&](double& x, double expected) {
            double old = x;
            x = old + h;
            double up = loss();
            x = old - h;
            double down = loss();
            x = old;
            worst = std::max(worst, std::abs((up - down) / (2 * h) - expected) / (1 + std::abs(expected)));
        };
        for (std::int64_t i = 0; i < s.qkv.size(); i++)
            if (i % s.row != s.row - 1) differ(s.qkv[i], gradient[i]);
        for (std::int64_t i = 0; i < s.bias.size() && c.bias; i++) differ(s.bias[i], s.dbias[i]);
        INFO("T " << c.rows);
        CHECK(worst < 1e-8);
    }
}

TEST_CASE("attention's backward in float agrees with double, and accumulates where asked") {
    for (const KernelTable<float>* table : whole_tables()) {
        for (const Case& c : cases) {
            Sequence<float> s(c, 1);
            Sequence<double> d(c, 1);
            s.run(*table, 128), s.back(*table, false);
            d.run(double_kernels(), 128), d.back(double_kernels(), false);
            INFO(table->name << " T " << c.rows << " H " << c.heads << " D " << c.width);
            auto same = [&](double limit) {
                double worst = 0;
                for (std::int64_t i = 0; i < s.dqkv.size(); i++) {
                    if (i % s.row == s.row - 1) continue;
                    worst = std::max(worst, std::abs(static_cast<double>(s.dqkv[i]) - d.dqkv[i]));
                }
                // Distances beyond the table's ends are counted in any column that has their value.
                for (std::int64_t head = 0; head < c.heads; head++)
                    for (std::int64_t begin = 0; begin < Sequence<float>::bias_row; begin++) {
                        constexpr std::int64_t lanes = score_bias_lanes;
                        std::int64_t last = Sequence<float>::bias_row - 1 - lanes,
                                     end = begin == 0 || begin == last ? begin + lanes : begin;
                        double difference = 0;
                        for (std::int64_t i = begin; i <= end; i++) {
                            std::int64_t at = head * Sequence<float>::bias_row + i;
                            difference += static_cast<double>(s.dbias[at]) - d.dbias[at];
                        }
                        worst = std::max(worst, std::abs(difference));
                        begin = end;
                    }
                CHECK(worst < limit);
            };
            same(1e-5);
            s.back(*table, true), d.back(double_kernels(), true);
            same(2e-5);
        }
    }
}
