// libFuzzer: a choice, then one log of any bytes or two as `report` reads them are a page, which runs no
// script.
#include <cstdlib>

#include "input.h"
#include "train/report/report.h"
#include "train/report/runs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace linnet;
    fuzz::Input input(data, size);
    const bool both = input.choice(2) == 1;
    const std::string first{input.part()},
        second{input.part()};  // by themselves, so that ASan knows their ends
    const std::vector<NamedLog> logs{{"first", first}, {"second", second}};
    const std::string page = both ? runs_report_html(logs) : report_html(logs[0].log, logs[0].name);
    if (!page.ends_with("</html>\n") || page.find("<script") != page.npos) std::abort();
    return 0;
}
