// Where the values of one rendering live, and what bounds them: bytes alive and steps taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "jinja/limits.hpp"
#include "jinja/value.hpp"

namespace quern::jinja {

// What goes wrong while a template runs; the interpreter adds the place.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits), fuel_(limits.fuel) {}
  Heap(const Heap&) = delete;

  // Each throws a Fault when it is too much.
  void burn(std::uint64_t steps) {
    if (steps > fuel_) out_of_fuel();
    fuel_ -= steps;
  }
  void burn_bytes(std::size_t bytes) { burn(1 + bytes / 64); }
  void check_text(std::size_t bytes) const {  // before a text of so many bytes is made
    if (bytes > limits_.text_bytes) too_long();
  }

  TextRef text(Text text);
  TextRef text(TextBuilder& builder, bool markup = false) {
    return this->text(builder.take(markup));
  }
  TextRef text(std::string bytes) { return text(Text(std::move(bytes))); }

  template <class T, class... Args>
  T* make(Args&&... args) {
    return static_cast<T*>(keep(std::make_unique<T>(std::forward<Args>(args)...)));
  }
  List* list(std::vector<Value> items, ObjectKind kind = ObjectKind::list);
  Undefined undefined(std::string why);
  void charge(std::size_t bytes);  // of a container that grows

  const Limits& limits() const { return limits_; }

 private:
  Object* keep(std::unique_ptr<Object> object);
  [[noreturn]] void out_of_fuel() const;
  [[noreturn]] void too_long() const;

  Limits limits_;
  std::uint64_t fuel_;
  std::size_t alive_bytes_ = 0;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace quern::jinja
