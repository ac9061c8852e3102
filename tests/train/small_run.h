// A folder in which small models are trained.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands/records.h"
#include "commands/tiny.h"
#include "support.h"

namespace linnet::test {

/// With `config` and `text`; $TRAIN is all but the output folder.
struct SmallRun : Workplace {
    SmallRun()
        : Workplace("TRAIN=\"$LINNET train config --data text --threads 1 --set train.sample_tokens=0\"") {
        write_text(s / "config", tiny_config());
    }
    std::vector<nlohmann::json> log(const std::string& out, const std::string& event) const {
        return records(file(out + "/log.jsonl"), event);
    }
};

}  // namespace linnet::test
