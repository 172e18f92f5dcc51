// Functions that every template has.
#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"
#include "jinja/text_tools.hpp"

namespace quern::jinja {

namespace {

Value call_range(Interpreter& run, Arguments& a) {
  a.only("range", 1, 3);
  const std::int64_t first = need_integer(a.positional[0], "range");
  const std::int64_t start = a.get(1) != nullptr ? first : 0;
  const std::int64_t stop = a.get(1) != nullptr ? need_integer(*a.get(1), "range") : first;
  const std::int64_t step = a.get(2) != nullptr ? need_integer(*a.get(2), "range") : 1;
  if (step == 0) throw Fault("range() arg 3 must not be zero");
  std::int64_t span = 0, n = 0, past = 0;
  const auto most = static_cast<std::int64_t>(run.heap().limits().range_items);
  if (step > 0 ? start < stop : start > stop) {
    const bool wide = step > 0 ? __builtin_sub_overflow(stop, start, &span)
                               : __builtin_sub_overflow(start, stop, &span);
    if (wide || step == INT64_MIN)
      throw Fault(base::cat("range > limit: more than ", most, " items"));
    n = (span - 1) / (step > 0 ? step : -step) + 1;
  }
  if (n > most || __builtin_mul_overflow(n, step, &past) ||
      __builtin_add_overflow(start, past, &past))
    throw Fault(base::cat("range > limit: more than ", most, " items, or an end beyond 64 bits"));
  return static_cast<Object*>(run.heap().make<RangeObject>(start, stop, step, n));
}

// dict(mapping or pairs, name=value...): calls `add` for each.
void each_pair(Interpreter& run, Arguments& a,
               const std::function<void(const Value&, const Value&)>& add) {
  if (a.positional.size() > 1)
    throw Fault(base::cat("dict expected at most 1 argument, got ", a.positional.size()));
  if (!a.positional.empty()) {
    if (const Dict* dict = as_dict(a.positional[0])) {
      for (const auto& [key, value] : dict->entries) add(key, value);
    } else {
      for (const Value& pair : run.items_of(a.positional[0])) {
        const std::vector<Value> parts = run.items_of(pair);
        if (parts.size() != 2)
          throw Fault(base::cat("dictionary update sequence element has length ", parts.size(),
                                "; 2 is required"));
        add(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : a.named) add(run.heap().text(name), value);
}

Value call_dict(Interpreter& run, Arguments& a) {
  Dict* dict = run.heap().make<Dict>();
  each_pair(run, a, [&](const Value& key, const Value& value) { insert(run, *dict, key, value); });
  return static_cast<Object*>(dict);
}

Value call_fromkeys(Interpreter& run, Arguments& a) {
  a.only("fromkeys", 1, 2);
  Dict* dict = run.heap().make<Dict>();
  for (const Value& key : run.items_of(a.positional[0]))
    insert(run, *dict, key, a.get_or(1, None{}));
  return static_cast<Object*>(dict);
}

Value call_namespace(Interpreter& run, Arguments& a) {
  Namespace* space = run.heap().make<Namespace>();
  each_pair(run, a, [&](const Value& key, const Value& value) {
    const Text* name = as_text(key);
    if (name == nullptr) throw Fault("a namespace has names, no other keys");
    if (name->bytes.starts_with('_'))
      throw Fault(base::cat("a namespace cannot store the attribute '",
                            base::printable(name->bytes, 40), "': it begins with _"));
    run.heap().charge(64 + name->bytes.size());
    const auto known = std::find_if(space->attributes.begin(), space->attributes.end(),
                                    [&](const auto& entry) { return entry.first == name->bytes; });
    if (known != space->attributes.end())
      known->second = value;
    else
      space->attributes.emplace_back(name->bytes, value);
  });
  return static_cast<Object*>(space);
}

Value call_raise(Interpreter& run, Arguments& a) {
  a.bind("raise_exception", {"message"}, 1);
  throw Fault(to_text(run, *a.get(0))->bytes);
}

Value call_strftime(Interpreter& run, Arguments& a) {
  a.bind("strftime_now", {"format"}, 1);
  const Text* format = a.text(0);
  if (format == nullptr) throw Fault("strftime_now: the format must be str");
  if (format->bytes.size() > 256) throw Fault("strftime_now: the format is longer than 256 bytes");
  // %f, the microseconds, is Python's own.
  std::string pattern;
  for (std::size_t i = 0; i < format->bytes.size(); ++i) {
    if (format->bytes.compare(i, 2, "%f") == 0) {
      pattern += "000000";
      ++i;
    } else {
      pattern += format->bytes[i];
      if (format->bytes[i] == '%' && i + 1 < format->bytes.size()) pattern += format->bytes[++i];
    }
  }
  char buffer[4096];
  const std::tm now = run.now();
  const std::size_t n = std::strftime(buffer, sizeof buffer, pattern.c_str(), &now);
  return run.heap().text(std::string(buffer, n));
}

// cycler(items...): next(), current, reset(). joiner(sep): nothing at first, then the separator.
Value call_joiner(Interpreter& run, Arguments& a) {
  a.bind("joiner", {"sep"});
  const Value separator = a.get_or(0, run.heap().text(", "));
  auto used = std::make_shared<bool>(false);
  return run.heap().make<Function>("joiner",
                                   [separator, used](Interpreter& r, Arguments& b) -> Value {
                                     b.only("joiner", 0, 0);
                                     if (*used) return separator;
                                     *used = true;
                                     return r.heap().text("");
                                   });
}

Value call_cycler(Interpreter& run, Arguments& a) {
  if (a.positional.empty()) throw Fault("at least one item has to be provided");
  Function* cycler = run.heap().make<Function>("cycler", [](Interpreter&, Arguments&) -> Value {
    throw Fault("'Cycler' object is not callable");
  });
  auto at = std::make_shared<std::size_t>(0);
  const std::vector<Value> items = a.positional;
  Function* next =
      run.heap().make<Function>("next", [items, at](Interpreter&, Arguments& b) -> Value {
        b.only("next", 0, 0);
        return items[(*at)++ % items.size()];
      });
  Function* reset = run.heap().make<Function>("reset", [at](Interpreter&, Arguments& b) -> Value {
    b.only("reset", 0, 0);
    *at = 0;
    return None{};
  });
  cycler->functions = {{"next", next}, {"reset", reset}};
  return static_cast<Object*>(cycler);
}

struct Global {
  std::string_view name;
  Value (*run)(Interpreter&, Arguments&);
  bool is_type;
};
constexpr Global kGlobals[] = {
    {"cycler", call_cycler, true},          {"dict", call_dict, false},
    {"joiner", call_joiner, true},          {"namespace", call_namespace, true},
    {"raise_exception", call_raise, false}, {"range", call_range, false},
    {"strftime_now", call_strftime, false},
};

}  // namespace

Value find_global(Interpreter& run, std::string_view name) {
  for (const Global& global : kGlobals) {
    if (global.name != name) continue;
    Function* function = run.heap().make<Function>(std::string(name), global.run);
    function->is_type = global.is_type;
    if (name == "dict")
      function->functions = {{"fromkeys", run.heap().make<Function>("fromkeys", call_fromkeys)}};
    return static_cast<Object*>(function);
  }
  return Undefined{};
}

}  // namespace quern::jinja
