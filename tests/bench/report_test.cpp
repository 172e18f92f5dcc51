#include "bench/report.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "bench/compare.hpp"
#include "bench/limits_file.hpp"
#include "bench/machine.hpp"
#include "catch.hpp"
#include "sample_rows.hpp"

namespace quern::bench {
namespace {

const std::vector<std::uint64_t> kSteady = {100000000, 101000000, 99000000, 100500000, 99500000};

std::string text_of(Format format, const std::vector<Row>& rows) {
  return report_text(format, sample_run(rows.front()), rows, {});
}

TEST_CASE("JSON has the keys of llama-bench and the figures follow from the samples") {
  const Row row = sample_row(512, 0, kSteady);
  const base::Json json = row_json(sample_run(row), row, {});
  for (const char* key : {"build_commit", "build_number", "cpu_info", "gpu_info", "backends", "model_filename", "model_type",
                          "model_size", "model_n_params", "n_batch", "n_ubatch", "n_threads", "type_k", "type_v", "n_prompt",
                          "n_gen", "n_depth", "test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts", "samples_ns",
                          "samples_ts"})
    CHECK(json.contains(key));
  CHECK(json["avg_ns"] == 100000000);
  CHECK(json["median_ts"].get<double>() == Approx(5120));
  CHECK(json["ttft_ns"].get<double>() == Approx(1e8));
  CHECK(json["prompt_ops_per_s"].get<double>() == Approx(1e10));
  CHECK(json["prompt_peak_share"].get<double>() == Approx(0.01));
  CHECK(json["token_p50_ns"].is_null());
  CHECK(json["samples_ns"].size() == 5);
  CHECK(json["trusted"] == true);
  const Row gen = sample_row(0, 100, kSteady);
  const base::Json decode = row_json(sample_run(gen), gen, {true});
  CHECK(decode["token_p50_ns"].get<double>() == Approx(1e6));
  CHECK(decode["gen_bytes_per_s"].get<double>() == Approx(1e9));
  CHECK(decode["gen_bandwidth_share"].get<double>() == Approx(0.1));
  CHECK(decode["step_ns"][0].size() == 100);
}

TEST_CASE("every format of the same rows") {
  const std::vector<Row> rows = {sample_row(512, 0, kSteady), sample_row(0, 100, kSteady)};
  const base::Json list = base::parse_json(text_of(Format::json, rows), "json");
  CHECK(list.size() == 2);
  const std::string lines = text_of(Format::jsonl, rows);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 2);
  CHECK(base::parse_json(lines.substr(0, lines.find('\n')), "jsonl") == list[0]);
  const std::string csv = text_of(Format::csv, rows);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  CHECK(csv.rfind("build_commit,", 0) == 0);
  CHECK(csv.find("\"Tiny \"\"1\"\", it's\"") != std::string::npos);
  const std::string sql = text_of(Format::sql, rows);
  CHECK(sql.rfind("CREATE TABLE IF NOT EXISTS quern_bench (", 0) == 0);
  CHECK(sql.find("'Tiny \"1\", it''s'") != std::string::npos);
  const std::string md = text_of(Format::md, rows);
  CHECK(md.find("pp512") != std::string::npos);
  CHECK(md.find("verdict: nothing speaks against") != std::string::npos);
  CHECK_THROWS_AS(parse_format("-o", "xml"), base::Error);
}

TEST_CASE("batched rows have the columns of llama-batched-bench") {
  Row row = sample_row(128, 32, kSteady);
  row.one.n_parallel = 4;
  const std::string md = text_of(Format::md, {row});
  for (const char* name : {" PP ", " TG ", " B ", " N_KV ", " S_PP t/s ", " S_TG t/s ", " 640 "})
    CHECK(md.find(name) != std::string::npos);
}

TEST_CASE("noise is never silent") {
  const Row steady = sample_row(0, 100, kSteady);
  CHECK(doubts(sample_run(steady), {steady}).empty());
  const auto told = [](const Circumstances& run, const Row& row, const char* word) {
    const std::vector<std::string> reasons = doubts(run, {row});
    INFO(verdict_line(reasons));
    CHECK(verdict_line(reasons).find(word) != std::string::npos);
    CHECK(verdict_line(reasons).find("TOO NOISY") != std::string::npos);
  };
  const Row wide = sample_row(0, 100, {100, 150, 90, 200, 100});
  told(sample_run(wide), wide, "spread");
  const Row once = sample_row(0, 100, {100});
  told(sample_run(once), once, "repetitions");
  const Row drifting = sample_row(0, 100, {100, 100, 100, 110, 110, 110});
  told(sample_run(drifting), drifting, "drifted");
  Row disk = steady;
  disk.counters.major_faults = 3;
  told(sample_run(disk), disk, "disk");
  Circumstances run = sample_run(steady);
  run.counters.steal_seconds = 0.1;
  told(run, steady, "steal");
  run = sample_run(steady);
  run.machine.n_cpus = 4;
  run.counters.busy_seconds = 3;
  told(run, steady, "other processes");
  run = sample_run(steady);
  run.counters.throttled_periods = 1;
  told(run, steady, "throttled");
  run = sample_run(steady);
  run.clock_before.mean_mhz = 3000;
  run.clock_after.mean_mhz = 2500;
  told(run, steady, "clock");
  run = sample_run(steady);
  run.interrupted = true;
  told(run, steady, "interrupted");
  run = sample_run(steady);
  run.stored_read_bytes_per_s = 2e10;
  told(run, steady, "memory reads");
  run = sample_run(steady);
  run.machine.n_cpus = 1;
  told(run, steady, "threads on");
}

TEST_CASE("a base is compared row by row, scaled by the limits of both") {
  const Row mine = sample_row(512, 0, kSteady);
  const std::vector<BaseRow> base = parse_base(text_of(Format::json, {mine}), "base.json");
  REQUIRE(base.size() == 1);
  CHECK_FALSE(compare({mine}, base, 0.02, "base.json").regressed());
  std::vector<std::uint64_t> slow = kSteady;
  for (std::uint64_t& ns : slow) ns = ns * 11 / 10;
  Row later = sample_row(512, 0, slow);
  const Comparison worse = compare({later}, base, 0.02, "base.json");
  CHECK(worse.regressed());
  CHECK(worse.rows[0].result.ratio == Approx(1 / 1.1).epsilon(1e-3));
  CHECK(comparison_text(worse).rfind("SLOWER: pp512", 0) == 0);
  later.limits.int8_ops_per_s /= 1.1;  // a machine that is slower by as much
  CHECK_FALSE(compare({later}, base, 0.02, "base.json").regressed());
  CHECK(parse_base(text_of(Format::jsonl, {mine, later}), "base.jsonl").size() == 2);
  const Row other = sample_row(256, 0, kSteady);
  CHECK_THROWS_AS(compare({other}, base, 0.02, "base.json"), base::Error);
  CHECK(compare({mine, other}, base, 0.02, "base.json").missing.size() == 1);
}

TEST_CASE("hostile bases are input errors") {
  const std::string good = text_of(Format::json, {sample_row(512, 0, kSteady)});
  const auto refused = [](const std::string& text) {
    try {
      parse_base(text, "base.json");
    } catch (const base::Error& error) {
      return error.code() == base::ExitCode::input && std::string(error.what()).find("base.json") != std::string::npos;
    }
    return false;
  };
  for (const char* text : {"", "{", "1", "\"a\"", "[1]", "[{}]", "{\"a\": 1}", "[[]]", "nul"}) {
    INFO(text);
    CHECK(refused(text));
  }
  for (std::size_t cut = 1; cut < good.size() - 2; cut += 7) CHECK(refused(good.substr(0, cut)));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  CHECK(refused(with("\"n_prompt\": 512", "\"n_prompt\": -1")));
  CHECK(refused(with("\"n_prompt\": 512", "\"n_prompt\": 1e300")));
  CHECK(refused(with("\"samples_ts\": [", "\"samples_ts\": [0,")));
  CHECK(refused(with("\"samples_ts\": [", "\"samples_ts\": [\"x\",")));
  CHECK(refused(with("\"read_bytes_per_s\": 10000000000.0", "\"read_bytes_per_s\": null")));
}

TEST_CASE("the files of Linux") {
  const auto ticks = parse_proc_stat("cpu  10 1 5 100 2 3 4 7 0 0\ncpu0 1 1 1 1 1 1 1 1\n");
  REQUIRE(ticks);
  CHECK(ticks->busy == 23);
  CHECK(ticks->steal == 7);
  CHECK_FALSE(parse_proc_stat("cpu  10 1"));
  CHECK_FALSE(parse_proc_stat(""));
  const char* info = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\ncpu MHz\t\t: 2000.5\n\ncpu MHz : 3000.5\n";
  CHECK(parse_cpu_model(info) == "Some CPU @ 2 GHz");
  CHECK(parse_cpu_clock(info).mean_mhz == Approx(2500.5));
  CHECK(parse_cpu_clock(info).max_mhz == Approx(3000.5));
  CHECK(parse_cpu_model("") == "unknown CPU");
  CHECK(parse_throttled("nr_periods 10\nnr_throttled 4\nthrottled_usec 100\n") == 4);
  CHECK_FALSE(parse_throttled("usage_usec 1\n"));
  CHECK(parse_selected("always [madvise] never\n") == "madvise");
  CHECK(parse_selected("none").empty());
  const Counters before = read_counters();
  const Counters spent = read_counters() - before;
  CHECK(spent.wall_seconds >= 0);
  CHECK(spent.own_cpu_seconds >= 0);
}

}  // namespace
}  // namespace quern::bench
