#include "train/run_notes.h"

#include "base/terminal.h"

namespace linnet {

void note_whether_held_out(const RunSetup& setup) {
    Batch first;
    std::vector<std::size_t> passed_over;
    const std::size_t texts = setup.texts();
    bool streams = setup.windows.has_value();
    for (std::size_t part = 0; part < texts; part++) {
        if (!fill_validation(setup, part, 0, 1, first)) passed_over.push_back(part);
        if (streams) streams = setup.windows->part(part).source().packed() == nullptr;
    }
    if (passed_over.size() < texts) {
        for (const std::size_t part : passed_over)
            note(printable(setup.text_name(part)) + ": too little is held out: it is not evaluated");
        return;
    }
    const auto window = static_cast<std::uint64_t>(setup.config.train.sequence) + 1;  // with what follows
    note("too little is held out" +
         (streams ? " (" + grouped(setup.tokens(DataSplit::validation)) + " tokens, a window takes " +
                        grouped(window) + ")"
                  : "") +
         ": no evaluation, " + setup.start.model_name() + " is the last");
}

void note_rate_never_peaks(const RunSetup& setup) {
    const TrainConfig& t = setup.config.train;
    if (t.schedule.warmup < t.steps || t.optimizer.lr == 0 || setup.checkpoint.step >= t.steps) return;
    const RateSpan span = rate_span(t);
    const double last = scheduled_rate(t.schedule, span, t.steps - 1), peak = largest_rate(t.schedule, span);
    if (last >= peak) return;  // noam's warm-up ends at its peak
    note("the learning rate only rises, to " + two_digits(last) + " of " + two_digits(peak) +
         ": train.schedule.warmup is " + grouped(static_cast<std::uint64_t>(t.schedule.warmup)) +
         ", train.steps " + grouped(static_cast<std::uint64_t>(t.steps)));
}

void note_rate_cut_off(const RunSetup& setup, std::int64_t step) {
    const ScheduleConfig& schedule = setup.config.train.schedule;
    RateSpan span = rate_span(setup.config.train);
    const double rate = scheduled_rate(schedule, span, step - 1), much = 0.05 * largest_rate(schedule, span);
    span.steps = static_cast<double>(step);  // as if these had been all
    if (rate - scheduled_rate(schedule, span, step - 1) < much) return;
    note("the learning rate was still " + two_digits(rate) + " when the time was up: --steps " +
         std::to_string(step) + " would have let it fall");
}

}  // namespace linnet
