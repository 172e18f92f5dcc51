#include "eval_report.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/strings.hpp"

namespace quern::tool {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kQuantiles[] = {0.01, 0.05, 0.10, 0.50, 0.90, 0.95, 0.99, 0.999, 1.0};

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string with_error(double value, double error, int digits) {
  return number(value, digits) + " +- " + number(error, digits);
}

std::string percent(const eval::Mean& mean) {
  return number(100 * mean.mean(), 2) + " +- " + number(100 * mean.error(), 2) + " %";
}

std::string quantile_name(double q) {
  if (q == 1.0) return "maximum";
  if (q == 0.5) return "median";
  std::string text = number(100 * q, 1);
  if (text.size() > 2 && text.substr(text.size() - 2) == ".0") text.resize(text.size() - 2);
  return text + " %";
}

void line(std::ostringstream& out, const std::string& name, const std::string& value) {
  out << "  " << name << std::string(name.size() < 26 ? 26 - name.size() : 1, ' ') << value << "\n";
}

void print_divergence(std::ostringstream& out, const eval::TextScore& score, const eval::Divergence& d,
                      const std::string& first) {
  out << "\n" << score.name << " beside " << first << "\n";
  line(out, "perplexity", with_error(score.perplexity(), score.perplexity_error(), 4));
  line(out, "perplexity ratio", with_error(std::exp(d.log_ratio.mean()), std::exp(d.log_ratio.mean()) * d.log_ratio.error(), 6));
  line(out, "KL divergence", with_error(d.kl.mean(), d.kl.error(), 6) + " nats");
  for (const double q : kQuantiles) line(out, "  " + quantile_name(q), number(eval::quantile(d.kls, q), 6));
  line(out, "same most probable token", percent(d.same_top));
  line(out, "change of probability", "mean " + number(100 * d.probability_change.mean(), 3) + " %, RMS " +
                                         number(100 * std::sqrt(d.squared_change.mean()), 3) + " %");
}

Json mean_json(const eval::Mean& mean) { return {{"mean", mean.mean()}, {"error", mean.error()}}; }

Json divergence_json(const eval::Divergence& d) {
  Json quantiles = Json::object();
  for (const double q : kQuantiles) quantiles[q == 1.0 ? "max" : number(100 * q, 1)] = eval::quantile(d.kls, q);
  return {{"kl", mean_json(d.kl)},
          {"kl_percentiles", std::move(quantiles)},
          {"same_top", mean_json(d.same_top)},
          {"log_perplexity_ratio", mean_json(d.log_ratio)},
          {"probability_change", mean_json(d.probability_change)},
          {"rms_probability_change", std::sqrt(d.squared_change.mean())}};
}

}  // namespace

std::string text_table(const EvaluatedText& text) {
  std::ostringstream out;
  const eval::TextReport& report = text.report;
  const eval::TextScore& first = report.scores.front();
  out << base::printable(text.source) << ": " << report.windows << " of " << text.n_windows << " windows of " << text.context
      << " tokens, " << base::grouped(first.nll.n()) << " tokens scored, from place " << text.first_scored << " of a window on\n";
  if (report.interrupted) out << "interrupted: figures of the windows that were finished\n";
  if (first.nll.n() == 0) return out.str();
  out << first.name << "\n";
  line(out, "perplexity", with_error(first.perplexity(), first.perplexity_error(), 4));
  for (std::size_t i = 0; i < report.divergences.size(); ++i)
    print_divergence(out, report.scores[i + 1], report.divergences[i], first.name);
  return out.str();
}

std::string text_json(const EvaluatedText& text) {
  const eval::TextReport& report = text.report;
  Json subjects = Json::array();
  for (std::size_t i = 0; i < report.scores.size(); ++i) {
    const eval::TextScore& score = report.scores[i];
    Json row = {{"name", score.name},
                {"perplexity", score.perplexity()},
                {"perplexity_error", score.perplexity_error()},
                {"nll", mean_json(score.nll)}};
    if (i > 0) row["against_first"] = divergence_json(report.divergences[i - 1]);
    subjects.push_back(std::move(row));
  }
  const Json document = {{"source", text.source},
                         {"model", text.model},
                         {"context", text.context},
                         {"first_scored", text.first_scored},
                         {"windows", report.windows},
                         {"windows_asked", text.n_windows},
                         {"tokens_scored", report.scores.front().nll.n()},
                         {"interrupted", report.interrupted},
                         {"results", std::move(subjects)}};
  return document.dump(2) + "\n";
}

std::string choice_table(const EvaluatedChoices& choices) {
  std::ostringstream out;
  const eval::ChoiceReport& report = choices.report;
  out << base::printable(choices.source) << ": " << report.acc.n() << " of " << choices.n_questions << " questions\n";
  if (report.interrupted) out << "interrupted: figures of the questions that were finished\n";
  out << choices.model << "\n";
  line(out, "acc", percent(report.acc));
  line(out, "acc_norm", percent(report.acc_norm));
  return out.str();
}

std::string choice_json(const EvaluatedChoices& choices) {
  const Json document = {{"source", choices.source},
                         {"model", choices.model},
                         {"questions", choices.report.acc.n()},
                         {"questions_asked", choices.n_questions},
                         {"interrupted", choices.report.interrupted},
                         {"acc", mean_json(choices.report.acc)},
                         {"acc_norm", mean_json(choices.report.acc_norm)}};
  return document.dump(2) + "\n";
}

}  // namespace quern::tool
