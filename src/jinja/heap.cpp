#include "jinja/heap.hpp"

#include "base/strings.hpp"

namespace quern::jinja {

TextRef Heap::text(Text text) {
  check_text(text.bytes.size());
  burn_bytes(text.bytes.size());
  auto shared = std::make_shared<Text>(std::move(text));
  charge(shared->cost());
  shared->counter = &alive_bytes_;
  return shared;
}

List* Heap::list(std::vector<Value> items, ObjectKind kind) {
  charge(items.capacity() * sizeof(Value));
  burn(1 + items.size() / 8);
  return make<List>(kind, std::move(items));
}

Undefined Heap::undefined(std::string why) {
  return {std::make_shared<const std::string>(std::move(why))};
}

Object* Heap::keep(std::unique_ptr<Object> object) {
  charge(160);
  objects_.push_back(std::move(object));
  return objects_.back().get();
}

void Heap::charge(std::size_t bytes) {
  alive_bytes_ += bytes;
  if (alive_bytes_ > limits_.heap_bytes)
    throw Fault(base::cat("values > ", base::human_bytes(limits_.heap_bytes)));
}

void Heap::out_of_fuel() const {
  throw Fault(base::cat("fuel exhausted: more than ", base::grouped(limits_.fuel), " steps"));
}

void Heap::too_long() const {
  throw Fault(base::cat("output > ", limits_.text_bytes >> 20, " MiB"));
}

}  // namespace quern::jinja
