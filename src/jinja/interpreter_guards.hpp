// What execute.cpp, evaluate.cpp and call.cpp change for a while and put back.
#pragma once

#include <exception>
#include <memory>

#include "base/strings.hpp"
#include "jinja/interpreter.hpp"

namespace quern::jinja {

// A new scope inside `parent` while it lives.
class Interpreter::ScopeGuard {
 public:
  // By value: `parent` may be the very scope that is replaced here.
  ScopeGuard(Interpreter& run, std::shared_ptr<Scope> parent) : run_(run), before_(run.scope_) {
    run_.scope_ = std::make_shared<Scope>();
    run_.scope_->parent = std::move(parent);
  }
  ~ScopeGuard() { run_.scope_ = std::move(before_); }
  ScopeGuard(const ScopeGuard&) = delete;

 private:
  Interpreter& run_;
  std::shared_ptr<Scope> before_;
};

// Output goes elsewhere.
class OutputGuard {
 public:
  OutputGuard(TextBuilder*& out, TextBuilder& to) : out_(out), before_(out) { out = &to; }
  ~OutputGuard() { out_ = before_; }
  OutputGuard(const OutputGuard&) = delete;

 private:
  TextBuilder*& out_;
  TextBuilder* before_;
};

// One macro or recursive loop inside another.
class Interpreter::CallGuard {
 public:
  explicit CallGuard(Interpreter& run) : run_(run), line_(run.line_) {
    const int most = run.heap_.limits().call_depth;
    if (run.call_depth_ >= most) throw Fault(base::cat("recursion > ", most));
    ++run.call_depth_;
  }
  ~CallGuard() {
    --run_.call_depth_;
    if (std::uncaught_exceptions() == 0) run_.line_ = line_;
  }
  CallGuard(const CallGuard&) = delete;

 private:
  Interpreter& run_;
  int line_;
};

}  // namespace quern::jinja
