#include "checkpoint/shard_index.hpp"

#include <algorithm>
#include <map>

#include "base/json_reader.hpp"
#include "checkpoint/source_files.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::printable;
using base::reject;

void check_shard_name(const std::string& name, std::string_view where) {
  if (!is_plain_file_name(name))
    reject(where, "shard name must be a plain file name", cat("\"", printable(name, 80), "\""));
  if (name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth"))
    reject(where, cat("shard \"", printable(name, 80), "\": pickle is not read"));
  if (!name.ends_with(".safetensors"))
    reject(where, "shard is not a safetensors file", cat("\"", printable(name, 80), "\""));
}

}  // namespace

ShardIndex parse_shard_index(std::string_view text, std::string_view where) {
  const base::Json document = base::parse_json(text, where);
  if (!document.is_object())
    reject(where, "wrong kind of value", document.type_name(), "an object");
  const auto found = document.find("weight_map");
  if (found == document.end()) reject(where, "key \"weight_map\" is missing");
  if (!found->is_object())
    reject(cat(where, ": weight_map"), "wrong kind of value", found->type_name(), "an object");
  if (found->empty()) reject(cat(where, ": weight_map"), "names no tensor");

  std::map<std::string, std::size_t> numbers;
  const std::string place = cat(where, ": weight_map");
  for (const auto& [tensor, shard] : found->items()) {
    if (!shard.is_string())
      reject(cat(place, ".", printable(tensor, 100)), "wrong kind of value", shard.type_name(),
             "a string");
    const auto& name = shard.get_ref<const std::string&>();
    if (!numbers.contains(name)) check_shard_name(name, cat(place, ".", printable(tensor, 100)));
    numbers.emplace(name, 0);
  }
  ShardIndex index;
  for (auto& [name, number] : numbers) {
    number = index.shards.size();
    index.shards.push_back(name);
  }
  for (const auto& [tensor, shard] : found->items())
    index.shard_of.emplace(tensor, numbers.at(shard.get_ref<const std::string&>()));
  return index;
}

}  // namespace quern::checkpoint
