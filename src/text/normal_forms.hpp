// Unicode normal forms as the reference has them: characters newer than its tables stay where they
// are, and so do bytes that are not UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace quern::text {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

std::string normal_form(std::string_view text, NormalForm form);

}  // namespace quern::text
