// How steps with texts are spelled in the contract: name, a separator, and fields that each end in
// it ("replace/FROM/TO/"). The separator is any character that no field contains.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quern::text {

// "" when no separator is left, which takes > 90 different characters in the fields.
std::string spell_step(std::string_view name, const std::vector<std::string_view>& fields);

// The fields of a step of this name; nothing for other names and other numbers of fields.
std::optional<std::vector<std::string>> step_fields(std::string_view step, std::string_view name,
                                                    std::size_t count);

// The text behind "name:"; nothing for other names.
std::optional<std::string> step_text(std::string_view step, std::string_view name);

}  // namespace quern::text
